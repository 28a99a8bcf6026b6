"""The gateway on a real socket, asked by the SDK's own client in both eras of the protocol."""

import asyncio
import json
import socket
from contextlib import asynccontextmanager

import httpx2
import pytest
import uvicorn
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from headgate.mcp.gateway.server import gateway_app, to_mcp
from headgate.mcp.gateway.tools import INSTRUCTIONS, TOOLS
from headgate.operations.envelope import mcp_envelope
from headgate.operations.registration import expose
from headgate.operations.spec import AccessControl, Identity
from tests.operations.parts import leaf, operation, registry

pytestmark = pytest.mark.anyio

PEOPLE = {"good": Identity("anna", frozenset({"read"})), "weak": Identity("bert")}
BLOCKS = [{"type": "text", "text": "no"}, {"type": "image", "data": "AA==", "mimeType": "image/png"}]
PATH = "/ops/mcp"


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def who(_value, context):
    return {"id": context.identity.id if context.identity else None, "internal": context.internal}


async def failing(_value, _context):
    return mcp_envelope(BLOCKS, is_error=True, content=BLOCKS)


async def identify(token):
    return PEOPLE.get(token)


HELD = registry(
    operation(who, "who"),
    operation(who, "members", access_control=AccessControl(required_scopes=("read",))),
    leaf(name="hidden"),
    expose(leaf(failing, "fails"), access_control=AccessControl()),
)


@asynccontextmanager
async def serving(held=HELD):
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    # Listening now, so that a client may come before the server is quite there.
    taken.listen()
    app = gateway_app(to_mcp(held, identify, version="1"), PATH, allowed_hosts=["127.0.0.1:*"])
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on"))
    task = asyncio.create_task(server.serve(sockets=[taken]))
    try:
        yield f"http://127.0.0.1:{taken.getsockname()[1]}{PATH}"
    finally:
        server.should_exit = True
        await task


@asynccontextmanager
async def client(url, mode, authorization=None):
    headers = {} if authorization is None else {"Authorization": authorization}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as connected,
    ):
        yield connected


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_a_client_of_either_era_sees_five_tools_and_uses_them(mode):
    async with serving() as url, client(url, mode) as connected:
        listed = await connected.list_tools()
        assert [tool.name for tool in listed.tools] == ["search", "schema", "call", "batch", "read"]
        assert [tool.input_schema for tool in listed.tools] == [tool["inputSchema"] for tool in TOOLS]
        assert [tool.output_schema for tool in listed.tools] == [tool.get("outputSchema") for tool in TOOLS]
        found = await connected.call_tool("search", {"query": "who"})
        assert [one["id"] for one in found.structured_content["operations"]] == ["ns/who"]
        called = await connected.call_tool("call", {"operation": "ns/who"})
        assert called.structured_content == {"output": {"id": None, "internal": False}}
        assert not called.is_error
        several = await connected.call_tool(
            "batch", {"calls": [{"operation": "ns/who"}, {"operation": "ns/hidden"}]}
        )
        assert [one["isError"] for one in several.structured_content["results"]] == [False, True]
        if mode == "legacy":
            assert connected.instructions == INSTRUCTIONS


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize(
    ("authorization", "identity", "may"),
    [
        (None, None, False),
        ("Bearer nobody", None, False),
        ("Basic Z29vZDpnb29k", None, False),
        ("Bearer", None, False),
        ("Bearer weak", "bert", False),
        ("Bearer good", "anna", True),
        ("bearer good", "anna", True),
    ],
)
async def test_the_identity_comes_from_the_bearer_of_the_request(mode, authorization, identity, may):
    async with serving() as url, client(url, mode, authorization) as connected:
        called = await connected.call_tool("call", {"operation": "ns/who"})
        assert called.structured_content["output"]["id"] == identity
        members = await connected.call_tool("call", {"operation": "ns/members"})
        assert members.is_error is not may
        if not may:
            assert members.structured_content["error"]["code"] == "NOT_FOUND"
        listed = (await connected.call_tool("search", {})).structured_content["operations"]
        assert ("ns/members" in [one["id"] for one in listed]) is may


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_errors_are_results_and_an_unknown_tool_is_a_protocol_error(mode):
    async with serving() as url, client(url, mode) as connected:
        missing = await connected.call_tool("call", {"operation": "ns/hidden"})
        assert missing.is_error
        assert missing.structured_content["error"]["code"] == "NOT_FOUND"
        remote = await connected.call_tool("call", {"operation": "ns/fails"})
        assert [block.type for block in remote.content] == ["text", "image"]
        assert remote.structured_content["error"]["details"]["content"] == BLOCKS
        with pytest.raises(MCPError) as unknown:
            await connected.call_tool("ns/who", {})
        assert unknown.value.error.code == -32602


async def test_one_connection_may_speak_for_different_people():
    params = {"name": "call", "arguments": {"operation": "ns/who"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    accept = [("Accept", "application/json, text/event-stream"), ("MCP-Protocol-Version", "2025-11-25")]
    headers = [[("Authorization", f"Bearer {token}")] for token in ("good", "weak", "nobody")]
    headers.append([*headers[0], *headers[1]])
    seen = []
    async with serving() as url, httpx2.AsyncClient(trust_env=False) as http:
        for authorization in headers:
            reply = await http.post(url, json=body, headers=[*accept, *authorization])
            data = next(line for line in reply.text.splitlines() if line.startswith("data: {"))
            seen.append(json.loads(data[6:])["result"]["structuredContent"]["output"]["id"])
    assert seen == ["anna", "bert", None, None]


async def test_no_stream_is_held_open_and_foreign_pages_are_kept_out():
    async with serving() as url, httpx2.AsyncClient(trust_env=False) as http:
        for method in ("GET", "DELETE"):
            reply = await http.request(method, url, headers={"Accept": "text/event-stream"})
            assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
        reply = await http.post(url, json={}, headers={"Origin": "https://evil.example"})
        assert reply.status_code == 403
        reply = await http.post(url, json={}, headers={"Host": "evil.example"})
        assert reply.status_code == 421


async def test_a_client_that_goes_away_ends_its_call():
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait(_value, _context):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    held = registry(operation(wait, "wait"))
    async with serving(held) as url, client(url, "2026-07-28") as connected, asyncio.timeout(10):
        call = asyncio.create_task(connected.call_tool("call", {"operation": "ns/wait"}))
        await begun.wait()
        call.cancel()
        await ended.wait()
        with pytest.raises(asyncio.CancelledError):
            await call
    assert held.in_flight == ()
