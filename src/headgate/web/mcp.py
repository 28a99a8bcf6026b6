"""The handlers of ``/mcp`` and ``/gateway``: what was admitted, passed on in the terms of those packages."""

from __future__ import annotations

from headgate.mcp.gateway.hosted import SCOPE as GATEWAY_SCOPE
from headgate.mcp.serve.hosted import McpCall
from headgate.operations.access import Identity
from headgate.reading.local import LocalResourceServer, ReadContext
from headgate.web.addresses import WebRequest


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
    services, client = request.services, request.context.client_id
    assert services.gateway is not None
    is_known = client is not None and client in services.gateway_clients
    identity = Identity(client, frozenset({GATEWAY_SCOPE})) if client is not None and is_known else None
    await services.gateway(identity, request.scope, request.receive, request.send)
