"""The part of a session on stdio that is answered without the SDK: the same answers, and a quick start."""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.stdio import stdio_server

from headgate.auth.credentials import home_credential_path, write_token
from headgate.mcp.serve.call import call_with
from headgate.mcp.serve.plain import NotPlain
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity, constant_result, result_of
from headgate.mcp.serve.server import build_server
from headgate.mcp.serve.stdio_fast import StdioFastPath
from headgate.mcp.serve.tools import WHOLE, WITHOUT_WINDOWS, Surface
from headgate.model.wire import Json
from tests.mcp.serve.prepared import CountingPort, reader
from tests.mcp.serve.product import Product, product
from tests.mcp.serve.test_hosted import ALL_SIX, port

IDENTITY = ServerIdentity("1.2.3", "other name")
CLIENT = {"name": "x", "version": "1"}


def request(method: str, request_id: Any = 1, **params: Any) -> Json:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": method,
        **({"params": params} if params else {}),
    }


def envelope(**changes: Any) -> Json:
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": CLIENT, **changes}
    return {f"io.modelcontextprotocol/{name}": value for name, value in meta.items() if value is not None}


READY: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
CAPABILITIES = [
    {},
    {"roots": {"listChanged": True}},
    {"roots": {"listChanged": "yes"}},
    {"sampling": {}, "elicitation": {"form": {}}},
    {"roots": 3},
    {"experimental": {"a": {}}},
    {"other": {}},
    [],
]
CLIENTS = [
    CLIENT,
    {"name": "x"},
    {**CLIENT, "title": "X"},
    {**CLIENT, "icons": []},
    {**CLIENT, "title": 3},
    None,
]
PARAMS: list[Json] = [
    *({"name": name, "arguments": arguments} for name, arguments in ALL_SIX.items()),
    {"name": "schema"},
    {"name": "schema", "arguments": {"detail": "full"}},
    {"name": "search", "arguments": {"q": "\ud800"}},
    {"name": "nope", "arguments": {}},
    {"name": "schema", "arguments": []},
    {"name": "schema", "task": {}},
    {"arguments": {}},
]
METHODS = ["tools/list", "resources/list", "resources/templates/list", "server/discover", "ping", "nope"]
IDS = st.sampled_from([0, 1, -1, "", "a", 2**53, 1.5, True, None])


@st.composite
def openings(draw: st.DrawFn) -> list[Json]:
    if draw(st.booleans()):
        greeting = request(
            "initialize",
            draw(st.sampled_from([0, "first"])),
            protocolVersion=draw(
                st.sampled_from(["2025-11-25", "2025-06-18", "2024-11-05", "2099-01-01", 3])
            ),
            capabilities=draw(st.sampled_from([CAPABILITIES[0]] * 8 + CAPABILITIES)),
            clientInfo=draw(st.sampled_from([CLIENT] * 8 + CLIENTS)),
        )
        return [greeting, READY] if draw(st.integers(0, 5)) else [greeting]
    return []


@st.composite
def sessions(draw: st.DrawFn) -> list[Json]:
    begun = draw(openings())
    changes = [
        {},
        {"clientInfo": None},
        {"protocolVersion": "2025-11-25"},
        {"clientCapabilities": None},
        {"more": 1},
    ]
    metas = (
        [{}, {"progressToken": 3}, {"progressToken": True}, {"a/b": 1}]
        if begun
        else [
            *([envelope()] * 6),
            *(envelope(**change) for change in changes),
            *(envelope(clientCapabilities=one) for one in CAPABILITIES),
            *(envelope(clientInfo=one) for one in CLIENTS),
            {**envelope(), "protocolVersion": "2026-07-28"},
            {**envelope(), "progressToken": 3, "traceparent": "00-a-b-01", "example.com/x": {"a": 1}},
            {**envelope(), "progressToken": True},
        ]
    )
    for _ in range(draw(st.integers(1, 3))):
        method = draw(st.sampled_from(["tools/call"] * 4 + METHODS))
        params = dict(draw(st.sampled_from(PARAMS))) if method == "tools/call" else {}
        if draw(st.integers(0, 9)) == 0:
            params["cursor"] = "x"
        meta = draw(st.sampled_from(metas))
        begun.append(request(method, draw(IDS), **params, **({"_meta": meta} if meta else {})))
    return begun


