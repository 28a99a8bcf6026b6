"""The front: every request passes through it, in the same steps.

Make the request's context, find its address, check host, origin and load, admit the caller, call the handler, send
its reply or a refusal; always count and log the request.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from time import perf_counter
from urllib.parse import quote, urlsplit

from starlette.types import ASGIApp, Receive, Scope, Send

from headgate import memory
from headgate.errors import HeadgateError, MisdirectedRequest, ResourceLimit, ServerFault
from headgate.model.ids import RequestId
from headgate.telemetry import get_logger, logs_requests
from headgate.web.addresses import Address, AddressTable, WebRequest
from headgate.web.admission import EdgeAdmission, Guard, asked_method, permission, sharing_headers
from headgate.web.refusals import Flavour, refusal
from headgate.web.replies import NO_STORE, REQUEST, HttpReply, RequestContext, ResponseSender, read_headers
from headgate.wiring import Services

_ID_BYTES = 8
_IDS_A_FETCH = 256
_SEE_OTHER = 303


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
