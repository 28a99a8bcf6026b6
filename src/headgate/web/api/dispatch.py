"""From a request to its endpoint: route, admit, parse, call, reply.

Paths are matched undecoded, so that a record whose key holds a slash has an address too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from headgate.web.api.replies import PRIVATE, Reply, send_at_once, send_reply
from headgate.web.guard import Limits, Visit

PDPP_VERSION = b"2026-04-06"
_VERSION = ((b"pdpp-version", PDPP_VERSION),)


def _handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for endpoint in ENDPOINTS:
        room = owner if endpoint.who is Who.OWNER else reads
        found[endpoint.id] = getattr(room, endpoint.id)
    return found


class _Route:
    """One endpoint, and where in a path its places and its fixed words are."""

    __slots__ = ("_fixed", "_names", "_places", "_words", "endpoint", "handler", "is_for_owner")

    def __init__(self, endpoint: Endpoint, handler: Handler, segments: Sequence[str]) -> None:
        self.endpoint = endpoint
        self.handler = handler
        self.is_for_owner = endpoint.who is Who.OWNER
        self._fixed = [at for at, segment in enumerate(segments) if segment[0] != "{"]
        self._words = [segments[at] for at in self._fixed]
        self._places = [at for at, segment in enumerate(segments) if segment[0] == "{"]
        self._names = [segments[at][1:-1] for at in self._places]

    def match(self, segments: list[str]) -> Mapping[str, str] | None:
        """Give the values of the path's places as they stand there, if the path is this route's."""
        get = segments.__getitem__
        if list(map(get, self._fixed)) != self._words:
            return None
        return dict(zip(self._names, map(get, self._places), strict=True))


def _unquoted(path: Mapping[str, str]) -> Mapping[str, str]:
    return {name: unquote(value) for name, value in path.items()}


class _OtherMethods(Exception):
    """Which methods an address takes."""


class Api:
    """The application behind ``/v1``."""

    def __init__(self, rooms: Rooms, limits: Limits) -> None:
        self._rooms = rooms
        self._limits = limits
        handlers = _handlers()
        #: By how many segments a path has, and the method.
        self._routes: dict[int, dict[str, list[_Route]]] = {}
        for endpoint in ENDPOINTS:
            segments = endpoint.path.strip("/").split("/")
            route = _Route(endpoint, handlers[endpoint.id], segments)
            self._routes.setdefault(len(segments), {}).setdefault(endpoint.method, []).append(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        visit: Visit = scope["headgate.visit"]
        started = perf_counter()
        try:
            method: str = scope["method"]
            route, path = self._match("GET" if method == "HEAD" else method, scope["raw_path"])
            visit.route = route.endpoint.route
            _refuse_version(visit.headers)
            access = self._admit(visit)
            _refuse_kind(route, access)
            call = Call(
                endpoint=route.endpoint,
                method=method,
                access=access,
                path=path,
                given=read_params(route.endpoint, scope["query_string"]),
                headers=visit.headers,
                request_id=RequestId(visit.request_id),
                receive=receive,
                rooms=self._rooms,
            )
            answer = await route.handler(call)
            reply = answer if isinstance(answer, Reply) else Reply(answer.content)
        except HeadgateError as error:
            reply = failure_reply(error, request_id=visit.request_id, origin=visit.origin)
        except _OtherMethods as allowed:
            reply = Reply(status=405, headers=(PRIVATE, (b"allow", str(allowed).encode("ascii"))))
        except Exception:  # noqa: BLE001 - the edge answers whatever happened, and logs where
            get_logger().error("request failed", request_id=visit.request_id, exc_info=True)
            reply = failure_reply(ServerFault(), request_id=visit.request_id, origin=visit.origin)
        visit.seconds = perf_counter() - started
        if not send_at_once(reply, send, _VERSION):
            await send_reply(reply, send, _VERSION)

    def _match(self, method: str, raw: bytes) -> tuple[_Route, Mapping[str, str]]:
        segments = raw.decode("latin-1").strip("/").split("/")
        routes = self._routes.get(len(segments), {})
        for route in routes.get(method, ()):
            path = route.match(segments)
            if path is not None:
                return route, path if raw.find(b"%") < 0 else _unquoted(path)
        allowed = [
            one.endpoint.method
            for others in routes.values()
            for one in others
            if one.match(segments) is not None
        ]
        if not allowed:
            raise NotFound("There is nothing at this address.")
        raise _OtherMethods(", ".join(allowed))

    def _admit(self, visit: Visit) -> Access:
        scheme, _, rest = visit.headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        token = rest.strip()
        if scheme.lower() != "bearer" or not rest:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.refuse_guesses(visit.address)
        self._limits.refuse_haste(rest)
        try:
            access = self._rooms.admission.admit(token)
        except AuthenticationFailed:
            self._limits.note_guess(visit.address)
            raise
        except HeadgateError as refusal:
            self._rooms.admission.note_refusal(
                token, refusal.code, visit.route, request_id=RequestId(visit.request_id)
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


def _refuse_kind(route: _Route, access: Access) -> None:
    kind = access.token_kind
    if route.is_for_owner and kind is not TokenKind.OWNER:
        raise PermissionRefused("This needs an owner's token.")
    if kind is TokenKind.MCP_PACKAGE:
        raise PermissionRefused("Package tokens are for /mcp only.")
