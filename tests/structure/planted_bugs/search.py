"""Mistakes in self-contained ids and in the text of a search."""

from __future__ import annotations

from tests.structure.planted import Bug

_ARGUMENTS = "src/headgate/mcp/serve/call.py"
_ERRORS = "src/headgate/mcp/serve/failures.py"
_HANDLES = "src/headgate/mcp/serve/reader.py"
_READER = "src/headgate/mcp/serve/reader.py"
_REFERENCE = "src/headgate/model/ids.py"
_SEARCH = "src/headgate/mcp/serve/search.py"
_TEXT = "src/headgate/text/search.py"

BUGS = (
    Bug(
        "tests/mcp/serve/test_lines.py::"
        "test_a_row_of_a_page_begins_with_its_line_and_leaves_out_what_says_nothing",
        "rows begin with the fields in the order of the grant",
        "src/headgate/policy/capability.py",
        "    names = dict.fromkeys((*(name for name in stream.line.fields if name in granted), *granted))",
        "    names = dict.fromkeys(granted)",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_the_fields_of_a_line_are_logged",
        "the fields of a line are not logged",
        "src/headgate/reading/search.py",
        "    return tuple(dict.fromkeys((*_matched_fields(hit, scope), *line)))",
        "    return tuple(dict.fromkeys(_matched_fields(hit, scope) or line))",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_the_words_around_a_match_come_from_a_text_if_one_matches",
        "a sender's name is shown in place of the text that matched",
        "src/headgate/reading/search.py",
        "key=lambda snippet: snippet.field in beside)",
        "key=lambda snippet: snippet.field not in beside)",
    ),
    Bug(
        "tests/mcp/serve/test_lines.py::test_a_person_cannot_forge_a_line",
        "people are printed as they are written",
        "src/headgate/text/line.py",
        'f"{part}={json_within(str(text), _PART_BYTES)}"',
        "f'{part}=\"{text}\"'",
    ),
    Bug(
        "S1-01",
        "an id that needs a second look loses its connection",
        _HANDLES,
        "if text is None and ref.connection_id is not None and not _fits(ref.connection_id):",
        "if ref.connection_id is not None:",
    ),
    Bug(
        "S1-02 S2-50",
        "a hit's reference has no connection",
        _READER,
        'return _ref(hit.get("connection_id"),',
        "return _ref(None,",
    ),
    Bug(
        "S1-03 S1-10",
        "an id without a connection gets an empty one",
        _REFERENCE,
        "connection_id = None if plain[1] is None else ConnectionId(plain[1])",
        'connection_id = ConnectionId(plain[1] or "")',
    ),
    Bug(
        "S1-04 S1-15 S1-27 S1-35",
        "the text names a hit by stream and key",
        _TEXT,
        "facts.append(f\"id={result['id']}\" if",
        "facts.append(f\"id={hit.get('stream')}:{hit.get('record_key')}\" if",
    ),
    Bug(
        "S1-05",
        "a long id is cut",
        _HANDLES,
        "        uri = self.record_uri(ref)\n",
        "        uri = RECORD + str(text)[:ID_BYTES]\n",
    ),
    Bug(
        "S1-06",
        "only plain keys are found without a connection",
        _REFERENCE,
        "if not colon:",
        "if not colon or not slash:",
    ),
    Bug(
        "S1-07 S1-17",
        "the connection of an id is not passed on",
        _ARGUMENTS,
        "        connection_id=ref.connection_id,\n        fields=reads.fields(read.fields),",
        "        fields=reads.fields(read.fields),",
    ),
    Bug(
        "S1-08",
        "a connection's id is lowered",
        _REFERENCE,
        "None if plain[1] is None else ConnectionId(plain[1])",
        "None if plain[1] is None else ConnectionId(plain[1].lower())",
    ),
    Bug("S1-09", "every refusal is a 404", _ERRORS, '"http_status": error.status', '"http_status": 404'),
    Bug(
        "S1-11",
        "a path step inside a key is let through",
        _REFERENCE,
        'if ".." in part or part == ".":',
        'if part in {"..", "."}:',
    ),
    Bug(
        "S1-12",
        "an address is wrapped like a record",
        _SEARCH,
        'return str(hit.get("id") or _url(hit))',
        'return "record:" + str(hit.get("id") or _url(hit))',
    ),
    Bug(
        "S1-13",
        "a connection with a colon is embedded",
        _REFERENCE,
        '(_problem(ref.connection_id) or ":" in ref.connection_id)',
        "_problem(ref.connection_id)",
    ),
    Bug(
        "S1-14",
        "all hits get the connection of the first",
        _SEARCH,
        "results = [_result(reader, hit) for hit in hits]",
        'results = [_result(reader, {**hit, "connection_id": hits[0].get("connection_id")}) for hit in hits]',
    ),
    Bug(
        "S1-16",
        "a result has no connection beside its id",
        _SEARCH,
        'if hit.get("connection_id") is not None:',
        'if not hit.get("stream"):',
    ),
    Bug(
        "S1-18",
        "a short handle forgets the connection",
        _HANDLES,
        "        place = [short.connection_id, short.stream, short.record_id]\n",
        "        place = [None, short.stream, short.record_id]\n",
    ),
    Bug(
        "S1-19",
        "a document has the server's id instead of the id of the call",
        _ARGUMENTS,
        "return query, asked_id",
        "return query, handles.result_id(ref)",
    ),
    Bug(
        "S1-20",
        "connection_id beside an old id is ignored",
        _ARGUMENTS,
        "return replace(ref, connection_id=connection_id)",
        "return ref",
    ),
    Bug(
        "S1-21",
        "the connections to choose from are left out of an error",
        _ERRORS,
        "**{key: short for key in _RETRY if (short := _short(error.data.get(key))) is not None},",
        "",
    ),
    Bug(
        "S1-22",
        "a conflict names neither connection",
        _ARGUMENTS,
        "f\"The id names connection '{ref.connection_id}', connection_id names '{connection_id}'.\"",
        '"The id and connection_id name two connections."',
    ),
    Bug(
        "S1-23",
        "of two connections the argument wins",
        _ARGUMENTS,
        "    if ref.connection_id is not None:\n        raise ConflictingConnectionId(",
        "    if ref.connection_id is None:\n        raise ConflictingConnectionId(",
    ),
    Bug("S1-24", "an empty part of an id is let through", _REFERENCE, "if not part:", "if part is None:"),
    Bug(
        "S1-25",
        "an id with one slash too many is read",
        _REFERENCE,
        'if "/" in part or "\\\\" in part:',
        'if "\\\\" in part:',
    ),
    Bug(
        "S1-26",
        "the text describes hits and prints no id",
        _TEXT,
        '    facts.append(f"id={result[\'id\']}" if printed.position else "(first_fetch_id)")\n',
        "",
    ),
    Bug(
        "S1-28",
        "the text leaves the label of a source out",
        _TEXT,
        '"stream": hit.get("stream"), "display_name": label}',
        '"stream": hit.get("stream")}',
    ),
    Bug(
        "S1-29",
        "a connection is printed beside the id that holds it",
        _TEXT,
        'if result.get("connection_id") and not _embeds(result):',
        'if result.get("connection_id"):',
    ),
    Bug(
        "S1-30",
        "a connection that no id can hold is not printed",
        _TEXT,
        'if result.get("connection_id") and not _embeds(result):',
        'if result.get("connection_id") and result["id"] == "":',
    ),
    Bug(
        "S1-31 S1-38",
        "hits are printed beyond the budget",
        "src/headgate/text/writing.py",
        "        if space < 0:\n            break\n        lines.append(text)",
        "        lines.append(text)",
    ),
    Bug(
        "S1-32",
        "the text is the envelope",
        _SEARCH,
        "    return Outcome(_fitted(structured, body, text), text, ",
        "    text = msgspec.json.encode(body).decode()\n    return Outcome(_fitted(structured, body, text), text, ",
    ),
    Bug(
        "S1-33",
        "the envelope has no cursor beside the one of the text",
        _SEARCH,
        "    return Outcome(_fitted(structured, body, text), text, ",
        '    body.pop("next_cursor", None)\n    return Outcome(_fitted(structured, body, text), text, ',
    ),
    Bug(
        "S1-34",
        "a result has no address",
        _SEARCH,
        '"url": reader.url(ref) if ref.stream else _url(hit),',
        '"url": _url(hit) if not ref.stream else "",',
    ),
    Bug(
        "S1-36",
        "no line has a snippet",
        _TEXT,
        "if snippet and snippet_chars:",
        "if snippet and snippet_chars > 96:",
    ),
    Bug(
        "S1-37",
        "the text does not say when connection_id is needed",
        _TEXT,
        '    "add connection_id only where a line prints it on its own. "\n',
        "",
    ),
    Bug(
        "S1-39",
        "a member of a hit that this server does not know is lost",
        _SEARCH,
        '    for member in ("line", "data", "previews"):',
        '    for member in ("line", "data", "previews", "score"):',
    ),
)
