"""The handlers of ``/mcp``, its discovery document, and ``/gateway``: admitted requests, passed on to those packages."""

from __future__ import annotations

from typing import Any

from headgate.mcp.serve.hosted import McpCall
from headgate.operations.spec import Identity
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.web.replies import NO_STORE, PLAIN_JSON, HttpReply, WebRequest, json_reply


async def mcp(request: WebRequest) -> None:
    """Answer a message of an MCP client under its grants."""
    context, services = request.context, request.services
    access = context.access
    assert access is not None

    def port(via: str) -> LocalResourceServer:
        reading = ReadContext(access, context.request_id, via)
        return LocalResourceServer(services.reads, reading)

    call = McpCall(access, port, services.public_url or context.origin, context.request_id)
    await services.mcp(call, request.scope, request.receive, request.send)


async def gateway(request: WebRequest) -> None:
    """Answer a message of a client of the operations gateway."""
    services, context = request.services, request.context
    caller = context.gateway_caller or context.client_id
    assert services.gateway is not None
    grants = None if context.access is None else context.access.grant_ids
    scopes = None if caller is None else await services.gateway_callers.scopes(caller, grants)
    identity = Identity(caller, scopes) if caller is not None and scopes else None
    await services.gateway(identity, request.scope, request.receive, request.send)


async def mcp_metadata(request: WebRequest) -> HttpReply:
    """Answer with the metadata of the MCP resource."""
    origin = request.context.origin
    document = _protected_mcp(origin, request.services.public_url or origin)
    return json_reply(document, headers=(PLAIN_JSON, NO_STORE))


def _protected_mcp(origin: str, authorization_server: str) -> dict[str, Any]:
    """Describe the hosted MCP resource (RFC 9728, path form)."""
    return {
        "resource": f"{origin}/mcp",
        "resource_name": "Headgate Hosted MCP Resource",
        "authorization_servers": [authorization_server],
        "bearer_methods_supported": ["header"],
        "pdpp_core_query_base": f"{origin}/v1",
        "pdpp_token_kinds_supported": ["client", "mcp_package"],
        "pdpp_agent_discovery": {
            "mcp": {
                "endpoint": f"{origin}/mcp",
                "transport": "streamable_http",
                "tool_surface": "profile_free_normal_read",
                "setup_intent": "grant_scoped_read",
                "no_owner_token": True,
            }
        },
    }
