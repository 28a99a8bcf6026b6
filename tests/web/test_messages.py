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
    made: World,
    path: str,
    era: str,
    method: str = "tools/list",
    *,
    written_id: str = "1",
    version: str | None = None,
    **params: Any,
) -> HttpAnswer:
    if era == ERAS[-1]:
        prefix = "io.modelcontextprotocol"
        params["_meta"] = {f"{prefix}/protocolVersion": era, f"{prefix}/clientCapabilities": {}}
    message = json.dumps({"jsonrpc": "2.0", "method": method, "params": params})
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", era if version is None else version),
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


@pytest.mark.parametrize("joined", ["{0}, {0}", "{0},{0}", " {0}", "{0} ,\t{0} , {0}"])
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("path", PATHS)
async def test_a_version_that_is_named_twice_is_one(made: World, path: str, era: str, joined: str):
    plain = await send(made, path, era)
    again = await send(made, path, era, version=joined.format(era))
    assert (again.status, again.content) == (200, plain.content)


@pytest.mark.parametrize(
    "version",
    ["2027-01-01", "2025-11-25, 2026-07-28", "2025-11-25,", "", ",", "1", LONG[:60_000], "2025-11-25;q=1"],
)
@pytest.mark.parametrize("path", PATHS)
async def test_a_version_that_is_not_served_is_refused_in_words_about_versions(
    made: World, path: str, version: str
):
    for method in ("tools/list", "initialize", "server/discover"):
        answer = await send(made, path, "2025-11-25", method, version=version, written_id='"a"')
        error = answer.body["error"]
        assert (answer.status, answer.body["id"], error["code"]) == (400, "a", -32022)
        assert "version" in error["message"]
        assert "2025-11-25, 2026-07-28" in error["message"]
        # As discovery lists them; the words name the others too, which begin with a handshake.
        assert error["data"]["supported"] == ["2026-07-28"]
        assert all(version in error["message"] for version in ("2025-06-18", "2025-11-25", "2026-07-28"))
        assert error["data"]["requested"] == version[:64]
        assert len(answer.content) < 1000


async def test_a_version_is_refused_whatever_else_is_wrong(made: World):
    headers = [("content-type", "application/json"), ("mcp-protocol-version", "x")]
    for body in (b"", b"[", b"{}", b"[" * 100_000, b"\xff"):
        answer = await made.program.ask("POST", "/mcp", made.tokens["client"], headers=headers, body=body)
        assert (answer.status, answer.body["id"], answer.body["error"]["code"]) == (400, None, -32022)
    repeated = [("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", "2026-07-28")]
    answer = await made.program.ask("POST", "/mcp", made.tokens["client"], headers=repeated, body=b"{}")
    assert answer.body["error"]["data"]["requested"] == "2025-11-25, 2026-07-28"
