"""The hosted server on a real socket, or called as an application, with tokens that are plain words."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from types import SimpleNamespace
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.auth.limits import RequestLimits
from headgate.errors import AuthenticationFailed, GrantRevoked, PackageRevoked, RateLimited
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.server import PATH, HostedMcp, McpCall
from headgate.model.grant import Access, TokenKind
from headgate.reading.port import ResourceServer
from headgate.telemetry import Metrics
from headgate.web.admission import AllowedCallers, EdgeAdmission, Guard
from headgate.web.app import ADDRESSES
from headgate.web.front import AddressTable, Front
from tests.mcp.serve.prepared import HANDLES

CLIENT = Access(TokenKind.CLIENT, "me", "agent", ())
OWNER = Access(TokenKind.OWNER, "me", None, ())
PACKAGE = Access(TokenKind.MCP_PACKAGE, "me", "agent", (), package_id="pkg_1")
IDENTITY = ServerIdentity("1.2.3", icon="https://gate.example/icon.svg")


class Tokens:
    """An admission that looks tokens up in a table, and notes the refusals it is asked to log."""

    def __init__(self) -> None:
        self.refusals: list[str] = []

    async def admit(self, token: str, _via: str = "", **_how: bool) -> Access:
        refusals = {"revoked": GrantRevoked, "empty": PackageRevoked, "hasty": RateLimited}
        if token in refusals:
            raise refusals[token]
        known = {"client": CLIENT, "owner": OWNER, "package": PACKAGE}
        if token not in known:
            raise AuthenticationFailed
        return known[token]

    async def note_refusal(self, _token: str, code: str, _via: str, **_request: str) -> None:
        self.refusals.append(code)


class HostedApp:
    """The row of ``/mcp`` behind the real front, reading through a given port."""

    def __init__(self, port: ResourceServer, address: str) -> None:
        self.mcp = HostedMcp(HANDLES, IDENTITY)
        self.tokens = Tokens()

        async def answer(call: McpCall, *request: Any) -> None:
            await self.mcp(McpCall(call.access, lambda _via: port, call.origin), *request)

        row = next(row for row in ADDRESSES if row.path == PATH)
        services: Any = SimpleNamespace(metrics=Metrics(), public_url=address, mcp=answer)
        self._front = Front(
            AddressTable([row]),
            guard=Guard(AllowedCallers(hosts=frozenset({"gate.example"})), services.metrics),
            admission=EdgeAdmission(self.tokens, RequestLimits(0), "password"),
            services=services,
            lifespan=Starlette(lifespan=lambda _: self.mcp.running()),
        )

    def running(self) -> AbstractAsyncContextManager[None]:
        return self.mcp.running()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._front(scope, receive, send)


def hosted(port: ResourceServer, address: str) -> HostedApp:
    return HostedApp(port, address)


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
def hosted_on_a_socket(port: ResourceServer) -> Iterator[str]:
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    address = f"http://127.0.0.1:{taken.getsockname()[1]}"
    app = hosted(port, address)
    with serving(app, taken):
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
