"""The guard between the protocol library and the network.

Every request to a server passes here and nowhere else. The guard keeps the limits, adds the token at the
last moment, refuses redirects and encodings, takes the token out of what comes back, and never raises into
the library above: one failed connection would end its session for good.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from http import HTTPStatus

import anyio
import httpx2

from headgate import __version__
from headgate.errors import (
    AdapterError,
    AddressBlocked,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamRedirectRefused,
    UpstreamTimeout,
    UpstreamTooLarge,
    UpstreamUnreachable,
)
from headgate.mcp.client.exchange import EXCHANGE_HEADER, Exchange
from headgate.mcp.client.limits import Limits
from headgate.operations.secrets import REDACTED, Secret

_AGENT = f"headgate/{__version__}"
_EVENT_STREAM = "text/event-stream"
_PASSED_ON = ("content-type", "mcp-session-id")
_NOTED = ("retry-after", "date", "www-authenticate")
_BACKGROUND_SECONDS = 5.0
_MAX_BACKGROUND = 16
_MAX_STREAMS = 4
# A server that ends its notification stream again and again is not asked for ever.
_MAX_STREAM_STARTS = 100
_MIN_TOKEN_BYTES = 8
_MAX_WORDS = 500
# The one notification that later requests must not overtake.
_INITIALIZED = b'"notifications/initialized"'


class GuardedTransport(httpx2.AsyncBaseTransport):
    """All traffic to one server, bounded."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, url: httpx2.URL, *, limits: Limits) -> None:
        self._inner = inner
        self._url = url
        self._limits = limits
        self._exchanges: dict[str, Exchange] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._streams = 0
        self._stream_starts = 0
        #: The token for requests that belong to the session rather than to a call.
        self.session_token: Secret | None = None
        #: While a session is opened, everything belongs to this exchange.
        self.opening: Exchange | None = None

    def admit(self, exchange: Exchange) -> str:
        """Expect a request of this exchange, and say what its header must hold."""
        key = f"{id(exchange):x}"
        self._exchanges[key] = exchange
        return key

    def forget(self, key: str) -> None:
        """Expect nothing more of an exchange."""
        self._exchanges.pop(key, None)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request within its limits; whatever happens, give a response."""
        exchange = self._exchanges.get(request.headers.pop(EXCHANGE_HEADER, "")) or self.opening
        if exchange is not None and request.method == "POST":
            return await self._bounded(request, exchange)
        if request.method == "GET" or request.headers.get("mcp-method") == "subscriptions/listen":
            return await self._stream(request)
        if request.method == "POST" and _INITIALIZED not in request.content:
            return self._send_aside(request)
        return await self._bounded(request, self._session_exchange(_BACKGROUND_SECONDS))

    async def aclose(self) -> None:
        """End what runs aside, then the connections."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._inner.aclose()

    def _session_exchange(self, seconds: float) -> Exchange:
        return Exchange(asyncio.get_running_loop().time() + seconds, self.session_token)

    def _send_aside(self, request: httpx2.Request) -> httpx2.Response:
        """Send a notification without waiting: the library above would let every other call wait with it."""

        async def send() -> None:
            await self._bounded(request, self._session_exchange(_BACKGROUND_SECONDS))

        if len(self._background) < _MAX_BACKGROUND:
            task = asyncio.create_task(send())
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def _stream(self, request: httpx2.Request) -> httpx2.Response:
        """Open the stream on which a server speaks unasked, or resume an answer; few at once."""
        self._stream_starts += 1
        if self._streams >= _MAX_STREAMS or self._stream_starts > _MAX_STREAM_STARTS:
            return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED, request=request)
        resumes = "last-event-id" in request.headers
        exchange = self._session_exchange(self._limits.total_seconds if resumes else float("inf"))
        response = await self._bounded(request, exchange)
        if isinstance(response.stream, _Events):
            self._streams += 1
            response.stream.on_close = self._stream_ended
        return response

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _bounded(self, request: httpx2.Request, exchange: Exchange) -> httpx2.Response:
        try:
            return await self._send(request, exchange)
        except AdapterError as error:
            exchange.fail(bare(error))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            exchange.sent = False
            exchange.fail(_caused(UpstreamUnreachable(str(error)), error))
        except httpx2.RemoteProtocolError as error:
            exchange.fail(_caused(UpstreamProtocolError(str(error)), error))
        except (httpx2.TransportError, OSError) as error:
            exchange.fail(_caused(UpstreamUnreachable("The connection was lost."), error))
        return _stand_in(request)

    async def _send(self, request: httpx2.Request, exchange: Exchange) -> httpx2.Response:
        if request.url != self._url:
            raise UpstreamRedirectRefused("Only the configured endpoint is called.")
        exchange.in_session = "mcp-session-id" in request.headers
        _dress(request, exchange.token)
        loop_time = asyncio.get_running_loop().time
        head_by = min(exchange.deadline, loop_time() + self._limits.idle_seconds)
        # From here on only a failed connection proves that nothing was sent.
        exchange.sent = True
        try:
            async with asyncio.timeout_at(None if head_by == float("inf") else head_by):
                response = await self._inner.handle_async_request(request)
        except AddressBlocked:
            exchange.sent = False
            raise
        except TimeoutError as error:
            raise UpstreamTimeout("The server did not begin its answer in time.") from error
        try:
            return await self._receive(response, request, exchange)
        except BaseException:
            await response.aclose()
            raise

    async def _receive(
        self, response: httpx2.Response, request: httpx2.Request, exchange: Exchange
    ) -> httpx2.Response:
        exchange.status = response.status_code
        exchange.headers = {
            name: plain_words(response.headers[name], exchange.token)
            for name in _NOTED
            if name in response.headers
        }
        _judge_head(response, self._limits.max_bytes)
        stream = _Events(response, exchange, self._limits)
        headers = _headers_for(response.headers, exchange.token)
        kind = headers.get("content-type", "").lower()
        if response.status_code == HTTPStatus.OK and kind.startswith(_EVENT_STREAM):
            stream.count_events = True
            return httpx2.Response(response.status_code, headers=headers, stream=stream, request=request)
        content = b"".join([chunk async for chunk in stream.chunks()])
        await response.aclose()
        exchange.has_rpc_error = b'"jsonrpc"' in content and b'"error"' in content
        return httpx2.Response(response.status_code, headers=headers, content=content, request=request)


