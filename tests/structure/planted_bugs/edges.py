"""Mistakes at the edges: commands, hosts, console and HTTP. Each names the test that has to see it."""

from __future__ import annotations

from tests.structure.planted import Bug

_CURSORS = "tests/web/test_short_cursors.py"
_GRANTS = "tests/cli/test_grants.py"
_HTTP = "src/headgate/web/http.py"
_WIRE = "tests/web/test_wire.py"

BUGS = (
    Bug(
        f"{_CURSORS}::test_another_process_goes_on_where_a_cursor_stands",
        "a process knows only the cursors that it named",
        "src/headgate/auth/keys.py",
        "self._directory.iterdir() if token is None else ()",
        "()",
    ),
    Bug(
        f"{_CURSORS}::test_another_process_goes_on_where_a_cursor_stands",
        "a machine knows only the cursors that it named",
        "src/headgate/store/engines/postgres.py",
        "            if row is not None:\n                self._remembered",
        "            if row is name:\n                self._remembered",
    ),
    Bug(
        f"{_CURSORS}::test_a_cursor_has_at_most_40_characters_and_goes_on",
        "a cursor of a session of changes is long",
        "src/headgate/policy/cursors.py",
        'b"s" + _wide(*numbers), binding, CURSOR_SECONDS)\n    return seals.sealer.shortened(token)',
        'b"s" + _wide(*numbers), binding, CURSOR_SECONDS)\n    return token',
    ),
    Bug(
        f"{_CURSORS}::test_an_erasure_forgets_every_cursor",
        "an erasure leaves the cursors",
        "src/headgate/store/changes/erase.py",
        "    remains.forget_cursors()\n",
        "",
    ),
    # Choices on the command line
    Bug(
        f"{_GRANTS}::test_a_stream_is_granted_in_every_source_that_has_it_and_the_preview_names_each",
        "a stream is granted in the first source that has it alone",
        "src/headgate/auth/grants.py",
        "    return tuple(request for request in requests if request.streams)",
        "    return tuple(request for request in requests if request.streams)[: 1 if choice.streams else None]",
    ),
    Bug(
        f"{_GRANTS}::test_fields_are_granted_in_each_source_that_has_them_and_a_source_without_any_is_left_out",
        "a source that has none of the chosen fields is granted whole",
        "src/headgate/auth/grants.py",
        "if chosen or (name in choice.streams and name not in fields):",
        "if chosen or name in choice.streams or name in fields:",
    ),
    # HTTP
    Bug(
        f"{_WIRE}::test_a_target_that_is_too_long_for_a_head_is_not_read_and_answered_414",
        "a head that is too large is not answered",
        _HTTP,
        "        self._refuse(414 if len(self.url) > MAX_HEADER_BYTES // 2 else 431)",
        "        self._abort()",
    ),
    Bug(
        f"{_WIRE}::test_requests_before_what_is_not_http_are_answered_by_what_they_did",
        "what is no HTTP is refused before what came before it is answered",
        _HTTP,
        "        if waits:\n",
        "        if not self:\n",
    ),
    Bug(
        "tests/web/test_pipelined.py::test_a_flood_of_requests_is_parsed_only_as_far_as_it_was_read",
        "all that a read brings is parsed",
        _HTTP,
        "PIECE_BYTES = 2048",
        "PIECE_BYTES = 1 << 20",
    ),
    Bug(
        "tests/web/test_pipelined.py::test_what_all_connections_sent_ahead_is_bounded_and_a_connection_that_adds_more_is_closed",
        "the bytes that wait are not counted over all connections",
        _HTTP,
        "LimitedHttpProtocol._all_unparsed_bytes > MAX_WAITING_BYTES",
        "len(self._unparsed) > MAX_WAITING_BYTES",
    ),
    Bug(
        "tests/console/test_pages.py::test_a_file_of_the_owner_is_embedded_by_no_page_of_another_origin_and_runs_nothing",
        "pages of other origins may embed the owner's files",
        "src/headgate/console/records.py",
        '(b"cross-origin-resource-policy", b"same-origin"),',
        '(b"cross-origin-resource-policy", b"cross-origin"),',
    ),
    Bug(
        f"{_WIRE}::test_every_answer_has_the_headers_of_all_answers_once",
        "an answer that is no page has no policy",
        "src/headgate/web/replies.py",
        "            headers.append(_NO_PAGE)\n",
        "            pass\n",
    ),
    Bug(
        "tests/test_settings.py::test_a_password_in_an_address_is_refused_and_not_repeated",
        "a refused address is repeated with its password",
        "src/headgate/settings.py",
        'is_secret = "@" in text or _IN_QUERY in text.casefold()',
        "is_secret = not text",
    ),
)
