"""The table of all addresses (path, method, who may call, handler), and the web application built from its parts.

Metrics and logs name routes by the table, the REST part of it is the OpenAPI document, and a test walks every row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.types import ASGIApp

from headgate.auth.documents import load_secret
from headgate.mcp.gateway.hosted import MAX_BODY_BYTES as MAX_GATEWAY_BYTES, PATH as GATEWAY_PATH
from headgate.mcp.serve.server import MAX_BODY_BYTES as MAX_MCP_BYTES, PATH as MCP_PATH
from headgate.web import mcp, pages
from headgate.web.admission import AllowedCallers, Callers, EdgeAdmission, Guard, Sharing
from headgate.web.api import oauth
from headgate.web.api.addresses import api_addresses
from headgate.web.front import Address, AddressTable, Front
from headgate.web.refusals import MCP_METADATA_PATH, METADATA_PATH, Flavour
from headgate.wiring import Services

ADDRESSES: tuple[Address, ...] = (
    Address("GET", "/", Callers.ANYONE, pages.front_page, page="/console"),
    Address("GET", "/docs", Callers.ANYONE, pages.docs),
    Address("GET", "/openapi.json", Callers.ANYONE, pages.openapi),
    Address("GET", "/icon.svg", Callers.ANYONE, pages.icon),
    Address("GET", "/healthz", Callers.ANYONE, pages.healthz),
    Address("GET", "/readyz", Callers.ANYONE, pages.readyz),
    Address("GET", "/metrics", Callers.OWNER, pages.metrics),
    *(
        Address("GET", path, Callers.ANYONE, handler, sharing=Sharing.EVERY_PAGE)
        for path, handler in (
            (METADATA_PATH, pages.resource_metadata),
            (f"{METADATA_PATH}/v1", pages.resource_metadata),
            (MCP_METADATA_PATH, mcp.mcp_metadata),
        )
    ),
    Address("POST", "/introspect", Callers.RESOURCE_SERVERS, oauth.introspection, Flavour.INTROSPECTION),
    Address("POST", "/grants/{grant_id}/revoke", Callers.HOLDERS, oauth.revocation),
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


Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


def build_app(services: Services, lifespan: Lifespan, more_addresses: Sequence[Address] = ()) -> ASGIApp:
    """Build the application that ``headgate serve`` runs, with more rows of the table than those of this package.

    The lifespan opens the program when the server starts and closes it when it stops.
    """
    settings = services.settings
    own_names = {settings.host, *filter(None, [urlsplit(settings.public_url).hostname])}
    allowed = AllowedCallers(
        hosts=frozenset(own_names) | settings.allowed_hosts,
        origins=settings.allowed_origins,
        max_requests=settings.max_requests,
    )
    return Front(
        AddressTable((*ADDRESSES, *([GATEWAY] if services.gateway else []), *more_addresses)),
        guard=Guard(allowed, services.metrics),
        admission=EdgeAdmission(
            services.admission,
            services.limits.requests,
            load_secret(services.home),
            strict_core=settings.strict_core,
            gateway_callers=services.gateway_callers,
        ),
        services=services,
        # Starlette answers the ASGI lifespan messages; it sees no request.
        lifespan=Starlette(lifespan=lifespan),
    )
