"""``/mcp`` and ``/gateway`` on the same server as the rest: who keeps their doors, and an icon."""

from __future__ import annotations

from time import perf_counter

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.auth.admission import Admission
from headgate.errors import AuthenticationFailed, RateLimited
from headgate.mcp.gateway.hosted import PATH as GATEWAY_PATH, HostedGateway
from headgate.mcp.serve.hosted import PATH, Admitted, HostedMcp
from headgate.model.ids import RequestId
from headgate.reading.local import LocalResourceServer, ReadContext
from headgate.reading.services import ReadServices
from headgate.web.api.failures import failure_reply
from headgate.web.api.replies import send_reply
from headgate.web.guard import Limits, Visit

_ICON = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 48 48"><rect width="48" height="48" rx="9" fill="#1b5e6b"/>'
    '<path d="M10 9h4v30h-4zM34 9h4v30h-4zM14 13h20v13H14z" fill="#fff"/>'
    '<path d="M14 32q5-4 10 0t10 0v7H14z" fill="#9fd3dc"/></svg>'
)


class Doorkeeper:
    """Admits a token of a request that the guard has let in."""

    __slots__ = ("_admission", "_limits", "_public_url", "_services")

    def __init__(
        self, read_services: ReadServices, admission: Admission, limits: Limits, public_url: str
    ) -> None:
        self._services = read_services
        self._admission = admission
        self._limits = limits
        self._public_url = public_url

    def origin(self, scope: Scope) -> str:
        """Give the server's public address, or else the one the caller used."""
        visit: Visit = scope["headgate.visit"]
        return self._public_url or visit.origin

    def admit(self, scope: Scope, token: str) -> Admitted:
        """Look a token up, within the limits that all requests have."""
        visit: Visit = scope["headgate.visit"]
        self._limits.refuse_guesses(visit.address)
        self._limits.refuse_haste(token)
        try:
            access = self._admission.admit(token)
        except AuthenticationFailed:
            self._limits.note_guess(visit.address)
            raise
        visit.client_id = access.client_id
        request_id = RequestId(visit.request_id)

        def port(via: str) -> LocalResourceServer:
            return LocalResourceServer(
                self._services, ReadContext(access, request_id, via, is_just_admitted=True)
            )

        return Admitted(access, port, request_id)


def mcp_routes() -> list[BaseRoute]:
    """Say which addresses come with the MCP server: its icon."""
    return [Route("/icon.svg", _icon)]


def mcp_apps(hosted: HostedMcp) -> dict[str, ASGIApp]:
    """Give the MCP server at both spellings of its address."""
    return dict.fromkeys((PATH, f"{PATH}/"), _timed(hosted))


async def _icon(_request: Request) -> Response:
    return Response(_ICON, media_type="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})


def _timed(hosted: HostedMcp) -> ASGIApp:
    async def timed(scope: Scope, receive: Receive, send: Send) -> None:
        visit: Visit = scope["headgate.visit"]
        visit.route = PATH
        started = perf_counter()
        try:
            await hosted(scope, receive, send)
        finally:
            visit.seconds = perf_counter() - started

    return timed


def gateway_routes(gateway: HostedGateway, admission: Admission, limits: Limits) -> list[BaseRoute]:
    """Say which addresses the gateway brings: both spellings of its own."""
    app = _App(_watched(gateway, admission, limits))
    # Nothing is ever streamed unasked, so there is nothing to open and nothing to end.
    return [Route(path, app, methods=["POST"]) for path in (GATEWAY_PATH, f"{GATEWAY_PATH}/")]


def _watched(gateway: HostedGateway, admission: Admission, limits: Limits) -> ASGIApp:
    """Keep the limits that all requests have; who is calling is then the gateway's to find out."""

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        visit: Visit = scope["headgate.visit"]
        visit.route = GATEWAY_PATH
        token = visit.head.bearer
        started = perf_counter()
        try:
            limits.refuse_guesses(visit.address)
            if token is not None:
                limits.refuse_haste(token)
                if admission.look_up(token) is None:
                    limits.note_guess(visit.address)
            await gateway(scope, receive, send)
        except RateLimited as error:
            reply = failure_reply(error, request_id=visit.request_id, origin=visit.origin)
            await send_reply(reply, send)
        finally:
            visit.seconds = perf_counter() - started

    return watched


class _App:
    """An ASGI application that Starlette does not take for a plain function."""

    __slots__ = ("_app",)

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        await self._app(scope, receive, send)
