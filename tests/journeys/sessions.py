"""Sessions of the three ways to the same home: hosted over HTTP, stdio on the home, stdio on its address."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from headgate import hosting, wiring
from headgate.auth.credentials import credential_path, home_credential_path, write_token
from headgate.home import open_home
from headgate.model.rows import Batch
from headgate.settings import Settings
from tests.journeys.worlds import Record, WrittenWorld, write_worlds
from tests.mcp.serve.hosting import serving
from tests.mcp.serve.product import settings_for


class TextSession:
    """What an agent has: the texts of tools and answers, and files by URI; or the structures, of one whose host shows those."""

    def __init__(self, portal: BlockingPortal, client: Client, address: str, token: str) -> None:
        self._portal = portal
        self._client = client
        self.address = address
        self.token = token
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def descriptions(self) -> dict[str, str]:
        listed = self._portal.call(self._client.list_tools)
        return {tool.name: tool.description or "" for tool in listed.tools}

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        self.calls.append((tool, arguments))
        result = self._portal.call(self._client.call_tool, tool, arguments)
        return "\n".join(part.text for part in result.content if part.type == "text")

    def structure(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make a call that has to succeed as a host does that shows its model the structure alone."""
        result = self._portal.call(self._client.call_tool, tool, arguments)
        assert not result.is_error, (tool, arguments, result.structured_content)
        return result.structured_content

    def file(self, uri: str) -> bytes | str:
        """Read a file; of a refusal give the text that the server wrote."""
        try:
            (content,) = self._portal.call(self._client.read_resource, uri).contents
        except MCPError as refused:
            return refused.error.message
        return base64.b64decode(content.blob)

    def download(self, address: str) -> bytes:
        """Get an address over HTTP with the token of the session."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx2.get(address, headers=headers, trust_env=False)
        assert answer.status_code == 200, answer.text
        return answer.content


class SharedHome:
    """One served home with all worlds; sessions are opened when they are first used, and stay open."""

    def __init__(
        self, settings: Settings, address: str, worlds: dict[str, WrittenWorld], stack: ExitStack
    ) -> None:
        self.worlds = worlds
        self._settings = settings
        self._address = address
        self._stack = stack
        self._portal = stack.enter_context(start_blocking_portal())
        self._open: dict[tuple[str, str], TextSession] = {}

    def session(self, world: str, way: str) -> TextSession:
        if (world, way) not in self._open:
            token = self.worlds[world].token
            client = self._portal.call(self._client, token, way)
            opened = self._stack.enter_context(self._portal.wrap_async_context_manager(client))
            self._open[world, way] = TextSession(self._portal, opened, self._address, token)
        return self._open[world, way]

    def write(self, world: str, connection: str, stream: str, record: Record) -> None:
        """Write a record, as another process does."""

        async def go() -> None:
            async with wiring.open_stores(self._settings) as stores:
                line = json.dumps({"data": record}).encode()
                report = await stores.store.ingest(Batch(connection, stream, [line], 1))
                assert report.accepted == 1, report

        asyncio.run(go())
        self.worlds[world].written[connection, stream].append(record)

    def delete(self, world: str, connection: str, stream: str, key: str) -> None:
        async def go() -> None:
            async with wiring.open_stores(self._settings) as stores:
                assert await stores.store.delete_record(connection, stream, key, at=1)

        asyncio.run(go())
        written = self.worlds[world].written[connection, stream]
        written[:] = [record for record in written if record["id"] != key]

    async def _client(self, token: str, way: str) -> Client:
        if way == "hosted":
            http = httpx2.AsyncClient(
                headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=60
            )
            self._stack.callback(self._portal.call, http.aclose)
            return Client(streamable_http_client(f"{self._address}/mcp", http_client=http))
        root = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        home = self._settings.home
        for path in (credential_path(root, self._address), home_credential_path(root, home)):
            write_token(path, self._address, {"access_token": token}, created_at="2026-01-01T00:00:00Z")
        program = ["-m", "headgate", "--home", str(home), "mcp", "--cache-root", str(root)]
        remote = ["--provider-url", self._address] if way == "remote" else []
        return Client(
            StdioServerParameters(
                command=sys.executable, args=[*program, *remote], env={"HEADGATE_SEMANTIC_MODEL": "off"}
            )
        )


@contextmanager
def shared_home() -> Iterator[SharedHome]:
    """Write all worlds into a new home, and serve it."""
    with ExitStack() as stack:
        directory = stack.enter_context(tempfile.TemporaryDirectory())
        settings = settings_for(Path(directory) / "home", rate_limit="0")
        worlds = asyncio.run(write_worlds(settings))
        program = wiring.build_services(settings, open_home(settings.home))
        taken = socket.socket()
        taken.bind(("127.0.0.1", 0))
        stack.enter_context(serving(hosting.web_app(program), taken))
        yield SharedHome(settings, f"http://127.0.0.1:{taken.getsockname()[1]}", worlds, stack)
