"""Mistakes in the content ladder: long fields, windows into them, handles, and files."""

from __future__ import annotations

from tests.structure.planted import Bug

_ARGUMENTS = "src/headgate/mcp/serve/call.py"
_BINARY = "src/headgate/text/ladder.py"
_DECIDE = "src/headgate/policy/decide.py"
_FIELD = "src/headgate/mcp/serve/field.py"
_HANDLES = "src/headgate/mcp/serve/reader.py"
_LADDER = "src/headgate/text/ladder.py"
_RESOURCES = "src/headgate/mcp/serve/resources.py"
_ROW = "src/headgate/text/records.py"
_SEARCH = "src/headgate/mcp/serve/search.py"
_SEARCH_TEXT = "src/headgate/text/search.py"
_READS = "src/headgate/model/reads.py"
_TOOLS = "src/headgate/mcp/serve/tools.py"
_WINDOW = "src/headgate/text/window.py"

BUGS = (
    Bug(
        "S3-01",
        "a long text has no resource",
        _LADDER,
        'by window, or as much as a document holds."""\n        return self._read(path)',
        'by window, or as much as a document holds."""\n        return {"read": self._read(path)["read"]}',
    ),
    Bug(
        "S3-02",
        "the text of a hit does not say that its field goes on",
        _SEARCH_TEXT,
        "f\"[{name(arguments['field_path'])}: read from {arguments.get('offset_chars', 0)}{size_chars}]\"",
        "name(arguments['field_path'])",
    ),
    Bug(
        "S3-03",
        "only the first field of a hit can be read on",
        _SEARCH,
        "for excerpt in begun[:_WINDOWS]\n",
        "for excerpt in begun[:1]\n",
    ),
    Bug(
        "S3-03",
        "only the first three hits can be read on",
        _SEARCH,
        "results = [_result(reader, hit) for hit in hits]",
        "results = [_result(reader, hit) for hit in hits]\n"
        "    for result in results[3:]:\n"
        '        result.pop("match_windows", None)',
    ),
    Bug(
        "S3-04",
        "a snippet is the whole field",
        "src/headgate/store/search/snippets.py",
        "max(start + chars, first[1])",
        "max(start + 100_000, first[1])",
    ),
    Bug(
        "S3-06",
        "a window cannot be chosen by its place",
        _READS,
        "    offset_chars: Annotated[",
        "    offset: Annotated[",
    ),
    Bug(
        "S3-07",
        "a window has no cursor to go on with",
        _FIELD,
        '"next_cursor": window.get("next_cursor")',
        '"next_cursor": None',
    ),
    Bug(
        "S3-08",
        "a row names the field to read on by another argument",
        _ROW,
        "with the id, field_path of the column and",
        "with the id, the column and",
    ),
    Bug(
        "S3-09",
        "a window shows no way back",
        _WINDOW,
        '(("next", window.next), ("previous", window.previous))',
        '(("next", window.next),)',
    ),
    Bug(
        "S3-10",
        "a cursor with offset_chars is asked for",
        _ARGUMENTS,
        "if read.cursor is not None and explicit:",
        'if read.cursor is not None and "q" in explicit:',
    ),
    Bug(
        "S3-11",
        "the refusal of two windows does not say which exclude each other",
        _ARGUMENTS,
        '"Going on with cursor excludes selecting a window with offset_chars, q, before_chars or after_chars."',
        '"The window is not valid."',
    ),
    Bug(
        "S3-12",
        "connection_id beside stream and record_id is ignored",
        _ARGUMENTS,
        "return RecordRef(ids.connection_id(connection), _stream(stream)",
        "return RecordRef(None, _stream(stream)",
    ),
    Bug(
        "S3-13",
        "a window around words does not say where they are",
        _FIELD,
        "if match is None or query.q is None",
        "if match is None or query.q is not None",
    ),
    Bug(
        "S3-14",
        "the field of a window may be left out",
        _READS,
        '    field_path: Annotated[Text, _arg("Top-level field name.", at=ONLY_TOOL)]\n',
        '    field_path: Annotated[Text, _arg("Top-level field name.", at=ONLY_TOOL)] = ""\n',
    ),
    Bug(
        "S3-15",
        "the schema of a window lets anything in beside it",
        _TOOLS,
        '"request_id")},\n    },\n    "additionalProperties": False,\n',
        '"request_id")},\n    },\n',
    ),
    Bug("S3-16", "windows have another template", _TOOLS, "field-window/{handle}", "window/{handle}"),
    Bug(
        "S3-17",
        "a window by URI is four times as long",
        _HANDLES,
        "**chosen, as_json=True",
        '**{"limit_chars": 16384, **chosen}, as_json=True',
    ),
    Bug(
        "S3-18",
        "the URI of a window names the beginning of the field",
        _FIELD,
        '{"offset_chars": window["start_chars"],',
        '{"offset_chars": 0,',
    ),
    Bug(
        "S3-19",
        "a window by URI has no URI to go on with",
        _RESOURCES,
        '"_meta": neighbours}',
        '"_meta": {}}',
    ),
    Bug(
        "S3-20",
        "the URI of a record holds its key",
        _HANDLES,
        "return RECORD + self._seal(Kind.RECORD_HANDLE, self._place(ref))",
        'return RECORD + quoted_name(f"{ref.connection_id}/{ref.stream}:{ref.record_id}")',
    ),
    Bug(
        "S3-21 S3-23 S3-26",
        "a window is read without asking for its field",
        _DECIDE,
        "field = authorize(scope, query.field, Use.SELECT).name",
        "field = query.field",
    ),
    Bug(
        "S3-22",
        "a token is admitted once for each tool",
        "src/headgate/stdio.py",
        "        access = await services.admission.admit(token)\n",
        "        access = globals().get(via) or await services.admission.admit(token)\n        globals()[via] = access\n",
    ),
    Bug(
        "S3-24",
        "a window is read from any time",
        _DECIDE,
        "plan = WindowPlan(scope.reach((field,)), query.record_id",
        'plan = WindowPlan(__import__("msgspec").structs.replace(scope.reach((field,)), time=None), query.record_id',
    ),
    Bug(
        "S3-25",
        "the record is read before a window of it",
        _FIELD,
        "    body: FieldWindowBody = (await reader.port.window(query)).body()\n",
        "    from headgate.model.query import RecordQuery\n\n"
        "    whole = RecordQuery(query.stream, query.record_id, connection_id=query.connection_id)\n"
        "    await reader.port.record(whole)\n"
        "    body: FieldWindowBody = (await reader.port.window(query)).body()\n",
    ),
    Bug(
        "S3-27",
        "every server is taken to have windows",
        "src/headgate/reading/remote.py",
        "if answer.status_code in _NO_ROUTE:",
        "if answer.status_code == 0:",
    ),
    Bug(
        "S3-28",
        "a cut text is marked and nothing more",
        _ROW,
        '        return f"{json_text(begin + ELLIPSIS)}[+{total - len(begin)} from {start}]"\n',
        "        return json_text(begin + ELLIPSIS)\n",
    ),
    Bug(
        "S3-29",
        "the call for the next window has no id",
        _WINDOW,
        'args = {"id": window.id, "field_path"',
        'args = {"field_path"',
    ),
    Bug(
        "S3-30",
        "a text of any length is given inline",
        _LADDER,
        "if size_chars <= inline_chars and len(value) == size_chars:",
        "if len(value) == size_chars:",
    ),
    Bug(
        "S3-31",
        "a long body is replaced by a marker",
        _LADDER,
        '    preview = cut(value if len(value) == size_chars else f"{value} ", min(inline_chars, len(value)))\n',
        '    preview = "[truncated]"\n',
    ),
    Bug(
        "S3-32",
        "encoded bytes with the other alphabet are shown",
        _BINARY,
        'r"[A-Za-z0-9+/_-]+={0,2}"',
        'r"[A-Za-z0-9+/]+={0,2}"',
    ),
    Bug("S3-33", "a file has no digest", _BINARY, '    "digest": ("sha256", "digest"),\n', ""),
    Bug(
        "S3-34",
        "encoded bytes inside an object are shown",
        _LADDER,
        "return binary_facts(value) or value",
        "return value",
    ),
)
