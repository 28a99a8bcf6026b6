"""Build the web application from its parts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.types import ASGIApp

from headgate.auth.limits import RequestLimits
from headgate.web.addresses import Address, AddressTable
from headgate.web.admission import EdgeAdmission
from headgate.web.front import Front
from headgate.web.guard import AllowedCallers, Guard
from headgate.web.services import WebServices
from headgate.web.table import ADDRESSES, GATEWAY

Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class AppConfig:
    """Everything the web application is built from."""

    services: WebServices
    allowed: AllowedCallers
    limits: RequestLimits
    #: The password with which a resource server introspects.
    introspection_password: str
    #: Opens the program when the server starts and closes it when it stops.
    lifespan: Lifespan
    #: Rows of the table beside those of this package.
    more_addresses: tuple[Address, ...] = ()


def build_app(config: AppConfig) -> ASGIApp:
    """Build the application that ``headgate serve`` runs."""
    services = config.services
    addresses = (*ADDRESSES, *([GATEWAY] if services.gateway else []), *config.more_addresses)
    return Front(
        AddressTable(addresses),
        guard=Guard(config.allowed, services.metrics),
        admission=EdgeAdmission(
            services.admission,
            config.limits,
            config.introspection_password,
            strict_core=services.reads.rules.strict_core,
            gateway_callers=services.gateway_callers,
        ),
        services=services,
        # Starlette answers the ASGI lifespan messages; it sees no request.
        lifespan=Starlette(lifespan=config.lifespan),
    )
