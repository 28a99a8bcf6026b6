"""The checks that need no token: repeated headers, the host, how much is under way, and which pages may read what.

Pages of other origins are let in by the rules of CORS.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from starlette.types import Scope

from headgate import memory
from headgate.errors import InvalidRequest, MisdirectedRequest, Overloaded, PermissionRefused
from headgate.telemetry import Metrics
from headgate.web.context import RequestContext
from headgate.web.replies import NO_CONTENT, Header, HttpReply

_ORIGIN = b"origin"
_ASKED_METHOD = b"access-control-request-method"
_HEADERS = (
    b"accept, authorization, content-type, idempotency-key, if-none-match, last-event-id, mcp-method, mcp-name, "
    b"mcp-protocol-version, mcp-session-id, pdpp-version, range, request-id"
)
#: What a script may read of a response, beside what every script may.
_READABLE: Header = (
    b"access-control-expose-headers",
    b"content-range, etag, mcp-session-id, pdpp-version, request-id, retry-after, www-authenticate",
)
_VARY: Header = (b"vary", b"origin")
_MAX_AGE: Header = (b"access-control-max-age", b"600")


class Sharing(StrEnum):
    """Which pages of other origins may call an address, and read its answers."""

    #: None: what is shown there is the owner's.
    NO_PAGE = "no page"
    #: Those that the owner lists.
    LISTED = "listed"
    #: All: it is public, and the same for everyone.
    EVERY_PAGE = "every page"


def asked_method(method: str, context: RequestContext) -> str | None:
    """Return the method that a browser asks about before it sends a page's request; None if it asks nothing."""
    sent = context.headers.values
    is_question = method == "OPTIONS" and _ORIGIN in sent and _ASKED_METHOD in sent
    return sent[_ASKED_METHOD].decode("latin-1") if is_question else None


def sharing_headers(context: RequestContext, sharing: Sharing) -> tuple[Header, ...]:
    """Write the headers that let a page of another origin read an answer; its origin was judged before."""
    origin = context.headers.values.get(_ORIGIN)
    if sharing is Sharing.EVERY_PAGE:
        return (b"access-control-allow-origin", b"*"), _READABLE
    is_other = origin is not None and origin.decode("latin-1") != context.origin
    if sharing is Sharing.NO_PAGE or origin is None or not is_other:
        return ()
    return (b"access-control-allow-origin", origin), _VARY, _READABLE


def permission(method: str, sharing: Sharing) -> HttpReply:
    """Answer a browser's question: the page may send such a request, with these headers."""
    if sharing is Sharing.NO_PAGE:
        raise PermissionRefused("Pages of other origins may not call this address.")
    allowed = (
        (b"access-control-allow-methods", method.encode()),
        (b"access-control-allow-headers", _HEADERS),
    )
    return HttpReply(status=NO_CONTENT, headers=(*allowed, _MAX_AGE))


#: Where in the state of a scope the server says how many requests had arrived before and are not answered yet.
REQUESTS_AHEAD = "requests_ahead"
_LOOPBACK_NAMES = frozenset({"localhost"})
_MAX_HOST_CHARS = 261
#: A name or an address, in brackets if it has colons, and a port.
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z._-]+)(?::([0-9]{1,5}))?")
_MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class AllowedCallers:
    """Which hosts, origins and how many requests the server takes."""

    #: Host names beside loopback and private addresses, without a port.
    hosts: frozenset[str] = frozenset()
    #: Origins of pages that may call from a browser, beside the server's own.
    origins: frozenset[str] = frozenset()
    max_requests: int = 512


class Guard:
    """Refuses requests before anything is known about who sent them."""

    __slots__ = ("_allowed", "_metrics")

    def __init__(self, allowed: AllowedCallers, metrics: Metrics) -> None:
        self._allowed = allowed
        self._metrics = metrics

    def check(self, context: RequestContext, scope: Scope, sharing: Sharing = Sharing.NO_PAGE) -> None:
        """Check a request to an address that is shared so."""
        headers = context.headers
        if headers.has_duplicate_singletons:
            raise InvalidRequest("A header that must stand alone was sent twice.")
        if not is_known_host(headers.host, self._allowed.hosts):
            raise MisdirectedRequest
        origin = headers.values.get(b"origin")
        if origin is not None and not self._may_call(origin.decode("latin-1"), context, sharing):
            raise PermissionRefused("Pages of that origin may not call this server.")
        # Those that wait for the event loop are not under way yet.
        waiting = scope.get("state", {}).get(REQUESTS_AHEAD, 0)
        if max(self._metrics.under_way - 1, waiting) >= self._allowed.max_requests:
            raise Overloaded
        memory.require()

    def _may_call(self, origin: str, context: RequestContext, sharing: Sharing) -> bool:
        is_listed = sharing is not Sharing.NO_PAGE and origin in self._allowed.origins
        return sharing is Sharing.EVERY_PAGE or is_listed or origin == context.origin


def is_known_host(host: str, names: frozenset[str]) -> bool:
    """Return whether a Host header is the server's: one of its names, or a loopback or private address."""
    # Judged before the cache sees it, so that strangers cannot fill the cache with long keys.
    return len(host) <= _MAX_HOST_CHARS and _is_known(host, names)


@lru_cache(maxsize=256)
def _is_known(host: str, names: frozenset[str]) -> bool:
    parts = _HOST.fullmatch(host)
    if parts is None or int(parts[2] or 0) > _MAX_PORT:
        return False
    name = parts[1].lower().removesuffix(".")
    if name in names or name in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_private
