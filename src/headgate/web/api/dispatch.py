"""From a request to its endpoint: route, admit, parse, call, reply.

Paths are matched undecoded, so that a record whose key holds a slash has an address too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from time import perf_counter
from urllib.parse import unquote

import msgspec
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
from headgate.reading.port import ReadAnswer
from headgate.telemetry import get_logger
from headgate.web.api import owner, reads
from headgate.web.api.calls import Call, Handler, Rooms
from headgate.web.api.definitions import ENDPOINTS, Endpoint, Who
from headgate.web.api.failures import failure_reply
from headgate.web.api.params import read_params
from headgate.web.api.replies import PRIVATE, USUAL, Delivery, Reply, send_reply
from headgate.web.guard import Limits, Visit

PDPP_VERSION = b"2026-04-06"
_VERSION = ((b"pdpp-version", PDPP_VERSION),)
_ANSWERED = (*USUAL, *_VERSION)
_PLACE = re.compile(r"{(\w+)}")


def _handlers() -> dict[str, Handler]:
    found: dict[str, Handler] = {}
    for endpoint in ENDPOINTS:
        room = owner if endpoint.who is Who.OWNER else reads
        found[endpoint.id] = getattr(room, endpoint.id)
    return found


class _Route(msgspec.Struct, frozen=True):
    """One endpoint, and the names of the places in its path."""

    endpoint: Endpoint
    handler: Handler
    is_for_owner: bool
    names: tuple[str, ...]
    #: Where in the pattern they are.
    groups: tuple[int, ...]


class _Routes:
    """The endpoints of one method, all found by one pattern."""

    def __init__(self, endpoints: Sequence[Endpoint], handlers: Mapping[str, Handler]) -> None:
        #: By the number of the pattern's group that holds the whole path; its places follow.
        self._routes: dict[int | None, _Route] = {}
        group, patterns = 1, list[str]()
        for endpoint in endpoints:
            names = tuple(_PLACE.findall(endpoint.path))
            places = tuple(range(group + 1, group + 1 + len(names)))
            is_for_owner = endpoint.who is Who.OWNER
            self._routes[group] = _Route(endpoint, handlers[endpoint.id], is_for_owner, names, places)
            group += 1 + len(names)
            patterns.append(_pattern(endpoint.path))
        self._match = re.compile("|".join(patterns)).fullmatch

    def find(self, path: str) -> tuple[_Route, Mapping[str, str]] | None:
        """Give the route of a path, and the values of its places as they stand there."""
        found = self._match(path)
        if found is None:
            return None
        route = self._routes[found.lastindex]
        return route, dict(zip(route.names, map(found.__getitem__, route.groups), strict=True))


def _pattern(path: str) -> str:
    """Write a path as a pattern that never looks back; slashes at its end mean nothing, so a place there is not empty."""
    *others, last = [_PLACE.sub("([^/]*+)", segment) for segment in path.split("/")]
    return f"({'/'.join(others)}/{last.replace('*+', '++')}/*+)"


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
        methods = dict.fromkeys(one.method for one in ENDPOINTS)
        self._routes = {
            method: _Routes([one for one in ENDPOINTS if one.method == method], handlers)
            for method in methods
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        visit: Visit = scope["headgate.visit"]
        started = perf_counter()
        try:
            method: str = scope["method"]
            route, path = self._match("GET" if method == "HEAD" else method, scope["raw_path"])
            visit.route = route.endpoint.route
            _refuse_version(visit.head.values)
            access = self._admit(visit)
            _refuse_kind(route, access)
            call = Call(
                endpoint=route.endpoint,
                method=method,
                access=access,
                path=path,
                given=read_params(route.endpoint, scope["query_string"]),
                headers=visit.head.values,
                request_id=RequestId(visit.request_id),
                receive=receive,
                rooms=self._rooms,
            )
            reply = await route.handler(call)
        except HeadgateError as error:
            reply = failure_reply(error, request_id=visit.request_id, origin=visit.origin)
        except _OtherMethods as allowed:
            reply = Reply(status=405, headers=(PRIVATE, (b"allow", str(allowed).encode("ascii"))))
        except Exception:  # noqa: BLE001 - the edge answers whatever happened, and logs where
            get_logger().error("request failed", request_id=visit.request_id, exc_info=True)
            reply = failure_reply(ServerFault(), request_id=visit.request_id, origin=visit.origin)
        visit.seconds = perf_counter() - started
        if isinstance(reply, ReadAnswer):
            if isinstance(send, Delivery) and send.answer(_ANSWERED, reply.content):
                return
            reply = Reply(reply.content)
        await send_reply(reply, send, _VERSION)

    def _match(self, method: str, raw: bytes) -> tuple[_Route, Mapping[str, str]]:
        path = raw.decode("latin-1")
        routes = self._routes.get(method)
        found = None if routes is None else routes.find(path)
        if found is not None:
            return found if raw.find(b"%") < 0 else (found[0], _unquoted(found[1]))
        allowed = [other for other, routes in self._routes.items() if routes.find(path) is not None]
        if not allowed:
            raise NotFound("There is nothing at this address.")
        raise _OtherMethods(", ".join(allowed))

    def _admit(self, visit: Visit) -> Access:
        token = visit.head.bearer
        if token is None:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.refuse_guesses(visit.address)
        self._limits.refuse_haste(token)
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
