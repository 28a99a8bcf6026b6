"""MCP over HTTP at ``/mcp``: the protocol for requests that were already admitted. Stateless; each stands alone.

The web judges hosts, origins, methods, sizes and tokens, and renders refusals. It passes on what the token stands
for and a port to read through.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.mcp.body import with_checked_messages
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import ServerIdentity
from headgate.mcp.serve.server import Context, build_server
from headgate.mcp.serve.tools import WHOLE, Surface
from headgate.model.grant import Access
from headgate.reading.port import ResourceServer

PATH = "/mcp"
MAX_BODY_BYTES = 4 * 1024 * 1024
#: Where the call waits for the tool handlers: the SDK hands them the scope and nothing else.
_CALL = "headgate.mcp_call"
_NO_STORE = (b"cache-control", b"no-store")


class McpCall(msgspec.Struct, frozen=True):
    """One admitted request: what its token stands for, and how it reads."""

    access: Access
    #: Opens the resource server for one tool call, which is named for the disclosure log.
    port: Callable[[str], ResourceServer]
    #: The server's address as the caller knows it, without a slash at its end.
    origin: str
    #: The id of the request in the log.
    request_id: str | None = None


@dataclass(slots=True)
class HostedMcp:
    """Answers the admitted requests of ``/mcp``."""

    handles: HandleMaker
    identity: ServerIdentity
    surface: Surface = WHOLE
    _app: ASGIApp | None = field(default=None, init=False)

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """Run the SDK's part; nothing is served outside of it."""
        manager = StreamableHTTPSessionManager(
            build_server(self._reader, self.identity, self.surface),
            json_response=True,
            stateless=True,
            # The web has judged hosts and origins before, against exact lists.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with manager.run():
            self._app = with_checked_messages(manager.handle_request, MAX_BODY_BYTES)
            try:
                yield
            finally:
                self._app = None

    async def __call__(self, call: McpCall, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an admitted request."""
        assert self._app is not None, "HostedMcp is used outside of running()"
        # The SDK expects one path, and values without the blanks around them (RFC 9110, 5.5).
        headers = [(name, value.strip(b" \t")) for name, value in scope["headers"]]
        adapted = {**scope, "path": PATH, "headers": headers, _CALL: call}
        await self._app(adapted, receive, _adding(send, _own_headers(call)))

    async def _reader(self, context: Context, via: str) -> Reader:
        assert context.request is not None
        call: McpCall = context.request.scope[_CALL]
        return Reader(call.port(via), self.handles, call.origin, call.request_id)


def _adding(send: Send, headers: Iterable[tuple[bytes, bytes]]) -> Send:
    async def adding(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return adding


def _own_headers(call: McpCall) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers that every response of ``/mcp`` carries: its icon, and the package of the token."""
    common = (_icon_link(call.origin), _NO_STORE)
    package_id = call.access.package_id
    if package_id is None:
        return common
    return (
        *common,
        (b"x-pdpp-grant-package-id", package_id.encode("latin-1", "replace")),
        (b"x-pdpp-grant-package-member-count", str(len(call.access.grants)).encode()),
    )


@lru_cache(maxsize=64)
def _icon_link(origin: str) -> tuple[bytes, bytes]:
    icon = f'<{origin}/icon.svg>; rel="icon"; type="image/svg+xml"'
    return b"link", icon.encode("latin-1", "replace")
