"""Mistakes that the servers of others would bring out. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_DEADLINES = "tests/hostile/test_upstream_deadlines.py"
_CHECKED = f"{_DEADLINES}::test_the_loop_goes_on_while_a_result_is_checked"
_WAITING = f"{_DEADLINES}::test_the_time_of_a_call_covers_the_list_of_tools_that_it_waits_for"
_FORWARD = "src/headgate/mcp/client/forward.py"
_IMPORT = "src/headgate/mcp/client/from_mcp.py"
_PINS = "src/headgate/mcp/client/pins.py"
_IS_QUICK = "return all(check.is_light for check in checks) and not is_larger_than(raw, _QUICK_VALUES)"
_LATER = "tests/mcp/client/test_calls.py::test_a_server_that_asks_for_a_later_try_names_the_time"
_MESSAGE = "tests/mcp/client/test_message.py"
_SHORT_TOKEN = (
    "tests/mcp/client/test_refusals.py::test_a_token_too_short_to_be_redacted_is_refused_as_configuration"
)
_SPECIAL = "tests/mcp/client/test_addresses.py::test_an_address_of_a_special_registry_is_never_called"
_STATE = "src/headgate/mcp/client/request_state.py"
_WORK = "tests/hostile/test_upstream_work.py"

BUGS = (
    # Tool lists
    Bug(
        f"{_WORK}::test_a_tool_list_that_makes_work_holds_up_nothing",
        "tool lists are examined in the event loop",
        "src/headgate/mcp/client/from_mcp.py",
        "self._adopt(*await off_loop(deadline, self._examine, definitions, naming, bounds, skip_bad=skip_bad))",
        "self._adopt(*self._examine(definitions, naming, bounds, skip_bad=skip_bad))",
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
        "src/headgate/mcp/client/message.py",
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
        "                    await self._list(self.client.deadline())\n                    self._must_verify",
    ),
    Bug(
        _WAITING,
        "a call waits for the list of another however long that takes",
        _IMPORT,
        'async with held(self._verifying, deadline, late="The tools were not listed again in time."):',
        "async with self._verifying:",
    ),
    Bug(
        f"{_DEADLINES}::test_tools_that_all_changed_hold_up_nothing_and_are_mapped_once",
        "approved tools are mapped again each time",
        _PINS,
        "if approved is not None and approved.digest == pin.digest:",
        "if approved is not None and approved.digest != pin.digest:",
    ),
    Bug(
        f"{_DEADLINES}::test_the_patterns_of_what_was_approved_are_within_the_same_bound",
        "approved tools may have any number of patterns",
        _PINS,
        "return map_tool(pin.definition, listing.naming, bounds.patterns)",
        "return map_tool(pin.definition, listing.naming)",
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
    # Answers
    Bug(
        "tests/hostile/test_upstream_answers.py::test_an_answer_with_another_id_is_never_a_success",
        "any answer is the answer to our request",
        "src/headgate/mcp/client/wire.py",
        "    if message.id != state.rpc_id and not",
        "    if message.id is None and not",
    ),
    Bug(
        f"{_MESSAGE}::test_events_are_the_same_however_the_bytes_are_split",
        "CR and LF in two pieces are two ends of lines",
        "src/headgate/mcp/client/wire.py",
        'self._skips_newline = chunk.endswith(b"\\r")',
        'self._skips_newline = chunk == b"\\r"',
    ),
    Bug(
        "tests/hostile/test_upstream_answers.py::test_a_dialect_that_is_not_known_refuses_its_tool",
        "a schema of any dialect is taken",
        "src/headgate/schema/guard.py",
        "if not isinstance(dialect, str) or not _DIALECT.fullmatch(dialect):",
        "if not isinstance(dialect, str):",
    ),
    Bug(
        "tests/mcp/client/test_refusals.py"
        "::test_a_refusal_keeps_status_challenge_and_the_words_of_the_server",
        "the challenge of a refusal is dropped",
        "src/headgate/mcp/client/wire.py",
        'known = {"www_authenticate": challenge, "server_message": words}',
        'known = {"server_message": words}',
    ),
    Bug(
        _LATER,
        "a server asks for a pause of any length",
        _STATE,
        "return min(float(text), _LONGEST_PAUSE_SECONDS)",
        "return float(text)",
    ),
    Bug(
        _LATER,
        "a date without a zone is a fault of ours",
        _STATE,
        "except (ValueError, TypeError, OverflowError):",
        "except (ValueError, OverflowError):",
    ),
    Bug(
        "tests/mcp/client/test_addresses.py::test_an_address_wrapped_in_another_is_judged_by_its_inside",
        "an address behind NAT64 is public",
        "src/headgate/operations/network_addresses.py",
        '_networks("::ffff:0:0/96", "64:ff9b::/96")',
        '_networks("::ffff:0:0/96")',
    ),
    Bug(
        _SPECIAL,
        "every IPv6 address is public",
        "src/headgate/operations/network_addresses.py",
        "is_public = isinstance(address, ipaddress.IPv4Address) or _is_in(address, _PUBLIC_IPV6)",
        "is_public = True",
    ),
    Bug(
        _SPECIAL,
        "addresses for protocols are public",
        "src/headgate/operations/network_addresses.py",
        '    "192.0.0.0/24",\n',
        "",
    ),
    Bug(
        "tests/hostile/test_upstream_answers.py::test_depth_in_one_tool_is_the_problem_of_that_tool",
        "depth in one tool refuses all of them",
        "src/headgate/mcp/client/message.py",
        "        if not cuts_depth:",
        "        if cuts_depth or not cuts_depth:",
    ),
    Bug(
        "tests/hostile/test_upstream.py::test_a_tool_list_of_a_hundred_pages_is_read_to_its_end",
        "a tool list has at most fifty pages",
        "src/headgate/mcp/client/limits.py",
        "max_pages: int = 100",
        "max_pages: int = 50",
    ),
)
