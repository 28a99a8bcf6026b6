"""Servers made with other people's software: import every tool, and call each one."""

from typing import Annotated

import fastmcp
import mcp.types as mcp_types
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver import Context, Elicit, Resolve
from pydantic import BaseModel, Field

from headgate.mcp.client.from_mcp import ImportOptions, from_mcp
from headgate.mcp.client.questions import Reply
from headgate.operations.envelope import McpMeta
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl, OutputKind
from tests.peers.serving import NODE, PEERS, running, sample, serving

pytestmark = pytest.mark.anyio

ERAS = pytest.mark.parametrize("era", ["auto", "legacy"])


class Weather(BaseModel):
    """What the tools below answer with."""

    celsius: float
    words: Annotated[str, Field(default="fair")]


def sdk_server():
    server = MCPServer("sdk-everything")

    @server.tool()
    def add(a: int, b: int = 2) -> int:
        return a + b

    @server.tool()
    def weather(city: str) -> Weather:
        return Weather(celsius=21.5, words=city)

    @server.tool()
    def fails() -> str:
        raise ValueError("on purpose")

    @server.tool()
    async def with_progress(ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        return "done"

    @server.tool(structured_output=False)
    def picture() -> list:
        return [
            mcp_types.ImageContent(data="aGk=", mime_type="image/png"),
            mcp_types.ResourceLink(uri="x:1", name="one"),
            mcp_types.EmbeddedResource(
                resource=mcp_types.TextResourceContents(uri="x:2", text="inside", mime_type="text/plain")
            ),
        ]

    return server


class Confirmation(BaseModel):
    """What a tool below wants to know before it goes on."""

    sure: bool
    note: str = "none"


def ask_whether_sure() -> Elicit[Confirmation]:
    return Elicit("Really?", Confirmation)


def asking_server():
    server = MCPServer("sdk-asks")

    @server.tool()
    def delete(path: str, confirmation: Annotated[Confirmation, Resolve(ask_whether_sure)]) -> str:
        return f"{path} {confirmation.sure} {confirmation.note}"

    return server


def fastmcp_server():
    server = fastmcp.FastMCP("fastmcp-everything")

    @server.tool
    def add(a: int, b: int = 2) -> int:
        return a + b

    @server.tool
    def weather(city: str) -> Weather:
        return Weather(celsius=21.5, words=city)

    @server.tool
    def fails() -> str:
        raise ValueError("on purpose")

    return server


async def call_each(imported):
    """Call every tool with the plainest input; a tool's own failure is an answer too."""
    registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
    found = {}
    for item in imported:
        value = {"duration": 0.1, "steps": 1} if "long-running" in item.name else sample(item.input_schema)
        envelope = await registry.execute(item.id, value)
        assert isinstance(envelope.meta, McpMeta)
        if item.output_kind is OutputKind.DECLARED and not envelope.is_error:
            assert envelope.issues == (), item.id
        found[item.local_name] = envelope
    return found


@pytest.mark.requirement("S0-33")
@ERAS
@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("as_json", [True, False])
async def test_a_server_of_the_official_sdk(era, stateless, as_json):
    app = sdk_server().streamable_http_app(stateless_http=stateless, json_response=as_json)
    async with serving(app) as address:
        options = ImportOptions(era=era)
        async with await from_mcp(f"{address}/mcp", "sdk", options=options) as imported:
            found = await call_each(imported)
    assert found["add"].data == {"result": 3}
    assert found["weather"].data == {"celsius": 21.5, "words": "a"}
    assert found["fails"].error.code == "MCP_TOOL_ERROR"
    assert [block["type"] for block in found["picture"].data] == ["image", "resource_link", "resource"]


@pytest.mark.requirement("S0-33")
@ERAS
async def test_a_server_made_with_fastmcp(era):
    async with serving(fastmcp_server().http_app()) as address:
        options = ImportOptions(era=era)
        async with await from_mcp(f"{address}/mcp", "fast", options=options) as imported:
            found = await call_each(imported)
    assert found["add"].data == {"result": 3}
    assert found["weather"].data == {"celsius": 21.5, "words": "a"}
    assert found["fails"].is_error


@pytest.mark.skipif(not PEERS.exists(), reason="the Node peers are not installed")
async def test_the_reference_server_in_typescript():
    program = PEERS / "server-everything" / "dist" / "index.js"
    async with (
        running(str(NODE), str(program), "streamableHttp") as address,
        await from_mcp(f"{address}/mcp", "everything") as imported,
    ):
        assert imported.skipped == ()
        assert imported.report()["protocolVersion"] == "2025-11-25"
        found = await call_each(imported)
    assert len(found) > 8
    assert found["echo"].data == [{"type": "text", "text": "Echo: a"}]
    declared = found["get-structured-content"]
    assert declared.ok
    assert declared.meta.structured_content == declared.data


@pytest.mark.parametrize("era", ["modern", "legacy"])
async def test_a_tool_of_the_official_sdk_that_asks_is_answered(era):
    received = []

    async def answer(question):
        received.append(question)
        return Reply.accept({"sure": True})

    async with serving(asking_server().streamable_http_app()) as address:
        options = ImportOptions(era=era)
        async with await from_mcp(f"{address}/mcp", "sdk", answer=answer, options=options) as imported:
            registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
            assert await registry.call("sdk/delete", {"path": "a"}) == {"result": "a True none"}
    assert [(question.namespace, question.message) for question in received] == [("sdk", "Really?")]


@pytest.mark.skipif(not PEERS.exists(), reason="the Node peers are not installed")
async def test_the_reference_server_in_typescript_asks_and_gets_defaults_for_what_is_left_out():
    async def answer(question):
        return Reply.accept({"name": "Ada"})

    program = PEERS / "server-everything" / "dist" / "index.js"
    name = "trigger-elicitation-request"
    async with running(str(NODE), str(program), "streamableHttp") as address:
        async with await from_mcp(f"{address}/mcp", "everything") as silent:
            assert name not in {item.local_name for item in silent}
        async with await from_mcp(f"{address}/mcp", "everything", answer=answer) as imported:
            registry = Registry(expose(item, access_control=AccessControl()) for item in imported)
            text = "".join(block["text"] for block in await registry.call(f"everything/{name}", {}))
    assert '"name": "Ada"' in text
    assert '"integer": 42' in text
