"""The acceptance rows: what Headgate promises, each promise with its proof, and how far it is.

A row is `id state | promise | proof`. A test that proves rows is marked
`@pytest.mark.requirement("S1-01", ...)`. A `done` row without such a test fails the suite, and so does a
mark that names no row, or a row that is left out here. `planned` rows may be marked ahead of time.
RS is the resource server, the mock is an MCP server in the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLE = """
# Remote MCP servers as typed operations
S0-01 done | FromMCP has endpoint, auth_token (optional), namespace | construct with and without token; attributes readable; repr has no token
S0-02 done | implements OperationAdapter: one async import method returning bundles or raising AdapterError | isinstance against the runtime protocol; inspect.iscoroutinefunction; every item is HandlerRegistration
S0-03 done | connects over streamable HTTP from the URI | mock log: first message is a POST initialize to exactly that path with both Accept types
S0-04 done | connection failure -> DiscoveryFailed | closed port; unknown host; hanging server with short timeout; HTML reply: each raises it, cause chained
S0-05 done | 401 -> Unauthorized | mock answers 401 on initialise, and separately on tools/list; a body containing "401" with status 500 does **not** count
S0-06 done | calls tools/list, reads name, description, inputSchema, outputSchema | two pages in the mock; all four values seen in specs, in order
S0-07 done | one bundle per tool | length and set of names equal the mock's tools
S0-08 done | name = tool name, or namespace/tool with prefix | both modes; wire call uses the original name in both; look-up works in both
S0-09 done | namespace = configured | differs from the mock's server-info name
S0-10 done | type MUTATION | also for a tool with readOnlyHint: true
S0-11 done | visibility INTERNAL | attribute; an external execute gives NOT_FOUND; not in services/list, schema, search
S0-12 done | input schema = inputSchema | deep equality, and mutation of the source dict does not change it
S0-13 done | output schema = declared, else block union | two tools in one mock
S0-14 done | error schemas filled for each tool | contains MCP_TOOL_ERROR with valid schema; a real error's details validate against it; definitions under _meta are mapped
S0-15 done | access control default | equals AccessControl(); anonymous internal call passes
S0-16 done | provenance FROM_MCP, authority and env None | attributes; ctx.env is None in the handler
S0-17 done | capabilities hold the bearer | expose() equals token; without token empty; never in spec JSON
S0-18 done | handler sends tools/call {name, arguments} | mock records params exactly; empty input gives {}
S0-19 done | structured content is the result, validated | conforming value = data, no issues; violating value -> issues, unwrap raises; empty object counts as present
S0-20 done | no structured content -> blocks mapped to the union | five kinds in one result; data validates against MCP_CONTENT_SCHEMA
S0-21 done | text blocks never parsed as JSON | text {"a":1} stays a string, byte for byte
S0-22 done | isError -> CallError with the content | envelope.error and unwrap()/call(): code, details contain all blocks, non-text too
S0-23 done | connection lives as long as the registration | N calls: one initialize in the mock; after aclose() one DELETE and no open sockets or tasks; session loss re-initialises once
S0-24 done | no environment: token from context per call | two calls with different capabilities give two Authorization values; token variables in the environment are ignored
S0-25 done | gated behind the extra | import blocker: core imports; from_mcp import raises ImportError naming the extra
S0-26 done | no stdio | AST scan of the package: no subprocess but the one module of sources that runs this interpreter again to parse files, which nothing of the client loads; no create_subprocess, no SDK stdio import, no command parameter; run-time: patched Popen never called during the suite
S0-27 done | unit test: import with mock -> bundles | three tools in the mock: three HandlerRegistrations, in order, named as the tools
S0-28 done | unit test: declared schema used | output_schema equals the mock's; a result that breaks it has an issue at its place and call raises
S0-29 done | unit test: absent -> union | output_schema equals MCP_CONTENT_SCHEMA and its kind is content_blocks
S0-30 done | unit test: structured used | structured content and blocks that differ: data is the structured content
S0-31 done | unit test: absent -> blocks | five kinds of block, nothing structured: data equals the blocks and fits the union
S0-32 done | unit test: isError -> CallError | call raises MCP_TOOL_ERROR whose details hold every block; execute returns it
S0-33 done | integration: handler calls a remote tool | real socket server on loopback, real HTTP client, through registry.execute
S0-34 done | integration: no environment reads | os.environ, os.getenv patched to raise during import and call
S0-35 done | test suite passes with the extra | pytest with [mcp] installed: exit 0
S0-36 done | linter clean on all code and tests with the extra | ruff check + type checker where available, zero findings; pytest with -W error; AST/compile check as fallback
S0-37 done | package works without the extra | clean venv without extra: import, non-MCP tests pass, pkg.from_mcp not in sys.modules
S0-B1 done | extra pulls only the streamable HTTP client parts | dependency list of the extra
S0-B2 done | only tools/call semantics; a later streaming extension would become Subscription | comment + no subscription produced
S0-B3 done | assembly layer registers, adapter does not | adapter has no registry parameter; registry empty after import
S0-B4 done | registry never sees MCP types | import graph: registry modules import nothing from the MCP modules
S0-B5 done | content defaults to empty list | success without content and without structured -> data []
S0-B6 done | structured result is composable | a Local operation consumes the typed data via env
S0-B7 done | builds on the shared HTTP client and error mapping | injected client used; MCP_* codes have a defined HTTP status
S0-B8 done | error path separate from output path | error with declared schema: no normalise, no issues
# Self-contained ids and search text
S1-01 done | A search id alone is enough to fetch | fetch({id}) with no other arg succeeds for every fetchable hit
S1-02 done | Hit with a connection gets {connection_id}/{stream}:{record_id} | regex on results[].id
S1-03 done | / is reserved; ids with no / parse as legacy unchanged | a table of good and bad ids
S1-04 done | Full id is in text and in results | text contains results[i].id byte for byte for each previewed hit
S1-05 done | Id never cut below usability in text | 400-char key and compound key still fetch from text
S1-06 done | fetch takes both grammars | two calls, both 200
S1-07 done | Embedded connection forwarded as connection_id query param | RS request log
S1-08 done | Adapter never invents/rewrites a connection id | forwarded value equals embedded bytes
S1-09 done | RS stays the authority on grant scope | foreign connection → RS error shown unchanged
S1-10 done | Legacy id keeps optional connection_id and typed 409 | see S1-19, S1-20
S1-11 done | Every segment checked for traversal before the RS | RS call count 0 for bad ids
S1-12 done | Non-record base ids (URLs) are not wrapped | hit with only url keeps its id
S1-13 done | No wrapping when the connection id cannot survive | connection id with / or : → plain id + separate connection_id
S1-14 done | Multi-source search: each id embeds its own connection | two connections fixture
S1-15 done | Those ids appear in text and results | substring check
S1-16 done | results[] still carries connection_id | field present
S1-17 done | Text-only journey: embedded connection forwarded | extract id from text, fetch, inspect RS query
S1-18 done | ...and fetch succeeds without ambiguous_connection | isError absent
S1-19 done | ...and document id echoes the handle | equality
S1-20 done | Legacy id behaves exactly as before, arg scopes it | RS query has/has not connection_id
S1-21 done | Unscoped ambiguous legacy read shows RS 409 envelope | error.code, available_connections, http_status:409
S1-22 done | Embedded ≠ argument → typed actionable error | conflicting_connection_id, message names both
S1-23 done | ...without an RS call | call count 0
S1-24 done | Empty / extra-separator / traversal segments → typed error | specific code, not generic
S1-25 done | ...without an RS call | call count 0
S1-26 done | Search text has a bounded hit preview, not just a count | text lists ids
S1-27 done | Each previewed hit shows its complete id | as S1-04
S1-28 done | ...and connector key, label, stream when present | substring
S1-29 done | connection_id not repeated when embedded | no connection_id= token
S1-30 done | connection_id shown only for non-embeddable hits | token present for that hit only
S1-31 done | Text compact | at most 8 000 bytes at 100 fat hits
S1-32 done | Text is not the JSON envelope | not parseable as envelope, no "object":"list"
S1-33 done | structuredContent.data is the canonical envelope | object/has_more/next_cursor/meta equal to RS body
S1-34 done | structuredContent.results is the flattened projection | id/title/url on each
S1-35 done | Preview carries each previewed hit's self-contained id | as S1-04
S1-36 done | Available stream/label/connector/title/snippet shown within budget | substring
S1-37 done | Text says: pass the id as is; connection_id only if shown | phrase check
S1-38 done | Many/large hits → text still bounded | byte test
S1-39 done | Full canonical search envelope kept in structuredContent.data | deep-equal to RS body
# The agent entrypoint
S2-01 done | One profile-free read entrypoint recommended | docs/CLI/metadata show one MCP URL
S2-02 done | Operator never has to know profile words | grep docs/help for core/events/full/toolset
S2-03 done | Setup shows the recommended path before variants | doc order
S2-04 done | Recommended path shows no event tools, dev tools, owner/control bearers, profiles | grep
S2-05 done | stdio help/env advertise no profile selector | --help text
S2-06 done | stdio starts the same surface as hosted | equal tools/list
S2-07 done | Surface is exactly six tools: schema, query_records, aggregate, search, fetch, read_record_field | set and order of tools/list
S2-08 done | connection_id is the source selector | schema property
S2-09 done | connector_instance_id is no MCP input | absent everywhere
S2-10 done | tools/list set equality | sorted names == expected
S2-11 done | no list_streams, fetch_blob, event tools | absence
S2-12 done | data tools advertise optional connection_id | per tool
S2-13 done | none advertises the alias | per tool
S2-14 done | Calls go through the same RS read contracts | RS log; unknown args rejected
S2-15 done | Never broaden grant or retry with owner credentials | one RS call, same bearer on 401/403
S2-16 done | Owner/control bearers rejected | 403 at /mcp
S2-17 done | Owner bearer in request or env → refusal | 403; exit 77
S2-18 done | ...and not processed as MCP | no JSON-RPC result
S2-19 done | Regression test measures tools/list | the encoded list has at most 10 000 bytes; a planted tool of 24 576 bytes is found
S2-20 done | ...asserts exact members and byte budget | < 24 576
S2-21 done | Serialized list below budget | measured
S2-22 done | Test fails if event/dev tool appears | mutate and fail
S2-23 done | schema defaults to compact global | data.detail=="compact"
S2-24 done | Exhaustive schema only when scoped to a stream | error otherwise
S2-25 done | Read tools put cursor/bookmark/count in text | next_cursor=, next_changes_since=, count=
S2-26 done | If rows are capped, an index lists every stream per connector | 80-stream fixture
S2-27 done | Global result bounded including structuredContent | < 60 000 bytes
S2-28 done | Broad discovery is an index | no per-field data
S2-29 done | Field detail through scoped calls | flags present with stream
S2-30 done | No stream → compact projection | a call with no arguments gives data.detail == compact
S2-31 done | Text enough to pick a stream and call again | names + hint line
S2-32 done | Every granted stream name in text | set equality
S2-33 done | Shared stream name: field + aggregation summary per row | both connectors' rows
S2-34 done | Content-only client can pick valid filter/sort/aggregate/projection/connection args | build args from text, RS accepts
S2-35 done | stream+connection_id → only that source | one row
S2-36 done | Text has connection, connector, stream, label, fields, projection, sort, count, expand, search modes, aggregation | token list
S2-37 done | Abbreviated flags come with a legend | field_capability_legend line
S2-38 done | From text alone valid filter/sort/projection/aggregate args | round-trip test
S2-39 done | detail:full w/o stream rejected before fetching the grant-wide schema | RS call count 0
S2-40 done | Error teaches schema(stream, connection_id, detail:"full") | message
S2-41 done | Scoped full returns only matching rows (RS and MCP) | row count
S2-42 done | >1 source without connection_id → typed error retry_with:"connection_id" before content | code 409, no schema body
S2-43 done | With connection_id only that connection | granted_connections length 1
S2-44 done | Scoped full is bounded | size cap test (200 KB hard cap with typed error)
S2-45 done | Document directly under structuredContent.data | no data.data
S2-46 done | No duplicate stream rows top-level and nested | streams absent when connectors present
S2-47 done | next_cursor/next_changes_since/count in text when present | token check on all read tools incl. search
S2-48 done | Content-only client can page, resume, verify counts | journey test
S2-49 done | Fan-in limit = max merged hits | ≤N over k children
S2-50 done | Each hit tells its configured connection | connection_id on hit
S2-51 done | Unscoped limit:N → ≤N | count of results over two connections
S2-52 done | Hit has connection_id, connector_key, stream, record id, label | fields
S2-53 done | Text has source mix when >1 connection | the line sources: counts the hits of each
S2-54 done | Snippets: balanced tags or plain prose | tag balance after every truncation
S2-55 done | Title is human-readable and ≠ snippet | inequality
S2-56 done | Title fallback prefers authored over emitted_at | fixture with both times, in search and fetch
S2-57 done | connection_id restricts search | RS query / one child
S2-58 done | limit applies to the scoped set | limit 1 on a scoped search gives one hit
S2-59 done | fields narrows payloads in structured tools | only those keys in data
S2-60 done | fetch follows the search/fetch document contract | shape
S2-61 done | One document object as structuredContent | keys
S2-62 done | Text is the JSON of that exact object | json.loads(text)==structuredContent
S2-63 done | No record envelope/body under structuredContent.data | absent
S2-64 done | Only id,title,text,url,metadata | key set equality
S2-65 done | content[] has the JSON mirror | json.loads of the text equals the document
S2-66 done | No data, provider_url, request_id | absent
S2-67 done | Source identity for citation/retry in metadata | stream, connection_id, connector_key
S2-68 done | fetch(fields) projects before rendering | RS called with fields
S2-69 done | Unrequested fields nowhere | canary value absent from whole result
S2-70 done | Source identity still in metadata | stream, connection_id and connector_key in metadata of a projected fetch
S2-71 done | query_records(fields) narrows to requested + identity | keys of data equal the requested fields
S2-72 done | Extra remaining fields declared as identity/operational | docs/schema list them
S2-73 done | Ambiguity errors bounded and fast | size + zero child calls
S2-74 done | Small packages: enough identity to retry; large: capped, point to schema | 12-entry cap
S2-75 done | Typed ambiguous_connection, retry_with:"connection_id" | code and retry_with of the error
S2-76 done | No child probes to build it | call count 0
S2-77 done | Entries have grant_id, connector_key, connection_id | non-null
S2-78 done | Large: totals, truncation flags, visible hint | available_connection_count, ..._truncated, ..._omitted and discovery_hint
# The content ladder
S3-01 done | Every truncated/non-inline field reachable by text, structured metadata, tool window, resource (if available) | for each such field find all four
S3-02 done | Truncated search hit text: id, field path, truncation status, next step | tokens
S3-03 done | results carry continuation metadata for same record+field | match_windows[].read.args
S3-04 done | Default search does not inline the whole body | length cap
S3-05 done | Tool read_record_field exists | tools/list
S3-06 done | Takes record identity, field identity, one selector | schema
S3-07 done | Returns readable text + continuation | result
S3-08 done | Content-only client following the hint gets the window | journey test
S3-09 done | Reply shows how to go next/previous | args lines
S3-10 done | cursor with offset_chars or q rejected before RS | call count 0
S3-11 done | Message explains cursor exclusivity | text
S3-12 done | Input = id+field_path or triple+field_path | the fixed properties, field_path required, no combinator at the root
S3-13 done | Output has record, field, window, optional resource per the fixed schema | validate against the strict output schema
S3-14 done | tools/list shows the fixed input schema | equal to the strict input schema
S3-15 done | ...and an output schema that validates results | jsonschema
S3-16 done | Templates pdpp://record/{handle}, pdpp://field-window/{handle} | resources/templates/list
S3-17 done | Resource read enforces same auth and bounds as the tool | ungranted field → same code
S3-18 done | Reading a linked URI gives the tool's window | text equality
S3-19 done | Resource reply exposes a standard continuation URI | next_uri
S3-20 done | Handles are continuation state only | decode has no secret
S3-21 done | ...and do not authorise | replay with other token fails
S3-22 done | Every read goes through token + RS grant check | RS log
S3-23 done | Out-of-grant handle fails like the RS read | same code/status
S3-24 done | Handle contents cannot bypass stream/field/time/connection limits | forged handles matrix
S3-25 done | No fetch-whole-then-slice in the adapter | only /field-window called; response ≤ limit
S3-26 done | Windows served by an RS path that enforces constraints first | RS unit tests
S3-27 done | RS path exists before the tool is enabled | startup check: tool hidden if RS lacks the route
S3-28 done | No opaque-only marker for bodies or continuations | scan text for marker without tool args
S3-29 done | Every visible handle has a callable path | for each handle, call it
S3-30 done | Oversized body → bounded preview + standard continuation | long-text fixture through all three tools
S3-31 done | Body never replaced by only a marker | preview length > 0
S3-32 done | Large binary as metadata + handle in default results | no base64 in text/structured preview
S3-33 done | MIME, size or grade, digest, standard path exposed | binary_fields[]
S3-34 done | Large binary not inlined in content[] | scan
# MCP answers in response envelopes
S4-01 done | declared outputSchema converted, else unknown | declared: equal; absent: output_kind not declared; with undeclared_output="unknown" schema is {}
S4-02 done | handler returns an MCP envelope; never raw content; no raise on isError | call registration.handler directly for ok, error, empty: isinstance envelope, meta.source == "mcp"
S4-03 done | structured content preferred as data | both present and different: data is the structured one, meta.content holds the blocks
S4-04 done | block mapper exists and maps to our types | exported function, a table of every block kind
S4-05 done | unknown block -> text block with its JSON | exact two-key dict; also through the whole call path (raw block from the mock)
S4-06 done | cast when schema known and structured present | default filled, forbidden extra dropped, unknown-schema value untouched, error value untouched
S4-07 done | isError wrapped, not thrown | execute returns; meta.is_error true; content kept
S4-08 done | transport failures raise CallError | server stopped after import; unknown tool (JSON-RPC error); 401 at call; each CallError with its code, never a raw HTTP-library error
S4-09 done | wrapper's tools are spec + handler | each item has all spec attributes and handler; registry.register_all(wrapper.tools) works
S4-10 done | existing tests updated, new ones for envelopes, structured, error | tests for envelopes, structured content and errors
S4-11 done | build, lint, tests pass | wheel builds, linter and pytest exit 0
S4-B1 done | meta carries isError (absent = false), content, structuredContent, _meta | result without isError gives false; _meta passed through unchanged
S4-B2 done | meta.content is mapped also when structured is the data | see S4-03
S4-B3 done | schema captured per tool | two tools with different schemas called interleaved
S4-B4 done | unknown schema recognised by kind, empty-object schema too | {} and True both treated as unknown
S4-B5 done | configuration mistakes raise CallError | wrong endpoint/namespace raise AdapterConfigError, a subclass of CallError, at construction
S4-B6 done | tool-not-found counts as transport level | see S4-08
"""

#: How many rows each chapter has, numbered without a gap: so that none is lost.
CHAPTERS: Mapping[str, int] = {"S0-": 37, "S0-B": 8, "S1-": 39, "S2-": 78, "S3-": 34, "S4-": 11, "S4-B": 6}
_STATES = ("planned", "done")


@dataclass(frozen=True, slots=True)
class Row:
    """One promise."""

    id: str
    state: str
    promise: str
    proof: str


def read_rows(table: str = _TABLE) -> dict[str, Row]:
    """Read the table; a line that is not a row, or stands there twice, is an error."""
    rows: dict[str, Row] = {}
    for line in table.strip().splitlines():
        if line.startswith("#"):
            continue
        head, promise, proof = line.split(" | ")
        row = Row(*head.split(" "), promise, proof)
        assert row.state in _STATES, f"{row.id} is neither {' nor '.join(_STATES)}"
        assert row.id not in rows, f"{row.id} stands in the table twice"
        rows[row.id] = row
    return rows


def expected_ids() -> Iterator[str]:
    """Give the id of every row there has to be."""
    for chapter, count in CHAPTERS.items():
        width = 1 if chapter.endswith("B") else 2
        yield from (f"{chapter}{number:0{width}}" for number in range(1, count + 1))


def marked_tests(files: Iterable[Path], mark: str = "requirement") -> dict[Any, list[str]]:
    """Find in the sources which tests name which rows, without running anything."""
    found: dict[Any, list[str]] = {}
    for file in files:
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef) and function.name.startswith(
                "test_"
            ):
                for row in _marks(function, mark):
                    found.setdefault(row, []).append(f"{file.name}::{function.name}")
    return found


def problems(rows: Mapping[str, Row], tests: Mapping[str, list[str]]) -> list[str]:
    """Say what is wrong between rows and tests; nothing, when all is well."""
    expected = set(expected_ids())
    return [
        *(f"{row} is left out of the table" for row in sorted(expected - rows.keys())),
        *(f"{row} is no row there should be" for row in sorted(rows.keys() - expected)),
        *(f"{row} is named by {tests[row]} but is no row" for row in sorted(tests.keys() - rows.keys())),
        *(
            f"{row} is done but has no test"
            for row in sorted(rows)
            if rows[row].state == "done" and row not in tests
        ),
    ]


def _marks(function: ast.FunctionDef | ast.AsyncFunctionDef, mark: str) -> Iterator[Any]:
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == f"pytest.mark.{mark}":
            yield from (ast.literal_eval(argument) for argument in decorator.args)
