"""The gateway as ``headgate serve`` runs it: the servers of one file, behind one registry, for a few clients.

Servers are imported beside the running gateway, and again later where that failed, so that one that is down delays
no other. The web judges hosts, origins, rates and tokens, and passes the caller's identity on.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.errors import HeadgateError
from headgate.mcp.body import with_checked_ids
from headgate.mcp.client.from_mcp import ImportedOperations
from headgate.mcp.client.servers import ServerEntry
from headgate.mcp.gateway.server import gateway_server
from headgate.operations.access import AccessControl, Identity
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.worker import off_loop
from headgate.telemetry import get_logger

PATH = "/gateway"
#: What a caller must hold to see and call an operation here.
SCOPE = "gateway:call"
MAX_BODY_BYTES = 4 * 1024 * 1024
#: Where the caller's identity waits for the tool handlers: the SDK hands them the scope and nothing else.
_IDENTITY = "headgate.gateway_identity"
_FIRST_PAUSE_SECONDS, _LAST_PAUSE_SECONDS = 5.0, 300.0

#: Imports one server of the file.
ImportServer = Callable[[ServerEntry], Awaitable[ImportedOperations]]


@dataclass(slots=True)
class HostedGateway:
    """Answers the requests of ``/gateway``."""

    entries: Sequence[ServerEntry]
    import_server: ImportServer
    version: str
    registry: Registry = field(default_factory=Registry, init=False)
    _inner: ASGIApp | None = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the protocol and the imports; at the end every session is over."""
        manager = StreamableHTTPSessionManager(
            gateway_server(self.registry, _identity_of, version=self.version),
            stateless=True,
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with manager.run():
            self._inner = with_checked_ids(manager.handle_request, MAX_BODY_BYTES)
            imports = [asyncio.create_task(self._keep(entry)) for entry in self.entries]
            try:
                yield
            finally:
                self._inner = None
                for task in imports:
                    task.cancel()
                await asyncio.gather(*imports, return_exceptions=True)

    async def __call__(self, identity: Identity | None, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request of a caller; None is a caller without an identity."""
        assert self._inner is not None, "HostedGateway is used outside of running()"
        await self._inner({**scope, "path": PATH, _IDENTITY: identity}, receive, send)

    async def _keep(self, entry: ServerEntry) -> None:
        """Import a server, retrying with growing pauses, and hold its session open until cancelled."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._offer(entry)
            except HeadgateError as error:
                get_logger().warning("a server could not be imported", server=entry.name, code=error.code)
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LAST_PAUSE_SECONDS)

    async def _offer(self, entry: ServerEntry) -> None:
        async with await self.import_server(entry) as imported:
            overlay = self.registry.overlay(entry.name)
            try:
                needed = AccessControl(required_scopes=(SCOPE,))
                # Copying the specs of a thousand tools takes too long for the loop.
                exposed = await off_loop(
                    math.inf, lambda: [expose(one, access_control=needed) for one in imported]
                )
                overlay.replace_all(exposed)
                get_logger().info("a server was imported", server=entry.name, count=len(imported))
                await asyncio.Event().wait()
            finally:
                overlay.close()


async def _identity_of(request: Request[Any]) -> Identity | None:
    return request.scope[_IDENTITY]
