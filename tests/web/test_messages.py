"""What both addresses for MCP refuse of a message before anything else reads it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_clients import HttpAnswer
from tests.web.test_addresses import World, world

pytestmark = pytest.mark.anyio
PATHS = ("/mcp", "/gateway")
ERAS = ("2025-06-18", "2025-11-25", "2026-07-28")
LONG = "x" * 1_000_000


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as found:
        yield found


async def send(
    made: World, path: str, era: str, method: str = "tools/list", *, written_id: str = "1", **params: Any
) -> HttpAnswer:
    if era == ERAS[-1]:
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": era, f"{prefix}/clientCapabilities": {}}
    message = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", era),
        ("mcp-method", method[:1000]),
    ]
    if "name" in params or "uri" in params:
        headers.append(("mcp-name", params.get("name", params.get("uri"))[:1000]))
    body = f'{{"id": {written_id}, {message[1:]}'.encode()
    return await made.program.ask("POST", path, made.tokens["client"], headers=headers, body=body)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", PATHS)
async def test_an_id_that_is_no_string_or_integer_or_is_long_is_refused(made: World, path: str, era: str):
    assert (await send(made, path, era)).status == 200
    assert (await send(made, path, era, written_id='"a"')).status == 200
    for unfit in ("1.5", "true", "null", "[1]", "{}", json.dumps(LONG), "9" * 1_000_000):
        answer = await send(made, path, era, written_id=unfit)
        assert (answer.status, answer.body["error"]["code"]) == (400, -32600), unfit[:20]
        assert len(answer.content) < 1000


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", PATHS)
async def test_no_long_text_of_a_message_comes_back(made: World, path: str, era: str):
    calls: list[tuple[str, dict[str, Any]]] = [
        (LONG, {}),
        ("tools/call", {"name": LONG, "arguments": {}}),
        ("tools/call", {"name": "schema", "arguments": {LONG: 1}}),
        ("tools/call", {"name": "schema", "arguments": {"stream": LONG, "operation": LONG}}),
        ("tools/list", {"cursor": LONG}),
        ("resources/read", {"uri": f"pdpp://record/{LONG}"}),
    ]
    for method, params in calls:
        answer = await send(made, path, era, method, **params)
        shown = (method[:40], list(params), answer.content[:200])
        assert b"error" in answer.content.lower(), shown
        assert len(answer.content) < 20_000, shown