def _dress(request: httpx2.Request, token: Secret | None) -> None:
    request.headers["accept-encoding"] = "identity"
    request.headers["user-agent"] = _AGENT
    if token is not None:
        request.headers["authorization"] = f"Bearer {token.expose()}"


def _judge_head(response: httpx2.Response, max_bytes: int) -> None:
    if response.has_redirect_location or 300 <= response.status_code < 400:  # noqa: PLR2004 - the class of redirects
        raise UpstreamRedirectRefused
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        raise UpstreamAuthFailed
    if response.headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise UpstreamProtocolError("The server compressed its answer although it was asked not to.")
    length = response.headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise UpstreamTooLarge


def _headers_for(headers: httpx2.Headers, token: Secret | None) -> dict[str, str]:
    """Give the two headers that the library above reads; it quotes them when it complains."""
    return {name: _without(token, headers[name]) for name in _PASSED_ON if name in headers}


def _stand_in(request: httpx2.Request) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "The request failed."}}
    return httpx2.Response(
        HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"content-type": "application/json"},
        content=json.dumps(body).encode(),
        request=request,
    )


def _caused(error: AdapterError, cause: BaseException) -> AdapterError:
    error.__cause__ = cause
    return bare(error)


def bare(error: AdapterError) -> AdapterError:
    """Take the tracebacks off an error and its causes: their frames hold the request, and so the token."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error


def plain_words(text: str, token: Secret | None) -> str:
    """Make a stranger's words fit to be quoted: short, without control characters or the token."""
    short = _without(token, text)[:_MAX_WORDS]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def _without(token: Secret | None, text: str) -> str:
    return text if token is None else text.replace(token.expose(), REDACTED)


