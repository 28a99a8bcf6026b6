"""Mistakes that break what refusals, schemas, times and coverage say. Each names its test."""

from __future__ import annotations

from tests.structure.planted import Bug

_ALIKE = "tests/test_nearest.py::test_a_hidden_name_reads_like_one_that_does_not_exist"
_SHORT = "tests/mcp/serve/test_errors.py::test_every_error_of_every_tool_is_short_whatever_names_are_sent"
_CHOICES = "tests/mcp/serve/test_errors.py::test_the_connections_to_choose_from_fit_both_channels_together"
_PARTIAL = (
    "tests/mcp/serve/test_packages.py::test_a_filter_that_fits_one_of_the_sources_applies_there_and_says_so"
)
_SENT_FIRST = (
    "tests/mcp/serve/test_packages.py::test_a_query_whose_fields_one_connector_has_is_sent_there_first"
)
_ALLOWANCE = "src/headgate/policy/allowance.py"
_CHOOSE = "src/headgate/policy/choose.py"
_CLAUSES = "src/headgate/policy/clauses.py"
_FAILURES = "src/headgate/mcp/serve/failures.py"

_SCHEMA = "tests/web/test_schema_words.py"
_SPAN = f"{_SCHEMA}::test_the_span_is_that_of_the_visible_records"
_FOLLOWS = f"{_SCHEMA}::test_the_span_follows_what_is_stored_and_what_is_deleted"
_VALUES = f"{_SCHEMA}::test_frequent_values_are_those_of_visible_records_and_logged"
_INDEX = "tests/cli/test_demo.py::test_the_index_fits_both_channels"
_COMPACT = "src/headgate/reading/compact_schema.py"
_SUMMARIES = "src/headgate/store/queries/summaries.py"

_COVERAGE = f"{_SCHEMA}::test_an_import_that_brought_nothing_visible_does_not_move_the_coverage"
_CLIPPED = f"{_SCHEMA}::test_coverage_is_clipped_to_the_grant_and_an_empty_answer_and_a_count_say_it"
_NEAR = f"{_SCHEMA}::test_a_value_that_no_visible_record_has_is_answered_with_the_nearest"
_EMPTY = "src/headgate/reading/empty_answers.py"
_FACTS = "src/headgate/reading/stream_facts.py"

_SKILL = "tests/mcp/serve/test_skill.py"
_PERIODS = "tests/sources/test_coverage.py"
_PERIOD_CODE = "src/headgate/sources/coverage.py"

