"""The front: every request passes through it, in the same steps. The table of addresses is in `headgate.web.app`.

Make the request's context, find its address, check host, origin and load, admit the caller, call the handler, send
its reply or a refusal; always count and log the request. Paths are matched undecoded, so that a record whose key
holds a slash has an address too.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from urllib.parse import quote, unquote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from headgate import memory
from headgate.errors import (
    HeadgateError,
    MethodRefused,
    MisdirectedRequest,
    NotFound,
    ResourceLimit,
    ServerFault,
)
from headgate.model.ids import RequestId
from headgate.telemetry import get_logger, logs_requests
from headgate.web.admission import (
    Callers,
    EdgeAdmission,
    Guard,
    Sharing,
    asked_method,
    permission,
    sharing_headers,
)
from headgate.web.api.definitions import Endpoint
from headgate.web.refusals import Flavour, refusal
from headgate.web.replies import (
    NO_STORE,
    PDPP_VERSION,
    REQUEST,
    Handler,
    Header,
    HttpReply,
    RequestContext,
    ResponseSender,
    WebRequest,
    read_headers,
)
from headgate.wiring import Services

_ID_BYTES = 8
_IDS_A_FETCH = 256
_SEE_OTHER = 303
_PLACE = re.compile(r"{(\w+)}")


@dataclass(frozen=True, slots=True)
class Address:
    """One row of the table: a method and a path, who may call, and what answers."""

    method: str
    path: str
    callers: Callers
    handler: Handler
    flavour: Flavour = Flavour.REST
    #: A body that announces more bytes than this is refused before the token is looked at.
    max_body_bytes: int | None = None
    #: Headers that every response of the address carries.
    headers: tuple[Header, ...] = ()
    #: Checks of the request's headers that come before the token is looked at.
    check: Callable[[RequestContext], None] | None = None
    #: What the address takes and answers, where it is part of the REST interface.
    endpoint: Endpoint | None = None
    #: Which pages of other origins may call it from a browser.
    sharing: Sharing = Sharing.NO_PAGE
    #: Where a person is sent who follows a link to it in a browser, with the same places; empty sends them nowhere.
    page: str = ""
    #: The name of the address in metrics and logs: its method and path unless set.
    route: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "route", self.route or f"{self.method} {self.path}")


class AddressTable:
    """Finds the address of a request."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        methods = dict.fromkeys(address.method for address in addresses)
        self._by_method = {
            method: _MethodPaths([address for address in addresses if address.method == method])
            for method in methods
        }

    def find(self, method: str, raw_path: bytes) -> tuple[Address, Mapping[str, str]]:
        """Find an address and the values of its places; one that refuses when the table has none."""
        path = raw_path.decode("latin-1")
        paths = self._by_method.get("GET" if method == "HEAD" else method)
        match = None if paths is None else paths.find(path)
        if match is None:
            return self._refusing(path), {}
        if "%" not in path:
            return match
        return match[0], {name: unquote(value) for name, value in match[1].items()}

    def _refusing(self, path: str) -> Address:
        others = {method: paths.find(path) for method, paths in self._by_method.items()}
        allowed = {method: match[0] for method, match in others.items() if match is not None}
        if not allowed:
            return NOT_FOUND
        return _with_other_methods(", ".join(allowed), next(iter(allowed.values())))


class _MethodPaths:
    """The addresses of one method, all found by one pattern."""

    def __init__(self, addresses: Sequence[Address]) -> None:
        #: By the number of the pattern's group that holds the whole path; the groups of its places follow it.
        self._found: dict[int | None, tuple[Address, tuple[str, ...], tuple[int, ...]]] = {}
        group, patterns = 1, list[str]()
        for address in addresses:
            names = tuple(_PLACE.findall(address.path))
            groups = tuple(range(group + 1, group + 1 + len(names)))
            self._found[group] = address, names, groups
            group += 1 + len(names)
            patterns.append(_pattern(address.path))
        self._match = re.compile("|".join(patterns)).fullmatch

    def find(self, path: str) -> tuple[Address, Mapping[str, str]] | None:
        match = self._match(path)
        if match is None:
            return None
        address, names, groups = self._found[match.lastindex]
        return address, dict(zip(names, map(match.__getitem__, groups), strict=True))


def _pattern(path: str) -> str:
    """Write a path as a pattern without backtracking; slashes at its end are ignored, so a place there is not empty."""
    *others, last = map(_segment_pattern, path.split("/"))
    return f"({'/'.join(others)}/{last.replace('*+', '++')}/*+)"


def _segment_pattern(segment: str) -> str:
    return "([^/]*+)" if _PLACE.fullmatch(segment) else re.escape(segment)


async def _not_found(_request: WebRequest) -> HttpReply:
    raise NotFound("There is nothing at this address.")


#: Answers where the table has no address.
NOT_FOUND = Address(
    "*", "*", Callers.ANYONE, _not_found, headers=(PDPP_VERSION,), sharing=Sharing.LISTED, route="unknown"
)


def _with_other_methods(allowed: str, known: Address) -> Address:
    async def refuse(_request: WebRequest) -> HttpReply:
        raise MethodRefused(data={"allow": allowed})

    return Address(
        "*",
        known.path,
        Callers.ANYONE,
        refuse,
        known.flavour,
        headers=known.headers,
        sharing=known.sharing,
        route=known.path,
    )


