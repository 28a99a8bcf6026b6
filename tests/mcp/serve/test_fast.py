from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from headgate.errors import AmbiguousConnection
from headgate.mcp.serve.fast import FastPath
from tests.mcp.serve.hosting import IDENTITY, ask, hosted
from tests.mcp.serve.prepared import CountingPort, found, hit, page, reader, record, window

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
BLOB = {"blob_id": "blob_" + "0" * 64, "mime_type": "image/png", "size_bytes": 8}


def port() -> CountingPort:
    return CountingPort(
        schema={"object": "schema", "connectors": []},
        records=page(record(photo=BLOB, none=None), has_more=True, next_cursor="pg1.x"),
        record=record(text="ü" * 50),
        window=window("text\u202e", start=5),
        aggregate=AmbiguousConnection(data={"retry_with": "connection_id"}),
        search=found(hit(), hit("m2", connection="cin_b")),
    )


CALLS: list[dict[str, Any]] = [
    {"name": "schema"},
    {"name": "schema", "arguments": {}},
    {"name": "query_records", "arguments": {"stream": "messages", "limit": 5}},
    {"name": "query_records", "arguments": {"stream": "messages", "limit": 5000}},
    {"name": "aggregate", "arguments": {"stream": "messages", "metric": "count"}},
    {"name": "search", "arguments": {"q": "bridge"}},
    {"name": "fetch", "arguments": {"id": "cin_a/messages:m1"}},
    {"name": "fetch", "arguments": {"id": "broken"}},
    {"name": "read_record_field", "arguments": {"id": "cin_a/messages:m1", "field_path": "text"}},
    {"name": "unknown", "arguments": {}},
    {"name": "search", "arguments": None},
    {"name": "search", "arguments": [1]},
    {"name": 7},
    {"name": "search", "arguments": {"q": "x", "limit": 10**30}},
    {"name": "search", "arguments": {"q": "\ud800"}},
    {"name": "schema", "task": {"ttl": 1}},
    {"name": "schema", "requestState": "x"},
    {},
]
METHODS = [
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "server/discover",
    "ping",
    "nope",
    "initialize",
]


def envelope(version: str) -> dict[str, Any]:
    return {
        f"{META}protocolVersion": version,
        f"{META}clientCapabilities": {},
        f"{META}clientInfo": {"name": "peer", "version": "1"},
    }


def meta_changes() -> st.SearchStrategy[dict[str, Any]]:
    return st.sampled_from(
        [
            {},
            {},
            {"progressToken": 1},
            {"traceparent": "00-a-b-01"},
            {"example.com/x": {"a": 1}},
            {f"{META}protocolVersion": "2099-01-01"},
            {f"{META}clientCapabilities": []},
            {f"{META}clientCapabilities": {"elicitation": {"form": {}}, "roots": {"listChanged": True}}},
            {f"{META}clientCapabilities": {"roots": 7}},
            {f"{META}clientInfo": {"name": "peer"}},
            {f"{META}clientInfo": None},
            {f"{META}logLevel": "debug"},
            {f"{META}other": 1},
        ]
    )


BODY_CHANGES: list[dict[str, Any]] = [
    *([{}] * 8),
    *({"id": value} for value in ("a", None, 1.5, True, 2**60, -3)),
    *({"jsonrpc": value} for value in ("1.0", None)),
    {"extra": 1},
    {"params": None},
    {"params": []},
    {"method": 3},
]
HEADER_CHANGES: list[dict[str, str | None]] = [
    *([{}] * 6),
    {"mcp-name": None},
    {"mcp-name": "other"},
    {"mcp-name": "=?base64?c2VhcmNo?="},
    {"mcp-method": None},
    {"mcp-method": "tools/other"},
    {"mcp-protocol-version": None},
    {"mcp-protocol-version": "2099-01-01"},
    {"mcp-protocol-version": "2025-03-26"},
    {"mcp-protocol-version": "2024-11-05"},
    {"accept": "application/json"},
    {"accept": "*/*"},
    {"accept": "text/html"},
    {"accept": None},
    {"content-type": "text/plain"},
    {"content-type": "application/json; charset=utf-8"},
    {"content-type": None},
    {"mcp-session-id": "abc"},
    {"mcp-param-q": "x"},
    {"content-length": None},
]


@st.composite
def requests(draw: st.DrawFn) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    version = draw(st.sampled_from([MODERN, MODERN, "2025-11-25", "2025-06-18"]))
    method = draw(st.sampled_from(["tools/call"] * 4 + METHODS))
    params = dict(draw(st.sampled_from(CALLS))) if method == "tools/call" else {}
    if method != "tools/call" and draw(st.integers(0, 5)) == 0:
        params["cursor"] = "x"
    if version == MODERN or draw(st.integers(0, 4)) == 0:
        params["_meta"] = {**envelope(version), **draw(meta_changes())}
    elif draw(st.booleans()):
        params["_meta"] = draw(st.sampled_from([{}, {"a": 1}, {"progressToken": "t"}]))
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    body |= draw(st.sampled_from(BODY_CHANGES))
    content = json.dumps(body).encode()
    content = draw(st.sampled_from([content] * 12 + [content[:-1], b"[" + content + b"]", b"", b"[" * 2000]))
    headers: dict[str, str | None] = {
        "host": "gate.example",
        "authorization": "Bearer client",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "content-length": str(len(content)),
        "mcp-protocol-version": version,
    }
    if version == MODERN:
        headers["mcp-method"] = method
        if isinstance(params.get("name"), str):
            headers["mcp-name"] = params["name"]
    headers |= draw(st.sampled_from(HEADER_CHANGES))
    listed = [(name.encode(), value.encode()) for name, value in headers.items() if value is not None]
    twice = draw(st.sampled_from([None] * 8 + ["mcp-method", "mcp-protocol-version", "mcp-name", "accept"]))
    return content, listed + [pair for pair in listed if pair[0].decode() == twice]


def both(content: bytes, headers: list[tuple[bytes, bytes]]) -> tuple[Any, Any]:
    async def go() -> list[Any]:
        answers = []
        for with_fast_path in (True, False):
            app = hosted(port(), "http://gate.example", with_fast_path=with_fast_path)
            async with app.running():
                status, found, body = await ask(app, content, headers)
            kind = found.get("content-type")
            decoded = json.loads(body) if body and kind == "application/json" else body
            answers.append((status, kind, found.get("link"), decoded))
        return answers

    fast, slow = asyncio.run(go())
    return fast, slow


@settings(
    max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(requests())
def test_the_fast_path_and_the_sdk_answer_the_same(request: tuple[bytes, list[tuple[bytes, bytes]]]):
    fast, slow = both(*request)
    assert fast == slow


@pytest.mark.parametrize("version", [MODERN, "2025-11-25"])
@pytest.mark.parametrize("params", CALLS[:9])
def test_ordinary_calls_take_the_fast_path(version: str, params: dict[str, Any]):
    params = {**params, "_meta": envelope(MODERN)} if version == MODERN else params
    content = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    headers = [
        (b"host", b"gate.example"),
        (b"authorization", b"Bearer client"),
        (b"accept", b"application/json, text/event-stream"),
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        (b"mcp-protocol-version", version.encode()),
        (b"mcp-method", b"tools/call"),
        (b"mcp-name", params["name"].encode()),
    ]

    async def refuse(*_request: Any) -> None:
        pytest.fail("the request was passed to the SDK")

    app = FastPath(refuse, lambda _scope, _via: reader(port()), lambda _scope: (), IDENTITY)
    _, _, body = asyncio.run(ask(app, content, headers))
    assert b'"structuredContent"' in body
