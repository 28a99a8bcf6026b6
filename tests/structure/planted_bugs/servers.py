"""Mistakes that the servers of others would bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_DEADLINES = "tests/hostile/test_upstream_deadlines.py"
_CHECKED = f"{_DEADLINES}::test_the_loop_goes_on_while_a_result_is_checked"
_WAITING = f"{_DEADLINES}::test_the_time_of_a_call_covers_the_list_of_tools_that_it_waits_for"
_FORWARD = "src/headgate/mcp/client/forward.py"
_IMPORT = "src/headgate/mcp/client/from_mcp.py"
_IS_QUICK = "return all(check.is_light for check in checks) and not is_larger_than(raw, _QUICK_VALUES)"
_MESSAGE = "tests/mcp/client/test_message.py"
_SHORT_TOKEN = (
    "tests/mcp/client/test_refusals.py::test_a_token_too_short_to_be_redacted_is_refused_as_configuration"
)
_WORK = "tests/hostile/test_upstream_work.py"

BUGS = (
    # Tool lists
    Bug(
        f"{_WORK}::test_a_tool_list_that_makes_work_holds_up_nothing",
        "tool lists are examined in the event loop",
        "src/headgate/mcp/client/from_mcp.py",
        "self._adopt(await off_loop(deadline, self._examine, definitions, naming, bounds, skip_bad=skip_bad))",
        "self._adopt(self._examine(definitions, naming, bounds, skip_bad=skip_bad))",
    ),
    Bug(
        f"{_WORK}::test_a_result_with_more_blocks_or_meta_than_allowed_is_too_large",
        "any number of content blocks is taken",
        "src/headgate/mcp/client/limits.py",
        "max_blocks: int = 10_000",
        "max_blocks: int = 10_000_000",
    ),
    Bug(
        _SHORT_TOKEN,
        "a token of one character is used",
        "src/headgate/mcp/client/redaction.py",
        "if len(token.expose()) < _MIN_TOKEN_CHARS:",
        "if not token.expose():",
    ),
    Bug(
        _SHORT_TOKEN,
        "a token that a call brings is used however short",
        "src/headgate/mcp/client/forward.py",
        "return None if token is None else checked_token(token)",
        "return token",
    ),
    Bug(
        f"{_DEADLINES}::test_an_import_ends_at_its_deadline_while_its_tools_are_compared_with_the_pins",
        "a tool list has no deadline",
        _IMPORT,
        "await off_loop(deadline, self._examine,",
        "await off_loop(math.inf, self._examine,",
    ),
    Bug(
        f"{_DEADLINES}::test_tools_are_not_mapped_any_further_after_the_deadline",
        "tools are mapped after the deadline",
        _IMPORT,
        "between_tools=partial(_between_tools, deadline)",
        "between_tools=partial(_between_tools, math.inf)",
    ),
    Bug(
        _WAITING,
        "the list that a call waits for has more time than the call",
        _IMPORT,
        "                    await self._list(deadline)\n                    self._must_verify",
        "                    await self._list(self._deadline())\n                    self._must_verify",
    ),
    Bug(
        _WAITING,
        "a call waits for the list of another however long that takes",
        _IMPORT,
        "async with _held(self._verifying, deadline):",
        "async with self._verifying:",
    ),
    Bug(
        f"{_DEADLINES}::test_tools_that_all_changed_hold_up_nothing_and_are_mapped_once",
        "approved tools are mapped again each time",
        _IMPORT,
        "if known is not None and known.digest == pin.digest and",
        "if known is None and",
    ),
    Bug(
        f"{_DEADLINES}::test_the_patterns_of_what_was_approved_are_within_the_same_bound",
        "approved tools may have any number of patterns",
        _IMPORT,
        "return map_tool(pin.definition, naming, bounds.patterns)",
        "return map_tool(pin.definition, naming)",
    ),
    Bug(
        f"{_DEADLINES}::test_two_approvals_at_once_are_both_kept",
        "of two approvals at once one is lost",
        _IMPORT,
        "        async with self._approving:\n",
        "        if self._approving:\n",
    ),
    # Results
    Bug(
        _CHECKED,
        "results are checked in the event loop",
        _FORWARD,
        "            if _is_quick(tool, raw):",
        "            if tool:",
    ),
    Bug(
        _CHECKED,
        "large results are checked in the event loop",
        _FORWARD,
        _IS_QUICK,
        "return all(check.is_light for check in checks)",
    ),
    Bug(
        _CHECKED,
        "results are checked by costly schemas in the event loop",
        _FORWARD,
        _IS_QUICK,
        "return not is_larger_than(raw, _QUICK_VALUES)",
    ),
    Bug(
        f"{_DEADLINES}::test_a_result_that_takes_too_long_to_check_ends_at_the_deadline",
        "checking a result has no deadline",
        _FORWARD,
        "return await off_loop(deadline, envelope_of,",
        'return await off_loop(float("inf"), envelope_of,',
    ),
    Bug(
        f"{_MESSAGE}::test_a_number_longer_than_any_reader_takes_is_refused_wherever_it_stands"
        f" {_MESSAGE}::test_a_number_that_python_reads_and_others_do_not_is_refused_in_results_and_tools",
        "numbers of any length are read",
        "src/headgate/mcp/client/message.py",
        "if _LONG_NUMBER.search(end + outside):",
        "if _LONG_NUMBER.search(end + outside) is outside:",
    ),
    Bug(
        f"{_MESSAGE}::test_a_number_longer_than_any_reader_takes_is_refused_wherever_it_stands",
        "a long number is not seen where a slice ends in it",
        "src/headgate/mcp/client/message.py",
        "if _LONG_NUMBER.search(end + outside):",
        "if _LONG_NUMBER.search(outside):",
    ),
)
