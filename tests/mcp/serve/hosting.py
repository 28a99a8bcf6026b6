"""The hosted server on a real socket, or called as an application, with tokens that stand for themselves."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from headgate.errors import AuthenticationFailed, GrantRevoked, PackageRevoked, RateLimited
from headgate.mcp.serve.hosted import Admitted, HostedMcp
from headgate.mcp.serve.results import ServerIdentity
from headgate.model.grant import Access, TokenKind
from headgate.reading.port import ResourceServer
from tests.mcp.serve.prepared import HANDLES

CLIENT = Access(TokenKind.CLIENT, "me", "agent", ())
OWNER = Access(TokenKind.OWNER, "me", None, ())
PACKAGE = Access(TokenKind.MCP_PACKAGE, "me", "agent", (), package_id="pkg_1")
IDENTITY = ServerIdentity("1.2.3", icon="https://gate.example/icon.svg")


@dataclass
class Tokens:
    """A doorkeeper who looks tokens up in a table."""

    port: ResourceServer
    address: str

    def origin(self, _scope: Scope) -> str:
        return self.address

    def admit(self, _scope: Scope, token: str) -> Admitted:
        refusals = {"revoked": GrantRevoked, "empty": PackageRevoked, "hasty": RateLimited}
        if token in refusals:
            raise refusals[token]
        known = {"client": CLIENT, "owner": OWNER, "package": PACKAGE}
        if token not in known:
            raise AuthenticationFailed
        return Admitted(known[token], lambda _via: self.port)


def hosted(port: ResourceServer, address: str, *, with_fast_path: bool = True) -> HostedMcp:
    return HostedMcp(Tokens(port, address), HANDLES, IDENTITY, with_fast_path)


@contextmanager
def serving(app: ASGIApp, taken: socket.socket) -> Iterator[None]:
    """Serve an application on a taken socket, from another thread, until the block ends."""
    ready = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready.set()

    server = Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=2))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        assert ready.wait(10)
        yield
    finally:
        server.should_exit = True
        thread.join(10)


@contextmanager
def hosted_on_a_socket(port: ResourceServer, *, with_fast_path: bool = True) -> Iterator[str]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    app = hosted(port, address, with_fast_path=with_fast_path)
    routes = [Route("/mcp", app), Route("/mcp/", app)]
    with serving(Starlette(routes=routes, lifespan=lambda _: app.running()), taken):
        yield address


async def ask(
    app: ASGIApp, body: bytes, headers: list[tuple[bytes, bytes]], *, method: str = "POST"
) -> tuple[int, dict[str, str], bytes]:
    """Call an application directly; give status, headers and body."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "path": "/mcp",
        "raw_path": b"/mcp",
        "query_string": b"",
        "headers": headers,
        "server": ("gate.example", 80),
        "client": ("127.0.0.1", 1),
        "scheme": "http",
    }
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Mapping[str, Any]] = []

    async def receive() -> Mapping[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    found = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(message.get("body", b"") for message in sent[1:])