BUGS = (
    Bug(
        f"{_SKILL}::test_the_skill_names_the_kinds_of_a_grant_and_no_others_and_stays_short",
        "the skill grows with the kinds of records",
        "src/headgate/mcp/serve/skill.py",
        "        if len(text) + len(line) <= SKILL_CHARS:\n            text += line\n",
        "        text += line * 9\n",
    ),
    Bug(
        f"{_SKILL}::test_a_client_reads_the_skill_and_every_call_of_it_works",
        "the skill is not listed over HTTP",
        "src/headgate/mcp/serve/server.py",
        '{"resources": [skill_resource(self.surface_for(context).kinds)]}',
        '{"resources": list[Json]()}',
    ),
    Bug(
        _COVERAGE,
        "coverage moves with every complete import",
        _FACTS,
        "if seen_at is not None and coverage.began_at <= seen_at]",
        "if seen_at is not None]",
    ),
    Bug(
        _CLIPPED,
        "coverage goes beyond the time of the grant",
        _FACTS,
        "since, until = (None, None) if scope.time is None else (scope.time.since, scope.time.until)",
        "since, until = None, None",
    ),
    Bug(
        _NEAR,
        "the values that an empty answer names are not logged",
        _EMPTY,
        "                    named.append(condition.field)\n",
        "",
    ),
    Bug(
        _SPAN,
        "the span is that of all records of a shelf",
        _SUMMARIES,
        "counted = _whole(database, scope, reach) if scope.is_whole else _part(database, scope, reach)",
        "counted = _part(database, scope, reach)[0], _whole(database, scope, reach)[1]",
    ),
    Bug(
        _FOLLOWS,
        "a span is remembered for ever",
        _SUMMARIES,
        "if remembered is None or remembered[0] != state:",
        "if remembered is None:",
    ),
    Bug(
        _VALUES, "values that a schema shows are not logged", _COMPACT, "*values.get(_place(scope), {}),", ""
    ),
    Bug(
        _INDEX,
        "the index says whose the token is",
        "src/headgate/mcp/serve/schema.py",
        'for member in ("bearer", "links"):',
        "for member in ():",
    ),
    Bug(
        _ALIKE,
        "the nearest names come from all that is declared",
        _ALLOWANCE,
        "names = list(dict.fromkeys(field for scope in scopes for field in scope.capability.fields))",
        "names = list(dict.fromkeys(field for scope in scopes for field in scope.declaration.fields))",
    ),
    Bug(
        _SHORT,
        "a hint is added to an error whatever room is left",
        _FAILURES,
        "if hint and space >= _LEAST_HINT:",
        "if hint:",
    ),
    Bug(
        _CHOICES,
        "the text lists connections as the structure does",
        _FAILURES,
        "_put(brief, [_choice_line(entry, parts) for entry in some]),",
        "_put(brief, [_only(entry, members) for entry in some]),",
    ),
    Bug(
        _PARTIAL,
        "sources that a filter leaves out are not named",
        _CLAUSES,
        "warnings = (_filter_partial(left_out, uses),) if left_out else ()",
        "warnings = ()",
    ),
    Bug(
        _SENT_FIRST,
        "the connector that alone has the fields is not named",
        _CHOOSE,
        "if len(keys) == 1 and len({scope.connector_key for scope in scopes}) > 1:",
        "if not keys:",
    ),
    Bug(
        f"{_SCHEMA}::test_frequent_values_are_those_of_visible_records_and_logged",
        "the most frequent values read as if they were all",
        _COMPACT,
        "    return [*shown, *more] if shown else ()\n",
        "    return shown\n",
    ),
    Bug(
        "tests/mcp/serve/test_alike.py::test_hits_that_lack_words_come_with_the_cursor_where_enough_have_all",
        "a page that ends early does not say why",
        "src/headgate/text/search.py",
        "    is_end = shown == count",
        "    is_end = shown > count",
    ),
    Bug(
        "tests/text/test_numbers.py::test_a_group_of_a_month_or_a_year_is_named_by_it_and_not_by_its_first_day",
        "a month is written as a day",
        "src/headgate/text/aggregate.py",
        '_TIME_CHARS = {"year": 4, "month": 7}',
        '_TIME_CHARS = {"year": 4}',
    ),
    Bug(
        f"{_PERIODS}::test_two_accounts_cover_what_both_have",
        "a connection covers what any of its accounts has",
        _PERIOD_CODE,
        "    return (instant(max(starts)) if starts else None), instant(min(ends)) or 0\n",
        "    return (instant(min(starts)) if starts else None), instant(max(ends)) or 0\n",
    ),
    Bug(
        f"{_PERIODS}::test_lines_of_an_unknown_period_make_the_whole_unknown",
        "lines of an unknown period count as covered",
        _PERIOD_CODE,
        "        periods[_OTHER] = None\n",
        "        pass\n",
    ),
    Bug(
        f"{_PERIODS}::test_importing_the_same_again_moves_nothing",
        "an import that brought nothing moves what is covered",
        "src/headgate/sources/importing.py",
        "            if summary is None or (summary.seen_at or 0) < self._began_at:\n",
        "            if summary is None:\n",
    ),
    Bug(
        f"{_PERIODS}::test_a_statement_covers_its_period_and_those_that_follow_each_other_one_together",
        "a gap between two statements counts as covered",
        _PERIOD_CODE,
        "    if later[0] is not None and day_after(earlier[1]) < later[0]:\n",
        "    if later[0] is None:\n",
    ),
)
