"""From a request to its endpoint: route, admit, parse, call, reply.

Paths are matched undecoded, so that a record whose key holds a slash has an address too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import unquote

from starlette.types import Receive, Scope, Send

from headgate.errors import (
    AuthenticationFailed,
    HeadgateError,
    NotFound,
    PermissionRefused,
    ServerFault,
    UnsupportedVersion,
)
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import RequestId
from headgate.telemetry import get_logger
from headgate.web.api import owner, reads
from headgate.web.api.calls import Call, Handler, Rooms
from headgate.web.api.definitions import ENDPOINTS, Endpoint, Who
from headgate.web.api.failures import failure_reply
from headgate.web.api.params import read_params
from headgate.web.api.replies import PRIVATE, Reply, send_reply
from headgate.web.guard import Limits, Visit

PDPP_VERSION = b"2026-04-06"
_VERSION_HEADER = (b"pdpp-version", PDPP_VERSION)
_READS = {TokenKind.OWNER, TokenKind.CLIENT}


def _handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for endpoint in ENDPOINTS:
        room = owner if endpoint.who is Who.OWNER else reads
        found[endpoint.id] = getattr(room, endpoint.id)
    return found


@dataclass(frozen=True, slots=True)
class _Route:
    endpoint: Endpoint
    handler: Handler
    segments: tuple[str, ...]

    def match(self, segments: list[str]) -> Mapping[str, str] | None:
        """Give the values of the path's places, if the path is this route's."""
        found: dict[str, str] = {}
        for own, given in zip(self.segments, segments, strict=True):
            if own[0] == "{":
                found[own[1:-1]] = unquote(given)
            elif own != given:
                return None
        return found


class Api:
    """The application behind ``/v1``."""

    def __init__(self, rooms: Rooms, limits: Limits) -> None:
        self._rooms = rooms
        self._limits = limits
        handlers = _handlers()
        self._routes: dict[int, list[_Route]] = {}
        for endpoint in ENDPOINTS:
            segments = tuple(endpoint.path.strip("/").split("/"))
            route = _Route(endpoint, handlers[endpoint.id], segments)
            self._routes.setdefault(len(segments), []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        visit: Visit = scope["headgate.visit"]
        started = perf_counter()
        try:
            reply = await self._reply(scope, receive, visit)
        except HeadgateError as error:
            reply = failure_reply(error, request_id=visit.request_id, origin=visit.origin)
        except Exception:  # noqa: BLE001 - the edge answers whatever happened, and logs where
            get_logger().error("request failed", request_id=visit.request_id, exc_info=True)
            reply = failure_reply(ServerFault(), request_id=visit.request_id, origin=visit.origin)
        visit.seconds = perf_counter() - started
        await send_reply(reply, send, (_VERSION_HEADER,))

    async def _reply(self, scope: Scope, receive: Receive, visit: Visit) -> Reply:
        method: str = scope["method"]
        raw: bytes = scope["raw_path"]
        matched = self._match("GET" if method == "HEAD" else method, raw)
        if isinstance(matched, Reply):
            return matched
        route, path = matched
        visit.route = route.endpoint.route
        headers = visit.headers
        _refuse_version(headers)
        access = self._admit(headers, visit)
        _refuse_kind(route.endpoint, access)
        call = Call(
            endpoint=route.endpoint,
            method=method,
            access=access,
            path=path,
            given=read_params(route.endpoint, scope["query_string"]),
            headers=headers,
            request_id=RequestId(visit.request_id),
            receive=receive,
            rooms=self._rooms,
        )
        return await route.handler(call)

    def _match(self, method: str, raw: bytes) -> tuple[_Route, Mapping[str, str]] | Reply:
        segments = raw.decode("latin-1").strip("/").split("/")
        allowed: list[str] = []
        for route in self._routes.get(len(segments), ()):
            path = route.match(segments)
            if path is not None:
                if route.endpoint.method == method:
                    return route, path
                allowed.append(route.endpoint.method)
        if not allowed:
            raise NotFound("There is nothing at this address.")
        return Reply(status=405, headers=(PRIVATE, (b"allow", ", ".join(allowed).encode("ascii"))))

    def _admit(self, headers: Mapping[bytes, bytes], visit: Visit) -> Access:
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.refuse_guesses(visit.address)
        self._limits.refuse_haste(token)
        try:
            access = self._rooms.admission.admit(token.strip())
        except AuthenticationFailed:
            self._limits.note_guess(visit.address)
            raise
        except HeadgateError as refusal:
            self._rooms.admission.note_refusal(
                token.strip(), refusal.code, visit.route, request_id=RequestId(visit.request_id)
            )
            raise
        visit.client_id = access.client_id
        return access


def _refuse_version(headers: Mapping[bytes, bytes]) -> None:
    asked = headers.get(b"pdpp-version")
    if asked is not None and asked != PDPP_VERSION:
        raise UnsupportedVersion(
            f"This server speaks PDPP-Version {PDPP_VERSION.decode()}.", param="PDPP-Version"
        )


def _refuse_kind(endpoint: Endpoint, access: Access) -> None:
    if endpoint.who is Who.OWNER and not access.is_owner:
        raise PermissionRefused("This needs an owner's token.")
    if access.token_kind not in _READS:
        raise PermissionRefused("Package tokens are for /mcp only.")
