"""The gateway as an MCP server over streamable HTTP.

The caller's identity comes from each HTTP request. An unknown token is no error: the call then has no identity, and
access control decides what such a call may see.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

import mcp_types as types
from mcp import MCPError
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CacheHint
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headgate.auth.keys import read_bearer
from headgate.mcp.gateway.answers import Gateway
from headgate.mcp.gateway.results import ToolResult, text_of
from headgate.mcp.gateway.tools import INSTRUCTIONS, TOOLS, tools_for
from headgate.operations.registry import Registry
from headgate.operations.spec import Identity

#: Finds the identity behind a bearer token; None when the token is unknown.
Identify: TypeAlias = Callable[[str], Awaitable[Identity | None]]
#: Finds the identity behind an HTTP request; None when it has none.
IdentityOf: TypeAlias = Callable[[Request[Any]], Awaitable[Identity | None]]
_SCHEMAS = {tool["name"]: tool["inputSchema"] for tool in TOOLS}
_FIVE_MINUTES_MS = 300_000


def to_mcp(registry: Registry, identify: Identify, *, version: str) -> Server[Any]:
    """Build an MCP server with the five tools over a registry; `identify` judges the bearer token of each request."""
    return gateway_server(Gateway(registry), _by_bearer(identify), version=version)


def gateway_server(gateway: Gateway, identity_of: IdentityOf, *, version: str) -> Server[Any]:
    """Build an MCP server with the five tools over a gateway; `identity_of` judges each request as a whole."""

    async def list_tools(
        context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        request: Request[Any] | None = context.request
        identity = None if request is None else await identity_of(request)
        return types.ListToolsResult.model_validate({"tools": tools_for(gateway.counts(identity))})

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        request: Request[Any] | None = context.request
        identity = None if request is None else await identity_of(request)
        result = await gateway.answer(params.name, params.arguments, identity=identity)
        if result is None:
            raise MCPError(code=types.INVALID_PARAMS, message="Unknown tool")
        return _result(result)

    return Server(
        "headgate-operations",
        version=version,
        title="Headgate operations",
        instructions=INSTRUCTIONS,
        # What search says depends on the caller.
        cache_hints={"tools/list": CacheHint(ttl_ms=_FIVE_MINUTES_MS, scope="private")},
        get_tool_input_schema=_SCHEMAS.get,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def gateway_app(
    server: Server[Any], path: str, *, allowed_hosts: Sequence[str], allowed_origins: Sequence[str] = ()
) -> Starlette:
    """Serve the gateway at a path; run the application's lifespan, or nothing answers."""
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=list(allowed_hosts),
        allowed_origins=list(allowed_origins),
    )
    # Not json_response: with it the library does not notice a client that goes away.
    inner = server.streamable_http_app(
        streamable_http_path=path, stateless_http=True, transport_security=security
    )

    async def no_stream(_request: Request) -> Response:
        # The library would hold a stream open that never carries anything.
        return Response(status_code=405, headers={"Allow": "POST"})

    inner.router.routes.insert(0, Route(path, no_stream, methods=["GET", "DELETE"]))
    return inner


def _by_bearer(identify: Identify) -> IdentityOf:
    async def identity_of(request: Request[Any]) -> Identity | None:
        headers = request.headers.getlist("authorization")
        # Two headers could be read differently by two readers, so they count as none.
        token = read_bearer(headers[0].encode("latin-1")) if len(headers) == 1 else None
        return None if token is None else await identify(token)

    return identity_of


def _result(result: ToolResult) -> types.CallToolResult:
    wire: dict[str, Any] = {"isError": result.is_error}
    if result.structured is not None:
        wire["structuredContent"] = result.structured
    try:
        return types.CallToolResult.model_validate({**wire, "content": list(result.content)})
    except ValidationError:
        # A remote tool's blocks may be none that this protocol knows.
        words = [{"type": "text", "text": text_of(result.content)}]
        return types.CallToolResult.model_validate({**wire, "content": words})
