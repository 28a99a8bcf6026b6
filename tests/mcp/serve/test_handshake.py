"""How a session on stdio begins: answered without the SDK, byte for byte as the SDK and the hosted server answer."""

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
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.server.stdio import stdio_server

from headgate.auth.credentials import home_credential_path, write_token
from headgate.mcp.serve.handshake import Handshake
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.server import build_server
from headgate.mcp.serve.tools import WHOLE, WITHOUT_WINDOWS, Surface
from headgate.model.wire import Json
from tests.mcp.serve.hosting import IDENTITY as HOSTED, ask, hosted
from tests.mcp.serve.prepared import reader
from tests.mcp.serve.product import Product, product
from tests.mcp.serve.test_hosted import headers, port, request as hosted_request

IDENTITY = ServerIdentity("1.2.3", "other name")
CLIENT = {"name": "x", "version": "1"}
READY: Json = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LISTS = ("tools/list", "resources/list", "resources/templates/list")


def request(method: str, request_id: Any = 1, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **({"params": params} if params else {})}


def envelope(**changes: Any) -> Json:
    meta = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": CLIENT, **changes}
    return {f"io.modelcontextprotocol/{name}": value for name, value in meta.items() if value is not None}


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
METHODS = [*LISTS, "server/discover", "ping", "tools/call", "nope"]
IDS = st.sampled_from([0, 1, -1, "", "a", 2**53, 1.5, True, None])


@st.composite
def sessions(draw: st.DrawFn) -> list[Json]:
    messages: list[Json] = []
    metas: list[Json] = [
        *([envelope()] * 6),
        envelope(protocolVersion="2025-11-25"),
        envelope(clientCapabilities=None),
        *(envelope(clientCapabilities=value) for value in CAPABILITIES),
        *(envelope(clientInfo=value) for value in CLIENTS),
        {**envelope(), "progressToken": 3},
        {**envelope(), "progressToken": True},
    ]
    if draw(st.booleans()):
        greeting = request(
            "initialize",
            draw(st.sampled_from([0, "first"])),
            protocolVersion=draw(
                st.sampled_from(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2099-01-01", 3])
            ),
            capabilities=draw(st.sampled_from([CAPABILITIES[0]] * 8 + CAPABILITIES)),
            clientInfo=draw(st.sampled_from([CLIENT] * 8 + CLIENTS)),
        )
        messages = [greeting, READY] if draw(st.integers(0, 5)) else [greeting]
        metas = [{}, {}, {"progressToken": 3}, {"progressToken": True}, {"a/b": 1}]
    for _ in range(draw(st.integers(1, 3))):
        params: Json = {"cursor": "x"} if draw(st.integers(0, 9)) == 0 else {}
        meta = draw(st.sampled_from(metas))
        method = draw(st.sampled_from(METHODS))
        messages.append(request(method, draw(IDS), **params, **({"_meta": meta} if meta else {})))
    return messages


class Sdk:
    """The SDK's own session, which gets one message after the other."""

    def __init__(self, surface: Surface) -> None:
        async def reader_of(_context: object, _via: str) -> Reader:
            return reader(port())

        self._server = build_server(reader_of, IDENTITY, surface)
        self._lines, self._incoming = anyio.create_memory_object_stream[str](9)
        self._answers, self.answered = anyio.create_memory_object_stream[str](9)

    async def write(self, text: str) -> None:
        await self._answers.send(text)

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

    async def ask(self, line: str) -> str | None:
        await self._lines.send(line)
        return await self.answered.receive() if "id" in json.loads(line) else None


async def compare(session: list[Json], surface: Surface) -> int:
    """Compare both answers to every message; return the number of messages that the SDK was not needed for."""
    handshake, sdk = Handshake(IDENTITY, surface), Sdk(surface)
    async with sdk.running():
        for count, message in enumerate(session):
            line = json.dumps(message)
            answer = handshake.answer(line.encode())
            if answer is None:
                return count
            expected = await sdk.ask(line) or ""
            assert answer.decode() == expected or json.loads(answer) == json.loads(expected)
    return len(session)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sessions(), st.sampled_from([WHOLE, WITHOUT_WINDOWS]))
def test_what_is_answered_without_the_sdk_is_what_the_sdk_answers(session: list[Json], surface: Surface):
    asyncio.run(compare(session, surface))


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_ordinary_sessions_with_a_handshake_begin_without_the_sdk(version: str):
    greeting = request("initialize", 0, protocolVersion=version, capabilities={}, clientInfo=CLIENT)
    session = [greeting, READY, *(request(method) for method in LISTS), request("ping")]
    assert asyncio.run(compare(session, WHOLE)) == len(session)


def test_ordinary_sessions_without_a_handshake_begin_without_the_sdk():
    session = [request(method, _meta=envelope()) for method in ("server/discover", *LISTS)]
    assert asyncio.run(compare(session, WHOLE)) == len(session)


@pytest.mark.requirement("S2-06")
@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
def test_the_lists_are_those_of_the_hosted_server_to_the_byte(method: str, version: str):
    params: Json = {"_meta": envelope()} if version == "2026-07-28" else {}
    body = hosted_request(method, **params)
    found = headers(mcp_protocol_version=version, mcp_method=method if version == "2026-07-28" else None)

    async def go() -> bytes:
        app = hosted(port(), "http://gate.example")
        async with app.running():
            return (await ask(app, body, found))[2]

    handshake = Handshake(HOSTED, WHOLE)
    if not params:
        greeting = request("initialize", 0, protocolVersion=version, capabilities={}, clientInfo=CLIENT)
        for message in (greeting, READY):
            assert handshake.answer(json.dumps(message).encode()) is not None
    assert (handshake.answer(body) or b"").rstrip() == asyncio.run(go())


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield made


SLOW = {
    "mcp",
    "mcp_types",
    "starlette",
    "uvicorn",
    "httpx2",
    "numpy",
    "structlog",
    "anyio",
    "asyncio",
    "jinja2",
}


def imported(log: Path) -> set[str]:
    return set(re.findall(r"^import time:.*\| +([\w]+)", log.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_no_slow_library_is_imported_before_the_first_call(shipped: Product, tmp_path: Path, mode: str):
    path = home_credential_path(tmp_path, shipped.settings.home)
    write_token(path, shipped.address, {"access_token": shipped.mail}, created_at="2026-01-01T00:00:00Z")
    program = ["-m", "headgate", "--home", str(shipped.settings.home), "mcp", "--cache-root", str(tmp_path)]
    parameters = StdioServerParameters(
        command=sys.executable, args=program, env={"PATH": os.environ["PATH"], "PYTHONPROFILEIMPORTTIME": "1"}
    )
    log = tmp_path / "imports"

    async def go() -> None:
        with log.open("w", encoding="utf-8") as errors:
            async with Client(stdio_client(parameters, errlog=errors), mode=mode) as client:
                assert len((await client.list_tools()).tools) == 6
                assert "headgate" in imported(log)
                assert imported(log) & SLOW == set()
                hits = await client.call_tool("search", {"q": "bridge"})
                opened = await client.call_tool("fetch", {"id": hits.structured_content["results"][0]["id"]})
                assert not opened.is_error
                key = hits.structured_content["results"][0]["id"]
                read = await client.read_resource(f"pdpp://record/{key.replace('/', '%2F')}")
                assert json.loads(read.contents[0].text)["id"] == key

    asyncio.run(go())
