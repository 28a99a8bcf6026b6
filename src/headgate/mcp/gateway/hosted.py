"""The gateway as ``headgate serve`` runs it: the servers of one file, behind one registry, for a few clients.

Servers are imported beside the running gateway, and again later where that failed, so that one that is down delays
no other. The web judges hosts, origins, rates and tokens, and passes the caller's identity on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.auth.gateway import EVERYTHING, operation_scope, server_scope
from headgate.errors import CallError, Conflict, NotFound
from headgate.mcp.client.from_mcp import ImportedOperations
from headgate.mcp.client.pins import NEVER_APPROVED
from headgate.mcp.client.servers import ServerEntry
from headgate.mcp.gateway.answers import Gateway, NotedCall
from headgate.mcp.gateway.server import gateway_server
from headgate.mcp.gateway.stored import StoredCalls
from headgate.operations.registration import HandlerRegistration, expose
from headgate.operations.registry import Overlay, Registry
from headgate.operations.running import off_loop
from headgate.operations.spec import AccessControl, Identity, parse_operation_id
from headgate.tasks import Supervisor, stop
from headgate.telemetry import get_logger

PATH = "/gateway"
MAX_BODY_BYTES = 4 * 1024 * 1024
#: Where the caller's identity waits for the tool handlers: the SDK hands them the scope and nothing else.
_IDENTITY = "headgate.gateway_identity"
_LOOP = "remote servers"
#: How often the pins are looked at: another worker, or the command line, may have approved a tool.
_LOOK_SECONDS = 5.0

#: Imports one server of the file.
ImportServer = Callable[[ServerEntry], Awaitable[ImportedOperations]]


@dataclass(slots=True)
class HostedGateway:
    """Answers the requests of ``/gateway``."""

    entries: Sequence[ServerEntry]
    import_server: ImportServer
    version: str
    #: Changes when the pins do.
    pins_stamp: Callable[[], object] = lambda: None
    supervisor: Supervisor = field(default_factory=Supervisor)
    #: Where calls and their answers are stored.
    calls: StoredCalls = field(default_factory=StoredCalls)
    note: Callable[[NotedCall], None] = lambda _call: None
    registry: Registry = field(default_factory=Registry, init=False)
    _offered: dict[str, _Offered] = field(default_factory=dict[str, "_Offered"], init=False)
    _inner: ASGIApp | None = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the protocol and the imports; at the end every session is over."""
        offered = Gateway(self.registry, self.calls, self.note, self._why_missing, self._read_link)
        manager = StreamableHTTPSessionManager(
            gateway_server(offered, _identity_of, version=self.version),
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with manager.run():
            self._inner = manager.handle_request
            imports = [
                self.supervisor.start(_LOOP, partial(self._offer, entry), subject=entry.name)
                for entry in self.entries
            ]
            try:
                yield
            finally:
                self._inner = None
                await asyncio.gather(*map(stop, imports))

    async def __call__(self, identity: Identity | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a caller; None is a caller without an identity."""
        assert self._inner is not None, "HostedGateway is used outside of running()"
        await self._inner({**scope, "path": PATH, _IDENTITY: identity}, receive, send)

    async def servers(self) -> tuple[RemoteServer, ...]:
        """Describe the servers in the order of their file."""
        return tuple([await self._server(entry) for entry in self.entries])

    async def _server(self, entry: ServerEntry) -> RemoteServer:
        offered = self._offered.get(entry.name)
        if offered is None:
            return RemoteServer(entry.name, entry.public_url, None, self._problem(entry.name))
        # A pin that another process wrote counts on the page at once.
        await offered.imported.judge_again()
        return RemoteServer(entry.name, entry.public_url, offered.imported, "")

    def _why_missing(self, operation: str, identity: Identity | None) -> str | None:
        """Say why an operation is not offered, to a caller that may call everything of its server."""
        server, tool = parse_operation_id(operation)
        known = {entry.name for entry in self.entries}
        held = frozenset[str]() if identity is None else identity.scopes
        if server not in known or held.isdisjoint({EVERYTHING, server_scope(server)}):
            return None
        offered = self._offered.get(server)
        if offered is None:
            return f"The server {server} cannot be reached now; it is tried again."
        blocked = {
            item.local_name
            for item in offered.imported
            if item.meta["mcp"]["tool"] in offered.imported.blocked
        }
        return "It is blocked until the owner approves it." if tool in blocked else None

    async def _read_link(self, operation: str, uri: str) -> Sequence[Mapping[str, Any]]:
        offered = self._offered.get(parse_operation_id(operation)[0])
        if offered is None:
            raise CallError("NOT_FOUND", "The server of this resource cannot be reached now.")
        parts = await offered.imported.resources.read(uri)
        return [{"type": "resource", "resource": msgspec.to_builtins(part)} for part in parts]

    def _problem(self, name: str) -> str:
        troubles = self.supervisor.troubles()
        return next(
            (trouble.message for trouble in troubles if (trouble.loop, trouble.subject) == (_LOOP, name)), ""
        )

    async def list_again(self, name: str) -> None:
        """Ask a server for its tools again, and compare them with the approved ones.

        Raises:
            HeadgateError: it is not connected, or cannot be asked.
        """
        await self._connected(name).imported.refresh()

    async def approve(self, name: str, digests: Mapping[str, str]) -> None:
        """Accept tools as the owner saw them; the operations change at once.

        Raises:
            HeadgateError: the server is not connected, or a tool is not what was seen any more.
        """
        offered = self._connected(name)
        for tool, digest in digests.items():
            if offered.imported.listed_digest(tool) != digest:
                raise Conflict(
                    f"The tool {tool!a} changed again meanwhile.", hint="Look at it again, then approve."
                )
        await offered.imported.approve_off_loop(*digests)
        offered.overlay.replace_all(await off_loop(math.inf, _exposed, offered.imported))

    def _connected(self, name: str) -> _Offered:
        offered = self._offered.get(name)
        if offered is None:
            raise NotFound("This server is not connected now.", hint="Look at the page of remote servers.")
        return offered

    async def _offer(self, entry: ServerEntry) -> NoReturn:
        """Import a server, and hold its session open until cancelled."""
        async with await self.import_server(entry) as imported:
            overlay = self.registry.overlay(entry.name)
            try:
                # Copying the specs of a thousand tools takes too long for the loop.
                overlay.replace_all(await off_loop(math.inf, _exposed, imported))
                self._offered[entry.name] = _Offered(imported, overlay)
                self.supervisor.worked(_LOOP, entry.name)
                get_logger().info("server_imported", server=entry.name, count=len(imported))
                await self._follow_pins(imported, overlay)
            finally:
                self._offered.pop(entry.name, None)
                overlay.close()

    async def _follow_pins(self, imported: ImportedOperations, overlay: Overlay) -> NoReturn:
        seen = self.pins_stamp()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            stamp = self.pins_stamp()
            if stamp != seen:
                seen = stamp
                await imported.judge_again()
                overlay.replace_all(await off_loop(math.inf, _exposed, imported))


@dataclass(frozen=True, slots=True)
class _Offered:
    imported: ImportedOperations
    overlay: Overlay


@dataclass(frozen=True, slots=True)
class RemoteServer:
    """A server of the file, and what was imported from it; None while it cannot be reached, and why."""

    name: str
    url: str
    imported: ImportedOperations | None
    problem: str


def _exposed(imported: ImportedOperations) -> list[HandlerRegistration]:
    """Offer the operations to those who may call them; one that is not approved at all is not even listed."""
    unknown = {name for name, change in imported.blocked.items() if change.grade in NEVER_APPROVED}
    return [
        _offered(registration) for registration in imported if registration.meta["mcp"]["tool"] not in unknown
    ]


def _offered(registration: HandlerRegistration) -> HandlerRegistration:
    scopes = EVERYTHING, server_scope(registration.namespace), operation_scope(registration.id)
    return expose(registration, access_control=AccessControl(required_scopes_any=scopes))


async def _identity_of(request: Request[Any]) -> Identity | None:
    return request.scope[_IDENTITY]
