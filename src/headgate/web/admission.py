"""Who may call: the checks that need no token, and the admission of those who send one.

Without a token: repeated headers, the host, the origin of a page (CORS), how much is under way. With one: refuse a token
that asks too often, look it up, slow down who sends tokens that do not exist, check its kind, and write a refusal of a
known token to the disclosure log. One that does not exist leaves no entry there.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from starlette.types import Scope

from headgate import memory
from headgate.auth.admission import Admission
from headgate.auth.documents import is_resource_server
from headgate.auth.gateway import GatewayCallers
from headgate.auth.limits import RequestLimits
from headgate.errors import (
    AuthenticationFailed,
    ContextRejected,
    HeadgateError,
    InvalidRequest,
    MisdirectedRequest,
    Overloaded,
    PermissionRefused,
)
from headgate.model.grant import Access, TokenKind
from headgate.telemetry import Metrics
from headgate.web.replies import NO_CONTENT, Header, HttpReply, RequestContext

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


class Callers(StrEnum):
    """Who may call an address."""

    #: No token is looked at.
    ANYONE = "anyone"
    #: An owner's token, or a client's or a package's within its grants.
    READERS = "readers"
    OWNER = "owner"
    #: A client's or a package's token; never an owner's.
    AGENTS = "agents"
    #: Any token that is valid by itself, even one whose grant has ended.
    HOLDERS = "holders"
    #: The holder of a token for the gateway, or a client's token; what each may call is judged later.
    GATEWAY_CLIENTS = "gateway_clients"
    #: A resource server that knows the introspection password.
    RESOURCE_SERVERS = "resource_servers"


class EdgeAdmission:
    """Admits requests, and puts what their token stands for into their context."""

    __slots__ = ("_admission", "_gateway_callers", "_limits", "_password", "_strict_core")

    def __init__(
        self,
        admission: Admission,
        limits: RequestLimits,
        introspection_password: str,
        *,
        strict_core: bool = False,
        gateway_callers: GatewayCallers | None = None,
    ) -> None:
        self._admission = admission
        self._limits = limits
        self._password = introspection_password
        self._gateway_callers = gateway_callers
        #: The core protocol has one grant for each token, so it refuses packages at REST addresses.
        self._strict_core = strict_core

    async def admit(self, context: RequestContext, callers: Callers) -> None:
        """Admit a request.

        Raises:
            AuthenticationFailed: there is no token or password, or it is not valid.
        """
        match callers:
            case Callers.ANYONE:
                return
            case Callers.RESOURCE_SERVERS:
                self._admit_resource_server(context)
            case Callers.GATEWAY_CLIENTS:
                await self._admit_gateway_client(context)
            case _:
                await self._admit_token(context, callers)

    async def _admit_token(self, context: RequestContext, callers: Callers) -> None:
        token = context.headers.bearer
        if token is None:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.check_rate(token)
        try:
            if callers is Callers.HOLDERS:
                await self._check_token_exists(token)
            else:
                # An agent's client shows its model what a tool answers, and not what HTTP does.
                checks_budget = callers is not Callers.AGENTS
                access = await self._admission.admit(token, context.route, checks_budget=checks_budget)
                _check_kind(access, callers)
                if self._strict_core and callers is Callers.READERS:
                    _refuse_package(access)
                context.access = access
        except AuthenticationFailed:
            self._limits.count_failed_token(context.client_address, token)
            raise
        except HeadgateError as error:
            await self._admission.note_refusal(
                token, error.code, context.route, request_id=context.request_id
            )
            raise

    async def _check_token_exists(self, token: str) -> None:
        if await self._admission.look_up(token) is None:
            raise AuthenticationFailed

    async def _admit_gateway_client(self, context: RequestContext) -> None:
        token = context.headers.bearer
        if token is None:
            raise AuthenticationFailed("No bearer token was sent.")
        self._limits.check_rate(token)
        callers = self._gateway_callers
        context.gateway_caller = None if callers is None else await callers.holder(token)
        if context.gateway_caller is not None:
            return
        try:
            context.access = await self._admission.admit(token, context.route)
        except AuthenticationFailed:
            self._limits.count_failed_token(context.client_address, token)
            raise
        except HeadgateError as error:
            await self._admission.note_refusal(
                token, error.code, context.route, request_id=context.request_id
            )
            raise

    def _admit_resource_server(self, context: RequestContext) -> None:
        authorization = context.headers.values.get(b"authorization")
        if authorization is None or not is_resource_server(authorization.decode("latin-1"), self._password):
            if authorization is not None:
                self._limits.count_failed_token(context.client_address)
            raise ContextRejected("authentication_failed")


def _check_kind(access: Access, callers: Callers) -> None:
    kind = access.token_kind
    if callers is Callers.OWNER and kind is not TokenKind.OWNER:
        raise PermissionRefused("This needs an owner's token.")
    if callers is Callers.AGENTS and kind is TokenKind.OWNER:
        raise PermissionRefused(
            "An owner's token is not accepted here.",
            hint="Use a client's token, or a package's, that the owner granted for agents.",
        )


def _refuse_package(access: Access) -> None:
    if access.token_kind is TokenKind.MCP_PACKAGE:
        raise PermissionRefused("Package tokens are for /mcp only.")
