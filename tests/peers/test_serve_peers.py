"""Other people's clients against the whole product: each goes every journey."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import fastmcp
import httpx2
import pytest
from fastmcp.client.transports import StreamableHttpTransport
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from headgate.agent_programs.programs import HttpServer, inspector_line
from headgate.mcp.serve.tools import TOOLS
from tests.mcp.serve.product import Product, product
from tests.peers.journeys import JOURNEYS, Journey, Peer, PeerResult, calls_all_six
from tests.peers.serving import NODE, PEERS

pytestmark = pytest.mark.anyio
needs_node = pytest.mark.skipif(not PEERS.exists(), reason="the Node peers are not installed")
BRIDGE = Path(__file__).parent / "node" / "bridge.mjs"
INSPECTOR = PEERS / "inspector" / "clients" / "launcher" / "build" / "index.js"


@pytest.fixture(scope="module")
def shipped() -> Iterator[Product]:
    with product(rate_limit="0") as made:
        yield made


class SdkPeer:
    """The Python SDK, or FastMCP, which answers alike."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def tools(self) -> list[str]:
        listed = await self._client.list_tools()
        return [tool.name for tool in getattr(listed, "tools", listed)]

    async def call(self, tool: str, **arguments: Any) -> PeerResult:
        call = getattr(self._client, "call_tool_mcp", self._client.call_tool)
        result = await call(tool, arguments)
        links = tuple(str(block.uri) for block in result.content if block.type == "resource_link")
        return PeerResult(result.content[0].text, result.structured_content, bool(result.is_error), links)

    async def read(self, uri: str) -> str:
        read = await self._client.read_resource(uri)
        return getattr(read, "contents", read)[0].text