class Front:
    """The ASGI application that ``headgate serve`` runs."""

    def __init__(
        self,
        table: AddressTable,
        *,
        guard: Guard,
        admission: EdgeAdmission,
        services: Services,
        lifespan: ASGIApp,
    ) -> None:
        self._table = table
        self._guard = guard
        self._admission = admission
        self._services = services
        self._lifespan = lifespan
        # Behind an untrusted proxy the scope says http; the public URL is https.
        public = urlsplit(services.public_url)
        self._schemes: dict[str, str] = {public.netloc.casefold(): public.scheme} if public.netloc else {}
        # Made for each instance: forked workers must not repeat each other's ids.
        self._ids = _random_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or run the program's start and stop."""
        if scope["type"] != "http":
            await self._lifespan(scope, receive, send)
            return
        headers = read_headers(scope["headers"])
        client = scope.get("client")
        context = scope[REQUEST] = RequestContext(
            headers.request_id or next(self._ids),
            headers,
            scheme=self._schemes.get(headers.host.casefold(), str(scope["scheme"])),
            client_address=client[0] if client else "",
            started=perf_counter(),
        )
        sender = ResponseSender(send, context.request_id)
        metrics = self._services.metrics
        metrics.under_way += 1
        try:
            await self._answer(context, scope, receive, sender)
        finally:
            metrics.under_way -= 1
            context.status = sender.status
            self._record(context)

    async def _answer(
        self, context: RequestContext, scope: Scope, receive: Receive, sender: ResponseSender
    ) -> None:
        preflight = asked_method(scope["method"], context)
        address, places = self._table.find(preflight or scope["method"], scope["raw_path"])
        context.route = address.route
        try:
            self._guard.check(context, scope, address.sharing)
            sender.more = sharing_headers(context, address.sharing)
            if preflight is not None:
                reply = permission(preflight, address.sharing)
            elif address.page and _is_followed_link(context, scope):
                reply = _page_of(address, places, scope)
            else:
                _check(context, address)
                await self._admission.admit(context, address.callers)
                request = WebRequest(context, self._services, places, scope, receive, sender)
                reply = await address.handler(request)
        except HeadgateError as error:
            reply = self._refusal(error, context, address.flavour)
        except Exception as error:
            get_logger().error("request_failed", request_id=context.request_id, exc_info=True)
            if sender.status:
                # Half a response cannot be taken back; the server ends the connection.
                raise
            fault = memory.out_of_memory() if isinstance(error, MemoryError) else ServerFault()
            reply = self._refusal(fault, context, address.flavour)
        if reply is not None:
            await sender.reply(reply, address.headers)

    def _refusal(self, error: HeadgateError, context: RequestContext, flavour: Flavour) -> HttpReply:
        # The caller chose the Host header: one that is not ours must not come back as part of a link.
        own = self._services.public_url if flavour is Flavour.MCP else ""
        origin = "" if isinstance(error, MisdirectedRequest) else own or context.origin
        return refusal(error, context, flavour, origin=origin)

    def _record(self, context: RequestContext) -> None:
        seconds = perf_counter() - context.started
        self._services.metrics.record(context.route, context.status, seconds)
        if logs_requests():
            get_logger().info(
                "request",
                request_id=context.request_id,
                route=context.route,
                status=context.status,
                duration_ms=round(seconds * 1000, 2),
                client_id=context.client_id,
            )


def _check(context: RequestContext, address: Address) -> None:
    """Refuse what can be refused without a token; nothing of a body is read before this and admission have passed."""
    if address.check is not None:
        address.check(context)
    if address.max_body_bytes is not None:
        _check_length(context, address.max_body_bytes)


def _is_followed_link(context: RequestContext, scope: Scope) -> bool:
    """Return whether a person opened the address in a browser: a program sends a token, and asks for no page."""
    sent = context.headers.values
    accepted = sent.get(b"accept", b"").partition(b",")[0].strip()
    return scope["method"] == "GET" and b"authorization" not in sent and accepted == b"text/html"


def _page_of(address: Address, places: Mapping[str, str], scope: Scope) -> HttpReply:
    path = address.page.format_map({name: quote(value, safe="") for name, value in places.items()})
    query = scope["query_string"]
    location = path.encode() + (b"?" + query if query else b"")
    return HttpReply(status=_SEE_OTHER, headers=((b"location", location), NO_STORE))


def _check_length(context: RequestContext, most_bytes: int) -> None:
    length = context.headers.values.get(b"content-length", b"")
    if length.isdigit() and int(length) > most_bytes:
        raise ResourceLimit(f"A request has at most {most_bytes} bytes.")


def _random_ids() -> Iterator[RequestId]:
    """Make request ids without end; one fetch of randomness serves many, because each fetch is a system call."""
    while True:
        pool = secrets.token_hex(_ID_BYTES * _IDS_A_FETCH)
        for start in range(0, len(pool), _ID_BYTES * 2):
            yield RequestId("req_" + pool[start : start + _ID_BYTES * 2])
