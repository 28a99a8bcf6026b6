"""The MCP server: the SDK's low-level server with our tools and resources, for both eras of the protocol; and ``/mcp``.

It validates nothing and decides nothing: arguments are read in `headgate.mcp.serve.call`, and every read
goes through the port of the request's `Reader`. Over HTTP it is stateless: each request stands alone, and was admitted
already. The web judges hosts, origins, methods, sizes and tokens, and renders refusals. It passes on what the token
stands for and a port to read through.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

import mcp_types as t
import msgspec
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.errors import HeadgateError, InvalidResourceUri, ToolHandlerFailed
from headgate.mcp.serve import resources
from headgate.mcp.serve.call import call_with
from headgate.mcp.serve.failures import failed
from headgate.mcp.serve.reader import HandleMaker, Reader
from headgate.mcp.serve.results import LIST_TTL_MS, TITLE, ServerIdentity, result_of, stamped
from headgate.mcp.serve.skill import SKILL_URI, SKILLS_EXTENSION, skill_entry, skill_resource
from headgate.mcp.serve.tools import WHOLE, Surface
from headgate.model.grant import Access
from headgate.model.wire import Json
from headgate.reading.port import ResourceServer
from headgate.telemetry import get_logger

PATH = "/mcp"
MAX_BODY_BYTES = 4 * 1024 * 1024
#: The versions of the protocol that are served over HTTP, oldest first.
MODERN_VERSIONS = tuple(MODERN_PROTOCOL_VERSIONS)
VERSIONS = (*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_VERSIONS)
#: Where the call waits for the tool handlers: the SDK hands them the scope and nothing else.
_CALL = "headgate.mcp_call"
_NO_STORE = (b"cache-control", b"no-store")
#: For how long a client may keep what is listed; the SDK adds it to the lists of the protocol alone.
_LISTED: Json = {"ttlMs": LIST_TTL_MS, "cacheScope": "private"}
Context = ServerRequestContext[Any, Any]
#: Gives the reader of a request; the text names the call for the log.
ReaderOf = Callable[[Context, str], Awaitable[Reader]]
SurfaceFor = Callable[[Context], Surface]


def build_server(
    reader_of: ReaderOf,
    identity: ServerIdentity,
    surface: Surface = WHOLE,
    surface_for: SurfaceFor | None = None,
) -> Server[Any]:
    """Build the server; every request gets a new reader, and its own list of tools where callers differ."""
    names = frozenset(tool["name"] for tool in surface.tools)
    serving = _Serving(reader_of, identity, surface, surface_for or (lambda _context: surface), names)
    icons = [t.Icon.model_validate(icon) for icon in identity.icons] or None
    listed = CacheHint(ttl_ms=LIST_TTL_MS, scope="private")
    server: Server[Any] = Server(
        identity.name,
        version=identity.version,
        title=TITLE,
        instructions=surface.instructions,
        icons=icons,
        cache_hints={
            "tools/list": listed,
            "resources/list": listed,
            "resources/templates/list": listed,
            "server/discover": listed,
            "resources/read": CacheHint(ttl_ms=0, scope="private"),
        },
        # No argument is repeated in a header, which is all that the SDK would look for in the schema at every call.
        get_tool_input_schema=lambda _name: None,
        on_list_tools=serving.list_tools,
        on_call_tool=serving.call_tool,
        on_list_resources=serving.list_resources,
        on_list_resource_templates=serving.list_templates,
        on_read_resource=serving.read_resource,
    )
    server.extensions[SKILLS_EXTENSION] = {}
    server.add_request_handler("skills/list", t.PaginatedRequestParams, serving.list_skills)
    server.add_request_handler("skills/get", t.ReadResourceRequestParams, serving.get_skill)
    return server


@dataclass(frozen=True, slots=True)
class _Serving:
    """The SDK's handlers. They return results as dictionaries, which the SDK checks and sends unchanged."""

    reader_of: ReaderOf
    identity: ServerIdentity
    surface: Surface
    surface_for: SurfaceFor
    tool_names: frozenset[str]

    async def list_tools(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        _refuse_cursor(params)
        return self._stamped(context, {"tools": list(self.surface_for(context).tools)})

    async def call_tool(self, context: Context, params: t.CallToolRequestParams) -> Any:
        if params.name not in self.tool_names:
            raise MCPError(code=t.INVALID_PARAMS, message=f"Unknown tool: {params.name[:128]}")
        outcome = await call_with(
            lambda via: self.reader_of(context, via), params.name, params.arguments or {}
        )
        return result_of(outcome, self.identity, context.protocol_version)

    async def list_resources(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        # A person's records are not enumerated: URIs are found in answers.
        _refuse_cursor(params)
        return self._stamped(context, {"resources": [skill_resource(self.surface_for(context).kinds)]})

    async def list_templates(self, context: Context, params: t.PaginatedRequestParams | None) -> Any:
        _refuse_cursor(params)
        return self._stamped(context, {"resourceTemplates": list(self.surface.templates)})

    async def read_resource(self, context: Context, params: t.ReadResourceRequestParams) -> Any:
        uri = str(params.uri)
        try:
            reader = await self.reader_of(context, "mcp:resources/read")
        except HeadgateError as error:
            raise _resource_error(error, uri) from error
        try:
            content = await resources.read(reader, uri, self.surface_for(context).kinds)
        except HeadgateError as error:
            raise _resource_error(error, uri) from error
        except Exception as error:
            get_logger().exception("resource_failed")
            raise _resource_error(ToolHandlerFailed(), uri) from error
        return self._stamped(context, {"contents": [content]})

    async def list_skills(self, context: Context, params: t.PaginatedRequestParams) -> Any:
        _refuse_cursor(params)
        entry = skill_entry(self.surface_for(context).kinds)
        return self._stamped(context, {"skills": [entry], **_LISTED})

    async def get_skill(self, context: Context, params: t.ReadResourceRequestParams) -> Any:
        if str(params.uri) != SKILL_URI:
            raise MCPError(code=t.INVALID_PARAMS, message="There is no such skill. See skills/list.")
        return self._stamped(context, {"skill": skill_entry(self.surface_for(context).kinds), **_LISTED})

    def _stamped(self, context: Context, result: Json) -> Json:
        return stamped(result, self.identity, context.protocol_version)


def _refuse_cursor(params: t.PaginatedRequestParams | None) -> None:
    if params is not None and params.cursor is not None:
        raise MCPError(code=t.INVALID_PARAMS, message="Invalid cursor: these lists have one page")


def _resource_error(error: HeadgateError, uri: str) -> MCPError:
    described: Json = {"uri": uri[:256], **cast("Json", failed(error, None).structured)}
    if isinstance(error, InvalidResourceUri):
        # The URI was not made by this server, so no read was made.
        del described["http_status"]
    code = t.INTERNAL_ERROR if isinstance(error, ToolHandlerFailed) else t.INVALID_PARAMS
    return MCPError(code=code, message=described["error"]["message"], data=described)


# Over HTTP


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
            build_server(self._reader, self.identity, self.surface, self._surface_for),
            json_response=True,
            stateless=True,
            # The web has judged hosts and origins before, against exact lists.
            security_settings=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            max_request_body_size=MAX_BODY_BYTES,
        )
        async with manager.run():
            self._app = manager.handle_request
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
        call = _call_of(context)
        return Reader(call.port(via), self.handles, call.origin, call.request_id)

    def _surface_for(self, context: Context) -> Surface:
        return self.surface.naming(grant.source_id for grant in _call_of(context).access.grants)


def _call_of(context: Context) -> McpCall:
    assert context.request is not None
    call: McpCall = context.request.scope[_CALL]
    return call


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
