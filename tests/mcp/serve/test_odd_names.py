"""Names that a declaration may have work in every tool and at every address, or are refused when they are declared."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from hypothesis import example, given, settings, strategies as st

from headgate.errors import InvalidDeclaration
from headgate.model.ids import ConnectorKey
from tests.in_process import LocalProgram, local_program
from tests.mcp.serve.odd import declaration_of, grant_to, stream_of

PARTS = st.sampled_from(
    [
        '"',
        "'",
        "\\",
        " ",
        ".",
        "..",
        "/",
        "%",
        "%2F",
        "é",
        "世界",
        "👩‍👧",
        "[",
        "]",
        ":",
        ",",
        "?",
        "#",
        "&",
        "=",
        "+",
        "a",
        "Z",
        "_",
        "-",
        "*",
        "{",
        "}",
        "|",
        ";",
        "\u202e",
        "\t",
        "$",
        "@",
    ]
)
NAMES = st.one_of(
    st.lists(PARTS, min_size=1, max_size=6).map("".join),
    st.sampled_from(["x" * 200, "世" * 200, "id ", "data", "records", "connection_id", "fields", "a" * 1025]),
)
_NUMBERS = itertools.count()


async def over_mcp(program: LocalProgram, token: str, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ]
    content = json.dumps(body).encode()
    answer = await program.ask(
        "POST", "/mcp", token, body=content, headers=[*headers, ("content-length", str(len(content)))]
    )
    assert answer.status == 200, answer.content
    result = answer.body["result"]
    assert not result.get("isError"), (tool, arguments, result["content"][0]["text"])
    return result


async def walk(program: LocalProgram, stream: str, field: str) -> None:
    """Declare a stream, fill it, and read it in every way; a name that is refused is refused at the declaration."""
    key = f"odd{next(_NUMBERS)}"
    fields = {field: {"type": "string"}, "at": {"type": "string", "format": "date-time"}}
    query = {
        "range_filters": {"at": ["gte"]},
        "search": {"lexical_fields": [field]},
        "aggregations": {"count": True, "group_by": [field]},
    }
    document = declaration_of(key, [{**stream_of(stream, fields, key="key", **query), "cursor_field": "at"}])
    try:
        await program.services.store.declare(ConnectorKey(key), document)
    except InvalidDeclaration:
        return
    connection = await program.connect(key, "Odd")
    value = "zebra words"
    line = {
        "data": {"key": "k1", field: value, "at": "2026-03-01T00:00:00Z"},
        "emitted_at": "2026-03-01T00:00:00Z",
    }
    report = await program.ingest(connection, stream, [line])
    assert report["records_accepted"] == 1, report
    token = await program.grant(grant_to(key, connection, streams={stream: ("key", field, "at")}))
    await over_rest(program, token, stream, field, value)
    await by_tools(program, token, stream, field, value)


async def over_rest(program: LocalProgram, token: str, stream: str, field: str, value: str) -> None:
    path = f"/v1/streams/{quote(stream, safe='')}"
    asked: list[tuple[str, list[tuple[str, str]]]] = [
        ("/v1/schema", [("stream", stream)]),
        (path, []),
        (f"{path}/records", [(f"filter[{field}]", value)]),
        (f"{path}/records", [("fields", field)] if "," not in field else []),
        (f"{path}/records/k1", []),
        (f"{path}/records/k1/field-window", [("field", field)]),
        (f"{path}/aggregate", [("metric", "count"), ("group_by", field)]),
        ("/v1/search", [("q", "zebra"), ("streams", stream)]),
    ]
    for where, params in asked:
        answer = await program.get(where, token, params=params)
        assert answer.status == 200, (where, params, answer.content)
        assert "zebra" in answer.content.decode() or where in {"/v1/schema", path}


async def by_tools(program: LocalProgram, token: str, stream: str, field: str, value: str) -> None:
    index = (await over_mcp(program, token, "schema", {}))["content"][0]["text"]
    named = json.loads(re.search(r'^stream name=("(?:[^"\\]|\\.)*")', index, re.MULTILINE)[1])
    assert named == stream
    await over_mcp(program, token, "schema", {"stream": named})
    await over_mcp(program, token, "schema", {"stream": named, "detail": "full"})
    page = await over_mcp(
        program, token, "query_records", {"stream": named, "filter": {field: value}, "fields": [field]}
    )
    found = await over_mcp(program, token, "search", {"q": "zebra", "streams": [named]})
    await over_mcp(program, token, "aggregate", {"stream": named, "metric": "count", "group_by": field})
    await over_mcp(program, token, "query_records", {"stream": named, "changes_since": "beginning"})
    for record_id in (
        re.search(r" id=(\S+(?: \S+)*)$", page["content"][0]["text"], re.MULTILINE)[1],
        re.search(r"^   id=(.*)$", found["content"][0]["text"], re.MULTILINE)[1],
    ):
        opened = await over_mcp(program, token, "fetch", {"id": record_id})
        assert "zebra" in opened["content"][0]["text"]
        url = json.loads(opened["content"][0]["text"])["url"]
        assert len(url) <= 300
        if "/v1" in url:
            assert "zebra" in (await program.get(url[url.index("/v1") :], token)).content.decode()
        window = await over_mcp(program, token, "read_record_field", {"id": record_id, "field_path": field})
        assert "zebra" in window["content"][0]["text"]


def test_names_that_are_accepted_at_declaration_work_everywhere():
    with tempfile.TemporaryDirectory() as directory, asyncio.Runner() as runner:
        stack = AsyncExitStack()
        program = runner.run(stack.enter_async_context(local_program(Path(directory))))

        @settings(max_examples=60, deadline=None)
        @given(NAMES, NAMES)
        @example("a/b", "a.b")
        @example("a\\b", "a\\b")
        @example("..", "..")
        @example("a..b", '"')
        @example("a,b", "a,b")
        @example("a[b]", "a[b]")
        @example("50%", "50%")
        @example("👩‍👧 x", "👩‍👧 x")
        @example("x" * 200, "y" * 200)
        def check(stream: str, field: str) -> None:
            runner.run(walk(program, stream, field))

        try:
            check()
        finally:
            runner.run(stack.aclose())