class _Events(httpx2.AsyncByteStream):
    """A body that counts what passes and takes the token out of it."""

    def __init__(self, response: httpx2.Response, exchange: Exchange, limits: Limits) -> None:
        self._response = response
        self._exchange = exchange
        self._limits = limits
        self._redact = Redactor(exchange.token)
        self.count_events = False
        self.on_close: object = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.chunks():
                yield chunk
        except AdapterError as error:
            self._exchange.fail_now(bare(error))
            raise httpx2.ReadError("The stream was ended.") from None
        except (httpx2.TransportError, OSError):
            # The library resumes a stream that has event ids, so this is not yet the end of the call.
            raise httpx2.ReadError("The stream was lost.") from None
        finally:
            self._exchange.stream_ended = True

    async def chunks(self) -> AsyncIterator[bytes]:
        """Give the body, part by part, within the limits."""
        size = events = 0
        tail = b""
        parts = aiter(self._response.stream)  # pyright: ignore[reportArgumentType] - async by construction
        while True:
            chunk = await self._next(parts)
            size += len(chunk)
            if size > self._limits.max_bytes:
                raise UpstreamTooLarge
            if self.count_events:
                events += _event_ends(tail, chunk)
                tail = chunk[-3:]
                if events > self._limits.max_events:
                    raise UpstreamTooLarge("The server sent more events than allowed.")
            clean = self._redact(chunk) if chunk else self._redact.rest()
            if b"\\u" in clean or b"NaN" in clean or b"Infinity" in clean:
                self._exchange.needs_look = True
            if clean:
                yield clean
            if not chunk:
                return

    async def _next(self, parts: AsyncIterator[bytes]) -> bytes:
        quiet_by = asyncio.get_running_loop().time() + self._limits.idle_seconds
        # A stream that waits for events may be silent for ever; an answer may not.
        until = None if self._exchange.deadline == float("inf") else min(self._exchange.deadline, quiet_by)
        try:
            async with asyncio.timeout_at(until):
                return await anext(parts, b"")
        except TimeoutError as error:
            raise UpstreamTimeout from error

    async def aclose(self) -> None:
        if callable(self.on_close):
            self.on_close()
            self.on_close = None
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


def _event_ends(tail: bytes, chunk: bytes) -> int:
    seen = tail + chunk
    before = tail.count(b"\n\n") + tail.count(b"\r\n\r") + tail.count(b"\r\r")
    return seen.count(b"\n\n") + seen.count(b"\r\n\r") + seen.count(b"\r\r") - before


class Redactor:
    """Takes a token out of bytes that come in parts, without holding back more than it must."""

    def __init__(self, token: Secret | None) -> None:
        text = token.expose().encode() if token is not None else b""
        # A token this short hides nothing, and taking it out would tear ordinary words.
        self._token = text if len(text) >= _MIN_TOKEN_BYTES else b""
        self._held = b""

    def __call__(self, chunk: bytes) -> bytes:
        """Give what is safe of the bytes so far."""
        if not self._token:
            return chunk
        text = (self._held + chunk).replace(self._token, REDACTED.encode())
        keep = self._unfinished(text)
        self._held = text[len(text) - keep :] if keep else b""
        return text[: len(text) - keep]

    def rest(self) -> bytes:
        """Give what was held back; no more will come."""
        rest, self._held = self._held, b""
        return rest

    def _unfinished(self, text: bytes) -> int:
        """Count the bytes at the end that could be the beginning of the token."""
        longest = min(len(self._token) - 1, len(text))
        return next((n for n in range(longest, 0, -1) if self._token.startswith(text[-n:])), 0)
