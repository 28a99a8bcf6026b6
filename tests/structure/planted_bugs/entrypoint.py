"""Mistakes in the one entrypoint for agents: how it is presented, its tools, owners' tokens, and the schema."""

from __future__ import annotations

from tests.structure.planted import Bug

_ARGUMENTS = "src/headgate/mcp/serve/call.py"
_CREDENTIALS = "src/headgate/auth/credentials.py"
_CURSOR_PAGE = "docs/how-to/connect-cursor.md"
_DECIDE = "src/headgate/policy/decide.py"
_INDEX = "src/headgate/reading/compact_schema.py"
_PAGE = "src/headgate/text/records.py"
_SCHEMA = "src/headgate/mcp/serve/schema.py"
_TEXT = "src/headgate/text/schema.py"
_INDEX_TEXT = "src/headgate/text/schema_index.py"
_READS = "src/headgate/model/reads.py"
_TOOLS = "src/headgate/mcp/serve/tools.py"

BUGS = (
    Bug(
        "S2-01",
        "discovery names an address for one kind of client",
        "src/headgate/web/mcp.py",
        '"endpoint": f"{origin}/mcp"',
        '"endpoint": f"{origin}/mcp/core"',
    ),
    Bug(
        "S2-02 S2-04",
        "a page explains profiles",
        _CURSOR_PAGE,
        "Without `--write` it prints the entry instead.",
        "Without `--write` it prints the entry instead. Choose the core profile.",
    ),
    Bug(
        "S2-03",
        "a page begins with a variant",
        _CURSOR_PAGE,
        "## Recommended\n",
        "## With stdio\n\nUse `headgate mcp`.\n\n## Recommended\n",
    ),
    Bug(
        "S2-05",
        "the help of mcp offers a profile",
        "src/headgate/cli/serve.py",
        'help="The server name that the client sees."',
        'help="The profile or server name that the client sees."',
    ),
    Bug(
        "S2-06",
        "stdio never offers windows",
        "src/headgate/mcp/serve/remote.py",
        "WHOLE if windows else WITHOUT_WINDOWS",
        "WITHOUT_WINDOWS if windows else WHOLE",
    ),
    Bug(
        "S2-07 S2-10 S3-05",
        "the window tool is called by another name",
        _READS,
        'tool: ClassVar[str] = "read_record_field"',
        'tool: ClassVar[str] = "read_field"',
    ),
    Bug(
        "S2-08 S2-12",
        "aggregate takes no connection_id",
        _READS,
        "    extract: Annotated[Extraction | None, _EXTRACT] = None\n"
        "    connection_id: Annotated[Text | None, _CONNECTION] = None\n",
        "    extract: Annotated[Extraction | None, _EXTRACT] = None\n",
    ),
    Bug(
        "S2-09 S2-13",
        "fetch lists the old name of connection_id",
        _READS,
        "    fields: Annotated[Texts | None, _FIELDS] = None\n    expand:",
        "    fields: Annotated[Texts | None, _FIELDS] = None\n"
        "    connector_instance_id: Annotated[Text | None, _CONNECTION] = None\n    expand:",
    ),
    Bug(
        "S2-11 S2-22",
        "a tool lists streams",
        _TOOLS,
        "TOOLS: tuple[Json, ...] = _tools(kinds_of(()))\n",
        'TOOLS: tuple[Json, ...] = (*_tools(kinds_of(())), {**_tool(SchemaRead, "Streams", "All.", _answer("data")), "name": "list_streams"})\n',
    ),
    Bug(
        "S2-14",
        "unknown arguments are ignored",
        _READS,
        "frozen=True, forbid_unknown_fields=True",
        "frozen=True",
    ),
    Bug(
        "S2-15",
        "a refused read is made again",
        "src/headgate/mcp/serve/call.py",
        "        return await running\n    except HeadgateError as error:\n",
        "        return await running\n    except HeadgateError as error:\n"
        "        with __import__('contextlib').suppress(HeadgateError):\n"
        "            return await TOOL_HANDLERS[name](reader, arguments)\n",
    ),
    Bug(
        "S2-16",
        "only the word owner is an owner",
        _CREDENTIALS,
        'frozenset({"owner", "control_plane", "owner_agent"})',
        'frozenset({"owner"})',
    ),
    Bug(
        "S2-17",
        "the session cookie of an owner in the environment is overlooked",
        _CREDENTIALS,
        'OWNER_VARIABLES = ("PDPP_OWNER_TOKEN", "PDPP_OWNER_SESSION_COOKIE")',
        'OWNER_VARIABLES = ("PDPP_OWNER_TOKEN",)',
    ),
    Bug(
        "S2-18",
        "the file's label decides what a token of a home is",
        "src/headgate/stdio.py",
        "if summary.kind == TokenKind.OWNER.value:",
        "if summary.kind is None:",
    ),
    Bug(
        "S2-19 S2-20 S2-21",
        "a description is as long as a page",
        _TOOLS,
        "of {named}. Without arguments",
        "of {named}. {'Read all of this. ' * 1500} Without arguments",
    ),
    Bug(
        "S2-23 S2-30",
        "the index does not say that it is compact",
        _SCHEMA,
        '    document["detail"] = "compact"\n',
        '    document["detail"] = "index"\n',
    ),
    Bug(
        "S2-24 S2-39",
        "a full schema of everything is asked for",
        _ARGUMENTS,
        'if read.detail == "full" and read.stream is None:',
        'if read.detail == "all" and read.stream is None:',
    ),
    Bug(
        "S2-25",
        "a bookmark is not printed",
        _PAGE,
        'for key in ("next_cursor", "next_changes_since")}',
        'for key in ("next_cursor",)}',
    ),
    Bug(
        "S2-26",
        "a long index names only the streams it has rows for",
        _INDEX_TEXT,
        "        lines += _stream_indexes(document, named, len(rows), arguments)\n",
        "",
    ),
    Bug(
        "S2-27",
        "an index of any length is given whole",
        _SCHEMA,
        "+ written <= UNASKED_RESULT - ENVELOPE:",
        "+ written <= 10 * UNASKED_RESULT:",
    ),
    Bug(
        "S2-28",
        "the index holds the fields of every stream",
        _SCHEMA,
        '    "cursor_field",\n    "field_capabilities",\n',
        '    "cursor_field",\n',
    ),
    Bug(
        "S2-29",
        "fields are named without their flags",
        _TEXT,
        'return [f"{name(path)}[{text}]" for path, text in flags.items()]',
        "return [name(path) for path in flags]",
    ),
    Bug(
        "S2-31",
        "the index does not say how to go on",
        _INDEX_TEXT,
        "return compose([*lines, *printed, Line(_NEXT_INDEX)], SCHEMA_INDEX_TEXT)",
        "return compose([*lines, *printed], SCHEMA_INDEX_TEXT)",
    ),
    Bug(
        "S2-32",
        "streams without records are left out of the index",
        _INDEX,
        "    rows = [_compact_stream(scope, summaries, values.get(_place(scope), {})) for scope in group]\n",
        "    group = [scope for scope in group if count_of(scope, summaries)] or list(group)[:1]\n"
        "    rows = [_compact_stream(scope, summaries, values.get(_place(scope), {})) for scope in group]\n",
    ),
    Bug(
        "S2-33",
        "sources of two connectors share the line of the first",
        _TEXT,
        'key = json_text([connector.get("connector_key"), _shape(stream)])',
        'key = json_text([stream.get("name")])',
    ),
    Bug(
        "S2-34 S2-38",
        "a range that is refused is flagged as usable",
        "src/headgate/reading/stream_facts.py",
        'body: FlagBody = {"declared": flag.declared, "usable": flag.usable}',
        'body: FlagBody = {"declared": flag.declared, "usable": True}',
    ),
    Bug(
        "S2-35 S2-43",
        "a schema of one connection shows them all",
        _DECIDE,
        "            part for candidate in scopes if (part := candidate.on(query.connection_id)) is not None\n",
        "            candidate for candidate in scopes if candidate.on(query.connection_id) is not None\n",
    ),
    Bug("S2-36", "the text does not say how to sort", _TEXT, '        f"sort={_sort(stream)}",\n', ""),
    Bug("S2-37", "flags come without a legend", _TEXT, ", _LEGEND_LINE]", "]"),
    Bug(
        "S2-40",
        "the refusal of a full schema does not show the call",
        _ARGUMENTS,
        'then schema(stream, connection_id, detail: "full").',
        "then ask for one stream.",
    ),
    Bug(
        "S2-41",
        "a full schema of one stream has the others too",
        _DECIDE,
        "scopes = allowance.scopes if query.stream is None else allowance.by_stream.get(query.stream, ())\n",
        "scopes = allowance.scopes\n",
    ),
    Bug(
        "S2-42",
        "a full schema of two sources is given",
        _DECIDE,
        "if query.exhaustive and sum(len(scope.connections) for scope in scopes) > 1:",
        "if query.exhaustive and len(scopes) > 1:",
    ),
    Bug(
        "S2-44",
        "a full schema has no bound",
        _SCHEMA,
        "if len(answer.content) > _FULL_BYTES -",
        "if len(answer.content) > 100 * _FULL_BYTES -",
    ),
    Bug(
        "S2-45",
        "the document lies one level deeper",
        _SCHEMA,
        "    text = text_within((UNASKED",
        '    document = {"data": document}\n    text = text_within((UNASKED',
    ),
    Bug(
        "S2-46",
        "streams are listed twice in a schema of one stream",
        _SCHEMA,
        '    if document.get("connectors") is not None:\n',
        '    if document.get("connectors") is not None and query.stream is None:\n',
    ),
    Bug(
        "S2-47",
        "pages of changes have no cursor",
        "src/headgate/reading/records.py",
        "    body = _list_body(query, rows, token)\n    if token is None:\n",
        "    body = _list_body(query, rows, None)\n    if token is None:\n",
    ),
    Bug(
        "S2-48",
        "a deletion is printed without its id",
        "src/headgate/text/records.py",
        "deleted_at={json_text(row.get('deleted_at'))}{_JOINT}id={record_id}",
        "deleted_at={json_text(row.get('deleted_at'))}",
    ),
)