class Sdk:
    """The SDK's own session, which gets one message after the other."""

    def __init__(self, surface: Surface, through: CountingPort) -> None:
        async def reader_of(_context: object, _via: str) -> Reader:
            return reader(through)

        self._server = build_server(reader_of, IDENTITY, surface)
        self._lines, self._incoming = anyio.create_memory_object_stream[str](9)
        self._answers, self.answered = anyio.create_memory_object_stream[Json](9)

    async def write(self, text: str) -> None:
        await self._answers.send(json.loads(text))

    async def flush(self) -> None:
        await anyio.lowlevel.checkpoint()

    def __aiter__(self) -> AsyncIterator[str]:
        return self._incoming.__aiter__()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._run)
            yield
            tasks.cancel_scope.cancel()
        for stream in (self._lines, self._incoming, self._answers, self.answered):
            stream.close()

    async def _run(self) -> None:
        async with stdio_server(self, self) as (incoming, outgoing):
            await self._server.run(incoming, outgoing, self._server.create_initialization_options())

    async def ask(self, line: str) -> Json | None:
        await self._lines.send(line)
        return await self.answered.receive() if "id" in json.loads(line) else None


async def fresh_reader(_via: str) -> Reader:
    return reader(port())


async def compare(session: list[Json], surface: Surface) -> int:
    """Compare both answers to every message; give the number of messages that were plain."""
    fast, sdk = StdioFastPath(surface), Sdk(surface, port())
    async with sdk.running():
        for count, message in enumerate(session):
            line = json.dumps(message)
            request = fast.read(line.encode())
            if isinstance(request, NotPlain):
                return count
            expected = await sdk.ask(line)
            if request is None:
                assert expected is None
                continue
            if request.arguments is None:
                result = constant_result(request.method, IDENTITY, surface, request.version)
            else:
                outcome = await call_with(fresh_reader, request.tool, request.arguments)
                result = result_of(outcome, IDENTITY, request.version)
            answer = {"jsonrpc": "2.0", "id": request.id, "result": result}
            assert json.loads(msgspec.json.encode(answer)) == expected
    return len(session)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.sampled_from([WHOLE, WITHOUT_WINDOWS]))
def test_what_is_answered_without_the_sdk_is_what_the_sdk_answers(session: list[Json], surface: Surface):
    asyncio.run(compare(session, surface))


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_ordinary_sessions_with_a_handshake_are_plain_to_their_end(version: str):
    begun = request("initialize", 0, protocolVersion=version, capabilities={}, clientInfo=CLIENT)
    calls = [request("tools/call", n, **one) for n, one in enumerate(PARAMS[:8])]
    session = [begun, READY, request("tools/list"), request("resources/list"), *calls]
    assert asyncio.run(compare(session, WHOLE)) == len(session)


def test_ordinary_sessions_without_a_handshake_are_plain_to_their_end():
    meta = envelope()
    calls = [request("tools/call", n, **one, _meta=meta) for n, one in enumerate(PARAMS[:8])]
    session = [request("server/discover", 0, _meta=meta), request("tools/list", _meta=meta), *calls]
    assert asyncio.run(compare(session, WHOLE)) == len(session)


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield made


SLOW = {"mcp", "mcp_types", "starlette", "uvicorn", "httpx2", "httpcore2", "jsonschema", "jinja2"}


def imported(log: Path) -> set[str]:
    return set(re.findall(r"^import time:.*\| +([\w]+)", log.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("mode", ["legacy", "auto", "2026-07-28"])
def test_no_slow_library_is_imported_before_it_is_needed(shipped: Product, tmp_path: Path, mode: str):
    path = home_credential_path(tmp_path, shipped.settings.home)
    write_token(path, shipped.address, {"access_token": shipped.mail}, created_at="2026-01-01T00:00:00Z")
    program = ["-m", "headgate", "--home", str(shipped.settings.home), "mcp", "--cache-root", str(tmp_path)]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=program,
        env={"PATH": os.environ["PATH"], "PYTHONPROFILEIMPORTTIME": "1"},
    )
    log = tmp_path / "imports"

    async def go() -> None:
        with log.open("w", encoding="utf-8") as errors:
            async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
                assert len((await client.list_tools()).tools) == 6
                found = await client.call_tool("search", {"q": "bridge"})
                opened = await client.call_tool("fetch", {"id": found.structured_content["results"][0]["id"]})
                assert not opened.is_error
                assert "headgate" in imported(log)
                assert imported(log) & SLOW == set()
                # The first thing that is not plain goes to the SDK, in the same session.
                key = found.structured_content["results"][0]["id"]
                read = await client.read_resource(f"pdpp://record/{key.replace('/', '%2F')}")
                assert json.loads(read.contents[0].text)["id"] == key
                assert {"mcp", "mcp_types"} <= imported(log)
                again = await client.call_tool("fetch", {"id": key})
                assert again.structured_content == opened.structured_content

    asyncio.run(go())
