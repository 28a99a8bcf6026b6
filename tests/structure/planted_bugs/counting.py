"""Mistakes in numbers over the records that hold words. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_WORDS = "tests/web/test_counted_words.py"
_CLAUSES = "src/headgate/policy/clauses.py"
_LEXICAL = "src/headgate/store/search/lexical.py"
_REMOTE = "src/headgate/reading/remote.py"

BUGS = (
    Bug(
        f"{_WORDS}::test_records_count_that_hold_all_the_words_over_all_connections",
        "a record counts that holds some of the words",
        _LEXICAL,
        "            records = matches.records[matches.is_partial == 0]",
        "            records = matches.records",
    ),
    Bug(
        f"{_WORDS}::test_every_metric_and_every_group_is_of_the_records_that_hold_the_words",
        "groups and sums are of all records",
        "src/headgate/store/queries/aggregates.py",
        "    rows = visible_rows(scope, plan.reach, plan.filters, among=among)\n",
        "    rows = visible_rows(scope, plan.reach, plan.filters)\n",
    ),
    Bug(
        f"{_WORDS}::test_filters_and_a_connection_narrow_what_holds_the_words",
        "a filter is forgotten beside words",
        "src/headgate/store/queries/aggregates.py",
        "    if among is not None and not plan.filters:\n",
        "    if among is not None:\n",
    ),
    Bug(
        f"{_WORDS}::test_words_are_looked_for_in_the_named_fields_alone",
        "words are looked for in every field",
        _CLAUSES,
        "    return usable if names is None else tuple(name for name in usable if name in names)",
        "    return usable",
    ),
    Bug(
        f"{_WORDS}::test_a_field_that_is_hidden_or_unknown_is_refused_in_the_same_words",
        "a field that nobody may search is looked for nowhere, and not refused",
        _CLAUSES,
        "            authorize(next(seen, scopes[0]), name, uses[0])\n",
        "            del seen\n",
    ),
    Bug(
        f"{_WORDS}::test_an_answer_says_how_the_words_were_understood_and_that_nothing_matched",
        "a number does not say which words it is of",
        "src/headgate/text/aggregate.py",
        "*understood_line(body)])",
        "*understood_line({})])",
    ),
    Bug(
        f"{_WORDS}::test_a_search_without_hits_only_counts_and_discloses_no_record",
        "a limit of 0 is the default",
        "src/headgate/model/reads.py",
        "        limit=DEFAULT_PAGE if read.limit is None else read.limit,",
        "        limit=read.limit or DEFAULT_PAGE,",
    ),
    Bug(
        f"{_WORDS}::test_the_log_names_the_fields_that_were_searched_and_holds_the_words",
        "the log does not name the fields that were searched",
        "src/headgate/reading/aggregate.py",
        "    named += () if plan.words is None else plan.words.search_fields\n",
        "",
    ),
    Bug(
        f"{_WORDS}::test_a_remote_resource_server_is_asked_the_same",
        "the fields do not reach another server",
        "src/headgate/reading/links.py",
        '    "in_fields": lambda names: [("in", ",".join(names))],\n',
        '    "in_fields": lambda _names: [],\n',
    ),
    Bug(
        f"{_WORDS}::test_a_remote_server_that_ignores_what_was_asked_is_not_believed",
        "a number of all records passes for one of those that hold words",
        _REMOTE,
        "            if (about.q, about.in_fields) != (query.q, query.in_fields):",
        "            if False:",
    ),
)
