"""The gateway as an MCP server over streamable HTTP.

The caller is identified by the bearer token of each HTTP request. An unknown token is not an error: the caller is
anonymous, and access control decides what an anonymous caller may do.
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

from headgate.mcp.gateway.answers import ToolResult, answer
from headgate.mcp.gateway.tools import INSTRUCTIONS, TOOLS
from headgate.operations.access import Identity
from headgate.operations.registry import Registry

#: Finds the identity of a bearer token; None for an unknown one.
Identify: TypeAlias = Callable[[str], Awaitable[Identity | None]]
_SCHEMAS = {tool["name"]: tool["inputSchema"] for tool in TOOLS}
_ONE_HOUR_MS = 3_600_000


def to_mcp(registry: Registry, identify: Identify, *, version: str) -> Server[Any]:
    """Build an MCP server with the four tools over a registry."""
    listed = types.ListToolsResult.model_validate({"tools": TOOLS})

    async def list_tools(
        _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        identity = await _identity_of(context.request, identify)
        given = await answer(registry, params.name, params.arguments, identity=identity)
        if given is None:
            raise MCPError(code=types.INVALID_PARAMS, message="Unknown tool")
        return _result(given)

    return Server(
        "headgate-operations",
        version=version,
        title="Headgate operations",
        instructions=INSTRUCTIONS,
        # The list is the same for everybody, always.
        cache_hints={"tools/list": CacheHint(ttl_ms=_ONE_HOUR_MS, scope="public")},
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


async def _identity_of(request: Any, identify: Identify) -> Identity | None:
    if not isinstance(request, Request):
        return None
    # Two of them are a trick and count as none.
    match request.headers.getlist("authorization"):
        case [header]:
            scheme, _, token = header.partition(" ")
            return await identify(token.strip()) if scheme.lower() == "bearer" and token.strip() else None
        case _:
            return None


def _result(given: ToolResult) -> types.CallToolResult:
    wire = {"structuredContent": given.structured, "isError": given.is_error}
    try:
        return types.CallToolResult.model_validate({**wire, "content": list(given.content)})
    except ValidationError:
        # A remote tool's blocks may be none that this protocol knows; the structured part has them anyway.
        return types.CallToolResult.model_validate({**wire, "content": []})
