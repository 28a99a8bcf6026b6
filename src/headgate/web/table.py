"""The table of all addresses: path, method, who may call, and the function that answers.

Metrics and logs name routes by it, the REST part of it is the OpenAPI document, and a test walks every row.
"""

from __future__ import annotations

from headgate.mcp.gateway.hosted import MAX_BODY_BYTES as MAX_GATEWAY_BYTES, PATH as GATEWAY_PATH
from headgate.mcp.serve.hosted import MAX_BODY_BYTES as MAX_MCP_BYTES, PATH as MCP_PATH
from headgate.web import health, mcp, pages, tokens
from headgate.web.addresses import Address
from headgate.web.admission import Callers
from headgate.web.api import metadata
from headgate.web.api.addresses import api_addresses
from headgate.web.cross_origin import Sharing
from headgate.web.refusals import MCP_METADATA_PATH, METADATA_PATH, Flavour

ADDRESSES: tuple[Address, ...] = (
    Address("GET", "/", Callers.ANYONE, pages.front_page),
    Address("GET", "/docs", Callers.ANYONE, pages.docs),
    Address("GET", "/openapi.json", Callers.ANYONE, pages.openapi),
    Address("GET", "/icon.svg", Callers.ANYONE, pages.icon),
    Address("GET", "/healthz", Callers.ANYONE, health.healthz),
    Address("GET", "/readyz", Callers.ANYONE, health.readyz),
    Address("GET", "/metrics", Callers.OWNER, health.metrics),
    *(
        Address("GET", path, Callers.ANYONE, handler, sharing=Sharing.EVERY_PAGE)
        for path, handler in (
            (METADATA_PATH, metadata.resource_metadata),
            (f"{METADATA_PATH}/v1", metadata.resource_metadata),
            (MCP_METADATA_PATH, mcp.mcp_metadata),
        )
    ),
    Address("POST", "/introspect", Callers.RESOURCE_SERVERS, tokens.introspection, Flavour.INTROSPECTION),
    Address("POST", "/grants/{grant_id}/revoke", Callers.HOLDERS, tokens.revocation),
    Address(
        "POST",
        MCP_PATH,
        Callers.AGENTS,
        mcp.mcp,
        Flavour.MCP,
        max_body_bytes=MAX_MCP_BYTES,
        sharing=Sharing.LISTED,
    ),
    *api_addresses(),
)
#: The row that a server with imported operations has besides.
GATEWAY = Address(
    "POST",
    GATEWAY_PATH,
    Callers.GATEWAY_CLIENTS,
    mcp.gateway,
    max_body_bytes=MAX_GATEWAY_BYTES,
    sharing=Sharing.LISTED,
)
