"""Mistakes in numbers over the records that hold words. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_WORDS = "tests/web/test_counted_words.py"
_CLAUSES = "src/headgate/policy/clauses.py"
_LEXICAL = "src/headgate/store/search/lexical.py"
_REMOTE = "src/headgate/reading/remote.py"

_WRITTEN = "src/headgate/store/format/written.py"

BUGS = (
    Bug(
        f"{_WORDS}::test_numbers_after_a_phrase_are_added_up_exactly",
        "numbers of texts are added up as floats",
        "src/headgate/store/queries/aggregates.py",
        "            self.value = _WIDE.add(self.value, value)",
        "            self.value = _WIDE.create_decimal(float(self.value) + float(value))",
    ),
    Bug(
        f"{_WORDS}::test_dates_after_a_phrase_have_a_first_and_a_last",
        "of two readings of a date the month comes first",
        "src/headgate/store/format/analyser.py",
        "            places.setdefault(match.span(), form[1:])",
        "            places[match.span()] = form[1:]",
    ),
    Bug(
        f"{_WORDS}::test_values_of_texts_are_grouped_filtered_and_read_in_named_fields",
        "a phrase that stands across two pieces of a long text is not found",
        "src/headgate/store/search/extracting.py",
        "            end = min(start + CHUNK_CHARS + _OVERLAP_CHARS, note[0])",
        "            end = min(start + CHUNK_CHARS, note[0])",
    ),
    Bug(
        f"{_WORDS}::test_without_a_value_the_answer_is_nothing_and_says_so",
        "records without a value are not counted as such",
        "src/headgate/store/queries/aggregates.py",
        "        return missing, None, sum(numbers.known for numbers in groups)",
        "        return 0, None, sum(numbers.known for numbers in groups)",
    ),
    Bug(
        f"{_WORDS}::test_more_texts_than_are_read_are_refused_with_what_to_narrow",
        "the first texts stand for all of them",
        "src/headgate/store/queries/aggregates.py",
        "    if len(holding) > texts.most:",
        "    if False:",
    ),
    Bug(
        f"{_WORDS}::test_the_log_names_the_fields_that_values_were_read_from_and_holds_the_phrase",
        "the phrase is not logged",
        "src/headgate/reading/local.py",
        '        words = " ".join(filter(None, (query.q, phrase)))',
        '        words = " ".join(filter(None, (query.q, phrase and "")))',
    ),
    Bug(
        "tests/store/lexical/test_written.py::test_the_first_number_is_read_with_all_its_digits",
        "a minus before a currency is lost",
        _WRITTEN,
        "            return -value if value and _MINUS.search(before) else value",
        '            return -value if value and before.endswith("-") else value',
    ),
    Bug(
        f"{_WORDS}::test_records_count_that_hold_all_the_words_over_all_connections",
        "a record counts that holds some of the words",
        _LEXICAL,
        "records, quoted = (matches.records[matches.tier == tier] for",
        "records, quoted = (matches.records[matches.tier >= tier] for",
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
        "[*understood_line(body), ",
        "[",
    ),
    Bug(
        f"{_WORDS}::test_a_search_without_hits_only_counts_and_discloses_no_record",
        "a limit of 0 is the default",
        "src/headgate/model/reads.py",
        "        limit=default_limit if read.limit is None else read.limit,",
        "        limit=read.limit or default_limit,",
    ),
    Bug(
        f"{_WORDS}::test_the_log_names_the_fields_that_were_searched_and_holds_the_words",
        "the log does not name the fields that were searched",
        "src/headgate/reading/aggregate.py",
        "    for texts in (plan.words, plan.extract):\n",
        "    for texts in (plan.extract,):\n",
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
        "            if (about.q, about.in_fields, about.extract) != (query.q, query.in_fields, query.extract):",
        "            if False:",
    ),
    Bug(
        "tests/text/test_numbers.py::test_the_key_of_a_group_can_be_taken_for_nothing_else",
        "a key that ends with a number stands without quotes",
        "src/headgate/text/aggregate.py",
        "and not _UNSAFE_END.search(key)",
        "",
    ),
    Bug(
        "tests/text/test_numbers.py::test_an_aggregate_says_which_records_are_counted",
        "a number does not say which filter narrows it",
        "src/headgate/text/aggregate.py",
        "{f' in {fields}' if fields else ''}{where}",
        "{f' in {fields}' if fields else ''}",
    ),
)
