"""An MCP server on a real socket that misbehaves as a test configures it.

Without faults it is an honest server of either era with a few tools. A fault replaces its answer to one method;
the requests it received are in ``seen``.
"""

from __future__ import annotations

import asyncio
import json
import socket
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

MODERN = "2026-07-28"
LEGACY = "2025-11-25"


@dataclass(slots=True)
class Seen:
    """One request, as it arrived."""

    verb: str
    path: str
    headers: dict[str, str]
    body: Any
    connection: int
    reader: asyncio.StreamReader

    @property
    def method(self) -> str:
        return self.body.get("method", "") if isinstance(self.body, dict) else ""

    @property
    def id(self) -> Any:
        return self.body.get("id") if isinstance(self.body, dict) else None

    @property
    def params(self) -> dict[str, Any]:
        return self.body.get("params", {})


#: Writes something in place of an answer.
Fault = Callable[[Seen, asyncio.StreamWriter], Awaitable[None]]


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": f"Does {name}.", "inputSchema": {"type": "object"}, **more}


def result_of(seen: Seen, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": seen.id, "result": result}


def error_of(seen: Seen, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message} | ({} if data is None else {"data": data})
    return {"jsonrpc": "2.0", "id": seen.id, "error": error}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def http(status: int, body: bytes = b"", *, kind: str = "application/json", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Whatever", f"content-type: {kind}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def rpc(message: Any, status: int = 200, **headers: str) -> bytes:
    return http(status, json.dumps(message).encode(), **headers)


@dataclass
class FaultyServer:
    """The server; change its attributes while it runs."""

    era: str = LEGACY
    tools: list[Any] = field(default_factory=lambda: [tool("echo"), tool("other")])
    #: What tools/call answers, by tool; anything else is echoed.
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: dict[str, Fault] = field(default_factory=dict)
    page_size: int | None = None
    token: str | None = field(default=None, repr=False)
    list_changed: bool = False
    #: Not in the repr, because requests hold tokens.
    seen: list[Seen] = field(default_factory=list, repr=False)
    live_connections: set[int] = field(default_factory=set)
    connections: int = 0
    sessions: int = 0
    live_sessions: set[str] = field(default_factory=set)
    port: int = 0
    listening: Any = None
    held: socket.socket | None = None
    tls: Any = None
    streams: list[asyncio.StreamWriter] = field(default_factory=list)
    tasks: set[Any] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"{'https://localhost' if self.tls else 'http://127.0.0.1'}:{self.port}/mcp"

    @property
    def open_connections(self) -> int:
        return len(self.live_connections)

    def calls(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]

    async def announce(self, method: str = "notifications/tools/list_changed") -> None:
        """Send a notification on every open stream of the handshake era."""
        for writer in self.streams:
            writer.write(sse({"jsonrpc": "2.0", "method": method}))
            await writer.drain()

    async def stop(self) -> None:
        """Stop listening and cut every connection."""
        self.listening.close()
        if self.held is None:
            # Bound but not listening: no other process gets the port, so calls to it are refused.
            self.held = socket.socket()
            self.held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.held.bind(("127.0.0.1", self.port))
        for task in list(self.tasks):
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def start_again(self) -> None:
        """Listen at the same port after a stop; what was known of sessions is lost."""
        assert self.held is not None
        self.live_sessions.clear()
        self.listening = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.held.close()
        self.held = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.held is not None:
            # It was accepted just before the server stopped.
            writer.transport.abort()
            return
        task = asyncio.current_task()
        self.tasks.add(task)
        self.connections += 1
        number = self.connections
        self.live_connections.add(number)
        try:
            while (seen := await _read(reader, number)) is not None:
                self.seen.append(seen)
                await self._answer(seen, writer)
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.live_connections.discard(number)
            self.tasks.discard(task)
            writer.transport.abort()

    async def _answer(self, seen: Seen, writer: asyncio.StreamWriter) -> None:
        if self.token is not None and seen.headers.get("authorization") != f"Bearer {self.token}":
            writer.write(http(401, www_authenticate='Bearer realm="mcp"'))
            return
        fault = self.faults.get(seen.method or seen.verb)
        if fault is not None:
            await fault(seen, writer)
            return
        session = seen.headers.get("mcp-session-id")
        if session is not None and session not in self.live_sessions:
            writer.write(http(404))
            return
        writer.write(self._honest(seen, writer))

    def _honest(self, seen: Seen, writer: asyncio.StreamWriter) -> bytes:
        if seen.verb == "DELETE":
            self.live_sessions.discard(seen.headers.get("mcp-session-id", ""))
            return http(204)
        if seen.verb == "GET":
            return self._open_stream(writer)
        return http(202) if seen.id is None else self._request(seen)

    def _open_stream(self, writer: asyncio.StreamWriter) -> bytes:
        if not self.list_changed:
            return http(405)
        self.streams.append(writer)
        return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"

    def _request(self, seen: Seen) -> bytes:
        if seen.method == "initialize" and self.era == LEGACY:
            self.sessions += 1
            self.live_sessions.add(f"session-{self.sessions}")
            return rpc(result_of(seen, self._hello()), mcp_session_id=f"session-{self.sessions}")
        if seen.method == "server/discover" and self.era == MODERN:
            return rpc(result_of(seen, self._hello()))
        if seen.method == "tools/list":
            return rpc(result_of(seen, self._page(seen)))
        if seen.method == "tools/call":
            return rpc(result_of(seen, self._call(seen)))
        return rpc(error_of(seen, -32601, "Method not found"), 404 if self.era == MODERN else 400)

    def _hello(self) -> dict[str, Any]:
        who = {"name": "faulty", "version": "1"}
        capabilities = {"tools": {"listChanged": self.list_changed}}
        if self.era == LEGACY:
            return {"protocolVersion": LEGACY, "capabilities": capabilities, "serverInfo": who}
        return {
            "supportedVersions": [MODERN],
            "capabilities": capabilities,
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": who},
        }

    def _page(self, seen: Seen) -> dict[str, Any]:
        start = int(seen.params.get("cursor", "0"))
        end = start + (self.page_size or len(self.tools))
        page: dict[str, Any] = {"tools": self.tools[start:end]}
        if end < len(self.tools):
            page["nextCursor"] = str(end)
        return page | (
            {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"} if self.era == MODERN else {}
        )

    def _call(self, seen: Seen) -> dict[str, Any]:
        answer = self.results.get(seen.params["name"]) or text(json.dumps(seen.params["arguments"]))
        return answer | ({"resultType": "complete"} if self.era == MODERN else {})


async def _read(reader: asyncio.StreamReader, connection: int) -> Seen | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")[:-2]
    verb, path, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Seen(verb, path, headers, json.loads(body) if body else None, connection, reader)


@asynccontextmanager
async def faulty_server(**how: Any) -> AsyncGenerator[FaultyServer]:
    """Run a server for the length of a block."""
    server = FaultyServer(**how)
    server.listening = await asyncio.start_server(server._serve, "127.0.0.1", 0, ssl=server.tls)
    server.port = server.listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        await server.stop()
        assert server.held is not None
        server.held.close()


# The faults


def sse(*messages: Any, end: str = "\n") -> bytes:
    return b"".join(
        f"event: message{end}data: {json.dumps(message)}{end}{end}".encode() for message in messages
    )


SSE_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def answers(raw: bytes) -> Fault:
    """Answer with these bytes, whatever was asked."""

    async def fault(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return fault


def replies(make: Callable[[Seen], Any], status: int = 200, **headers: str) -> Fault:
    """Answer with the JSON that is made from the request."""

    async def fault(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(rpc(make(seen), status, **headers))

    return fault


def streams(make: Callable[[Seen], list[bytes]]) -> Fault:
    """Answer with an event stream in these pieces, each a separate packet, then close."""

    async def fault(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(SSE_HEAD)
        for piece in make(seen):
            await writer.drain()
            writer.write(piece)
            await asyncio.sleep(0)
        await writer.drain()
        writer.close()

    return fault


async def hangs(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Never answer; wait until the other side goes away."""
    await seen.reader.read()
    writer.transport.abort()


async def drops(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Cut the connection without an answer."""
    writer.transport.abort()


async def drips(seen: Seen, writer: asyncio.StreamWriter) -> None:
    """Send one byte, then another, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


def pours(size: int, *, kind: str = "application/json", declared: bool = True) -> Fault:
    """Answer with that many bytes."""

    async def fault(seen: Seen, writer: asyncio.StreamWriter) -> None:
        length = f"content-length: {size}\r\n" if declared else "connection: close\r\n"
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\n{length}\r\n".encode())
        block = b" " * 65536
        for _ in range(size // len(block)):
            writer.write(block)
            await writer.drain()

    return fault


def compresses(size: int) -> Fault:
    """Answer with that many bytes, compressed although the request did not allow it."""
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(b" " * 65536) for _ in range(size // 65536)) + packer.flush()

    async def fault(seen: Seen, writer: asyncio.StreamWriter) -> None:
        writer.write(http(200, body, content_encoding="gzip"))

    return fault


def redirects(location: str, status: int = 307) -> Fault:
    return answers(http(status, location=location))