class BridgePeer:
    """A client in another process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def _ask(self, **asked: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        answer = json.loads(await self._process.stdout.readline())
        assert "thrown" not in answer, answer
        return answer

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self._ask(method="tools"))["tools"]]

    async def call(self, tool: str, **arguments: Any) -> PeerResult:
        result = await self._ask(method="call", tool=tool, arguments=arguments)
        return PeerResult(
            result["content"][0]["text"], result["structuredContent"], bool(result.get("isError"))
        )

    async def read(self, uri: str) -> str:
        return (await self._ask(method="read", uri=uri))["contents"][0]["text"]


@asynccontextmanager
async def python_sdk(shipped: Product, mode: str) -> AsyncIterator[Peer]:
    headers = {"Authorization": f"Bearer {shipped.package}"}
    async with (
        httpx2.AsyncClient(headers=headers, trust_env=False) as http,
        Client(streamable_http_client(shipped.url, http_client=http), mode=mode) as client,
    ):
        yield SdkPeer(client)


@asynccontextmanager
async def fastmcp_client(shipped: Product) -> AsyncIterator[Peer]:
    headers = {"Authorization": f"Bearer {shipped.package}"}
    async with fastmcp.Client(StreamableHttpTransport(shipped.url, headers=headers)) as client:
        yield SdkPeer(client)


@asynccontextmanager
async def typescript(shipped: Product, kind: str) -> AsyncIterator[Peer]:
    process = await asyncio.create_subprocess_exec(
        str(NODE),
        str(BRIDGE),
        kind,
        shipped.url,
        shipped.package,
        str(PEERS),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 20,
    )
    try:
        yield BridgePeer(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()


@pytest.mark.requirement("S2-48", "S3-01", "S3-08", "S3-29", "S2-01")
@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.__name__)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_the_python_sdk_goes_every_journey(shipped: Product, mode: str, journey: Journey):
    async with python_sdk(shipped, mode) as peer:
        await journey(peer)


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda journey: journey.__name__)
async def test_fastmcp_goes_every_journey(shipped: Product, journey: Journey):
    async with fastmcp_client(shipped) as peer:
        await journey(peer)


@needs_node
@pytest.mark.parametrize("kind", [pytest.param("deployed", marks=pytest.mark.soak), "newest"])
async def test_typescript_clients_go_every_journey(shipped: Product, kind: str):
    async with typescript(shipped, kind) as peer:
        for journey in JOURNEYS:
            await journey(peer)


class InspectorPeer:
    """The Inspector's command line, started anew for every question."""

    def __init__(self, shipped: Product, era: str, home: Path) -> None:
        self._command = (
            *(str(NODE), str(INSPECTOR), "--cli", "--server-url", shipped.url, "--transport", "http"),
            *("--protocol-era", era, "--format", "json"),
            *("--header", f"Authorization: Bearer {shipped.package}"),
        )
        self._environment = {"HOME": str(home), "PATH": os.environ["PATH"]}

    async def _ask(self, *arguments: str) -> dict[str, Any]:
        process = await asyncio.create_subprocess_exec(
            *(*self._command, *arguments),
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        output, errors = await process.communicate()
        assert output, errors.decode()
        return json.loads(output)["result"]

    async def tools(self) -> list[str]:
        return [tool["name"] for tool in (await self._ask("--method", "tools/list", "--strict"))["tools"]]

    async def call(self, tool: str, **arguments: Any) -> PeerResult:
        given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        result = await self._ask("--method", "tools/call", *given)
        return PeerResult(
            result["content"][0]["text"], result["structuredContent"], bool(result.get("isError"))
        )

    async def read(self, uri: str) -> str:
        return (await self._ask("--method", "resources/read", "--uri", uri))["contents"][0]["text"]


@needs_node
@pytest.mark.parametrize(
    ("era", "journey"),
    [
        pytest.param(
            era,
            journey,
            # Each call starts a program of Node: one journey always, all of them in the long run.
            marks=() if (era, journey) == ("modern", calls_all_six) else pytest.mark.soak,
            id=f"{era}-{journey.__name__}",
        )
        for era in ("legacy", "modern")
        for journey in JOURNEYS
    ],
)
async def test_the_inspector_goes_every_journey(shipped: Product, era: str, journey: Journey, tmp_path: Path):
    await journey(InspectorPeer(shipped, era, tmp_path))


def node_of(version: str) -> str:
    """Find the locked Node, or that of the machine, which has to be 20 or newer."""
    if version == "locked":
        return str(NODE)
    found = shutil.which("node")
    if found is None:
        pytest.skip("needs node")
    shown = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout
    if int(shown.removeprefix("v").partition(".")[0]) < 20:
        pytest.skip("needs node 20 or newer")
    return found


def listed_by(command: list[str], home: Path) -> list[str]:
    """Run the Inspector, and give the names of the tools that it prints."""
    variables = {"HOME": str(home), "PATH": os.environ["PATH"]}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return [tool["name"] for tool in json.loads(done.stdout)["tools"]]


@needs_node
@pytest.mark.parametrize("version", ["locked", "of the machine"])
def test_the_line_that_is_printed_for_the_inspector_lists_the_tools(
    shipped: Product, tmp_path: Path, version: str
):
    npx, yes, package, *arguments = shlex.split(inspector_line(HttpServer(shipped.url, shipped.package)))
    assert (npx, yes, package) == ("npx", "-y", "@modelcontextprotocol/inspector@latest")
    command = [node_of(version), str(INSPECTOR), *arguments]
    assert listed_by(command, tmp_path) == [tool["name"] for tool in TOOLS]


@pytest.mark.soak
def test_npx_gets_an_inspector_that_lists_the_tools(shipped: Product, tmp_path: Path):
    """As the line is printed: npx installs the newest Inspector from its registry."""
    if shutil.which("npx") is None:
        pytest.skip("needs npx")
    node_of("of the machine")
    command = shlex.split(inspector_line(HttpServer(shipped.url, shipped.package)))
    assert listed_by(command, tmp_path) == [tool["name"] for tool in TOOLS]
