"""The web application: which address is answered by which room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.auth.introspect import introspect, is_resource_server
from headgate.errors import (
    AuthenticationFailed,
    ContextRejected,
    HeadgateError,
    InvalidRequest,
    NotFound,
    PermissionRefused,
    ResourceLimit,
)
from headgate.model.ids import GrantId, grant_id
from headgate.web.api.calls import Rooms
from headgate.web.api.dispatch import Api
from headgate.web.api.failures import failure_reply
from headgate.web.api.openapi import openapi_document
from headgate.web.docs import docs_page
from headgate.web.guard import Doorstep, Guard, Limits, Metrics, Visit
from headgate.web.metadata import protected_mcp, protected_resource
from headgate.web.page import front_page

_FRESH = {"Cache-Control": "no-store"}
#: A page of ours runs nothing, loads nothing, sends nothing and is shown in no other page.
_PAGE_ALONE = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
}
_MAX_FORM_BYTES = 64 * 1024
Lifespan = Callable[[Any], AbstractAsyncContextManager[None]]


@dataclass(frozen=True, slots=True)
class Site:
    """Everything the web application is built from."""

    version: str
    rooms: Rooms
    #: Ends a grant, for the holder of a token.
    revoke: Callable[[str, GrantId], Awaitable[None]]
    doorstep: Doorstep
    limits: Limits
    #: The password with which a resource server introspects.
    introspection_secret: str
    #: Opens the program when the server starts and closes it when it stops.
    lifespan: Lifespan
    #: Where tokens come from, if not from this very server.
    authorization_server: str | None = None
    #: Rooms that bring their own addresses.
    more: Sequence[BaseRoute] = ()
    #: Applications that are led to by their exact path, past the list of all others.
    direct: Mapping[str, ASGIApp] = field(default_factory=dict[str, ASGIApp])


def build_app(site: Site) -> ASGIApp:
    """Build the application that ``headgate serve`` runs."""
    metrics = Metrics()
    document = openapi_document()
    routes = [
        Route("/", _front(site)),
        Route("/healthz", _healthz(site)),
        Route("/readyz", _told(_readyz(site))),
        Route("/metrics", _told(_metrics(site, metrics))),
        Route("/openapi.json", _openapi(document)),
        Route("/docs", _docs(document)),
        Route("/.well-known/oauth-protected-resource", _resource(site)),
        Route("/.well-known/oauth-protected-resource/v1", _resource(site)),
        Route("/.well-known/oauth-protected-resource/mcp", _mcp_resource(site)),
        Route("/introspect", _told(_introspect(site)), methods=["POST"]),
        Route("/grants/{grant_id}/revoke", _told(_revoke(site)), methods=["POST"]),
        *site.more,
    ]
    app = Starlette(routes=routes, lifespan=site.lifespan)
    app.router.redirect_slashes = False
    lanes = _fast_lane(Api(site.rooms, site.limits), site.direct, _in_task(app))
    return Guard(lanes, site.doorstep, metrics)


def _in_task(app: ASGIApp) -> ASGIApp:
    """Give every request of an application a task of its own, which the server makes for none."""

    async def in_task(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.ensure_future(app(scope, receive, send))

    return in_task


def _fast_lane(api: ASGIApp, direct: Mapping[str, ASGIApp], others: ASGIApp) -> ASGIApp:
    """Lead reads past the list of all other addresses: they are most of what is asked."""

    def lead(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        path: str = scope.get("path", "")
        app = api if path.startswith("/v1") else direct.get(path, others)
        return app(scope, receive, send)

    return lead


Endpoint = Callable[[Request], Any]


def _visit(request: Request) -> Visit:
    return request.scope["headgate.visit"]


def _told(endpoint: Endpoint) -> Endpoint:
    """Tell the failures of an endpoint the way all failures are told."""

    async def telling(request: Request) -> Response:
        visit = _visit(request)
        visit.route = f"{request.method} {request.scope['route'].path}"
        try:
            return await endpoint(request)
        except HeadgateError as error:
            reply = failure_reply(error, request_id=visit.request_id, origin=visit.origin)
        return Response(
            reply.content, reply.status, {name.decode(): value.decode() for name, value in reply.headers}
        )

    return telling


def _front(site: Site) -> Endpoint:
    async def front(_request: Request) -> Response:
        return HTMLResponse(front_page(site.version), headers=_PAGE_ALONE)

    return front


def _healthz(site: Site) -> Endpoint:
    async def healthz(_request: Request) -> Response:
        return JSONResponse({"status": "ok", "version": site.version}, headers=_FRESH)

    return healthz


def _readyz(site: Site) -> Endpoint:
    async def readyz(_request: Request) -> Response:
        await site.rooms.read_services.catalog()
        status = "ready" if site.rooms.read_services.store.is_writable else "degraded"
        return JSONResponse({"status": status}, headers=_FRESH)

    return readyz


def _metrics(site: Site, metrics: Metrics) -> Endpoint:
    async def numbers(request: Request) -> Response:
        if not site.rooms.admission.admit(_bearer(request)).is_owner:
            raise PermissionRefused("This needs an owner's token.")
        return PlainTextResponse(metrics.text(), headers=_FRESH)

    return numbers


def _openapi(document: dict[str, Any]) -> Endpoint:
    async def openapi(_request: Request) -> Response:
        return JSONResponse(document)

    return openapi


def _docs(document: dict[str, Any]) -> Endpoint:
    page = docs_page(document).encode()

    async def docs(_request: Request) -> Response:
        return HTMLResponse(page, headers=_PAGE_ALONE)

    return docs


def _resource(site: Site) -> Endpoint:
    async def resource(request: Request) -> Response:
        origin = _visit(request).origin
        strict = site.rooms.read_services.rules.strict_core
        return JSONResponse(
            protected_resource(origin, site.authorization_server or origin, strict_core=strict),
            headers=_FRESH,
        )

    return resource


def _mcp_resource(site: Site) -> Endpoint:
    async def resource(request: Request) -> Response:
        origin = _visit(request).origin
        return JSONResponse(protected_mcp(origin, site.authorization_server or origin), headers=_FRESH)

    return resource


def _introspect(site: Site) -> Endpoint:
    async def introspection(request: Request) -> Response:
        if not is_resource_server(request.headers.get("authorization", ""), site.introspection_secret):
            reply = failure_reply(
                ContextRejected("authentication_failed"),
                request_id=_visit(request).request_id,
                origin=_visit(request).origin,
            )
            challenge = {"WWW-Authenticate": 'Basic realm="introspection"', **_FRESH}
            return Response(reply.content, reply.status, challenge, media_type="application/json")
        token = (await _form(request)).get("token", "")
        if not token:
            raise InvalidRequest("token is required.", param="token")
        origin = _visit(request).origin
        told = introspect(
            site.rooms.admission, token, issuer=site.authorization_server or origin, audience=origin
        )
        return JSONResponse(told, headers=_FRESH)

    return introspection


def _revoke(site: Site) -> Endpoint:
    async def revoke(request: Request) -> Response:
        try:
            asked = grant_id(request.path_params["grant_id"])
        except InvalidRequest:
            raise NotFound(param="grant_id") from None
        await site.revoke(_bearer(request), asked)
        return JSONResponse({"revoked": True}, headers=_FRESH)

    return revoke


def _bearer(request: Request) -> str:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise AuthenticationFailed("No bearer token was sent.")
    return token.strip()


async def _form(request: Request) -> dict[str, str]:
    content = bytearray()
    async for piece in request.stream():
        content += piece
        if len(content) > _MAX_FORM_BYTES:
            raise ResourceLimit
    try:
        fields = parse_qs(content.decode(), max_num_fields=20)
    except ValueError:
        raise InvalidRequest("The form cannot be read.") from None
    return {name: values[-1] for name, values in fields.items()}
