"""One request and its reply: what the front learns once about a request, what its handler gets, and how a reply is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias

import msgspec
from starlette.types import Message, Receive, Scope, Send

from headgate.auth.keys import read_bearer
from headgate.errors import InvalidRequest, ResourceLimit
from headgate.model.grant import Access
from headgate.model.ids import ClientId, RequestId, request_id
from headgate.wiring import Services

Header = tuple[bytes, bytes]
NO_CONTENT = 204
JSON: Header = (b"content-type", b"application/json; charset=utf-8")
#: JSON outside of ``/v1``; JSON is UTF-8 in any case, and clients of these addresses never saw a charset.
PLAIN_JSON: Header = (b"content-type", b"application/json")
HTML: Header = (b"content-type", b"text/html; charset=utf-8")
#: An answer to a token: it changes with the grant, so no cache may hold it.
PRIVATE: Header = (b"cache-control", b"private, no-store")
NO_STORE: Header = (b"cache-control", b"no-store")
NOSNIFF: Header = (b"x-content-type-options", b"nosniff")
_POLICY_NAME = b"content-security-policy"
#: What is no page runs nothing, loads nothing and is shown inside no page, should a browser open it as one.
_NO_PAGE: Header = (_POLICY_NAME, b"default-src 'none'; frame-ancestors 'none'")
#: The version of the resource server's protocol, which every REST answer names.
PDPP_VERSION: Header = (b"pdpp-version", b"2026-04-06")
#: The headers of an answered read.
JSON_HEADERS = (JSON, PRIVATE)


class HttpReply(msgspec.Struct, frozen=True):
    """What is sent back."""

    content: bytes = b""
    status: int = 200
    headers: tuple[Header, ...] = JSON_HEADERS
    #: Sent piece by piece instead of the content; the headers then hold its length.
    stream: AsyncIterator[bytes] | None = None


def json_reply(
    document: Mapping[str, Any], status: int = 200, headers: tuple[Header, ...] = JSON_HEADERS
) -> HttpReply:
    return HttpReply(msgspec.json.encode(document), status, headers)


def empty_reply() -> HttpReply:
    """Reply that the request is done, with no content."""
    return HttpReply(status=NO_CONTENT, headers=(PRIVATE,))


class ResponseSender:
    """Sends the response of one request, with the headers every response has, and notes its status."""

    __slots__ = ("_request_id", "_send", "more", "status")

    def __init__(self, send: Send, request_id: str) -> None:
        self._send = send
        self._request_id: Header = (b"request-id", request_id.encode("ascii"))
        #: The status that was sent; 0 while there is none.
        self.status = 0
        #: Headers that the response has besides, also one that a handler writes itself.
        self.more: tuple[Header, ...] = ()

    async def __call__(self, message: Message) -> None:
        """Send a message of an ASGI application that writes its response itself."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": self._headers(message.get("headers", ()))}
        await self._send(message)

    def _headers(self, own: Iterable[Header]) -> list[Header]:
        headers = [*own, *self.more, self._request_id, NOSNIFF]
        if not any(name == _POLICY_NAME for name, _ in headers):
            headers.append(_NO_PAGE)
        return headers

    async def reply(self, reply: HttpReply, extra: tuple[Header, ...] = ()) -> None:
        self.status = reply.status
        headers = self._headers((*reply.headers, *extra))
        if reply.stream is None and reply.status != NO_CONTENT:
            headers.append((b"content-length", b"%d" % len(reply.content)))
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if reply.stream is not None:
            async for piece in reply.stream:
                await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body", "body": reply.content})


#: The only key that Headgate adds to an ASGI scope.
REQUEST = "headgate.request"
#: Headers that decide who is asking, for whom, or where a body ends: two of them would let two readers disagree.
_SINGLETONS = frozenset({b"host", b"authorization", b"origin", b"content-length"})


class RequestHeaders(msgspec.Struct, frozen=True):
    """The headers of a request, read once."""

    #: By lower-case name; the last value where a name repeats.
    values: Mapping[bytes, bytes]
    host: str
    #: The id the caller chose for its request, if it is a valid one.
    request_id: RequestId | None
    #: The bearer token; None when there is no ``Authorization`` header or it holds something else.
    bearer: str | None
    #: Whether a header occurs twice that must not.
    has_duplicate_singletons: bool


class RequestContext(msgspec.Struct):
    """One request, and what the layers learn about it."""

    request_id: RequestId
    headers: RequestHeaders
    scheme: str
    #: The network address the request came from.
    client_address: str
    #: When the request began, on the clock of `time.perf_counter`.
    started: float
    #: Method and path template of the address in the table: the label in metrics, logs and the disclosure log.
    route: str = "unknown"
    #: The status that was sent; 0 while there is none.
    status: int = 0
    #: What the token stands for, once it is admitted.
    access: Access | None = None
    #: Who holds the gateway token that was sent.
    gateway_caller: str | None = None

    @property
    def origin(self) -> str:
        """Scheme and host as the caller used them: the beginning of every link in an answer."""
        return f"{self.scheme}://{self.headers.host}"

    @property
    def client_id(self) -> ClientId | None:
        """The client that was admitted."""
        return None if self.access is None else self.access.client_id


class WebRequest(msgspec.Struct, frozen=True):
    """A request that was admitted, as its handler sees it."""

    context: RequestContext
    services: Services
    #: The values at the places of the path, percent-decoded.
    places: Mapping[str, str]
    scope: Scope
    receive: Receive
    send: Send

    async def body(self, most_bytes: int) -> bytes:
        """Read the whole body."""
        content = bytearray()
        while True:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise InvalidRequest("The request body was cut off.")
            content += message.get("body", b"")
            if len(content) > most_bytes:
                raise ResourceLimit(f"The body must have at most {most_bytes} bytes.")
            if not message.get("more_body", False):
                return bytes(content)


#: Answers a request; None when it has sent its response itself.
Handler: TypeAlias = Callable[[WebRequest], Awaitable[HttpReply | None]]


def read_headers(headers: Iterable[Header]) -> RequestHeaders:
    """Read the headers of an ASGI scope."""
    pairs = list(headers)
    values = dict(pairs)
    return RequestHeaders(
        values,
        host=values.get(b"host", b"").decode("latin-1"),
        request_id=_request_id(values.get(b"request-id")),
        bearer=read_bearer(values.get(b"authorization")),
        has_duplicate_singletons=len(values) < len(pairs) and _has_duplicate_singletons(pairs),
    )


def _has_duplicate_singletons(pairs: list[Header]) -> bool:
    counts = Counter(name for name, _ in pairs)
    return any(counts[name] > 1 for name in _SINGLETONS)


def _request_id(value: bytes | None) -> RequestId | None:
    if value is None:
        return None
    try:
        return request_id(value.decode("latin-1"))
    except InvalidRequest:
        return None
