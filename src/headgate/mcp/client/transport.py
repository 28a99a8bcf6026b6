"""The guard between the protocol library and the network.

Every request to a server passes here and nowhere else. The guard keeps the limits, adds the token at the
last moment, refuses redirects and encodings, takes the token out of what comes back, and never raises into
the library above: one failed connection would end its session for good.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
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
from headgate.mcp.client.body import EventStream, read_whole, sanitise, strip_tracebacks, without_token
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.request_state import REQUEST_HEADER, RequestState
from headgate.mcp.client.sender import OutgoingRequest, Sender, UpstreamResponse
from headgate.operations.secrets import Secret

_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
#: Headers of an answer that the library above reads; it quotes them when it complains.
_PASSED_ON = ("content-type", "mcp-session-id")
_NOTED = ("retry-after", "date", "www-authenticate")
_BACKGROUND_SECONDS = 5.0
_MAX_BACKGROUND = 16
_MAX_STREAMS = 4
# A server that ends its notification stream again and again is not asked for ever.
_MAX_STREAM_STARTS = 100
# The one notification that later requests must not overtake.
_INITIALIZED = b'"notifications/initialized"'
_OURS = [(b"accept-encoding", b"identity"), (b"user-agent", f"headgate/{__version__}".encode())]
_REPLACED = {REQUEST_HEADER.encode(), b"authorization", *(name for name, _ in _OURS)}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """All traffic to one server, bounded."""

    def __init__(self, sender: Sender, url: httpx2.URL, *, limits: Limits) -> None:
        self._sender = sender
        self._url = url
        self._place = _place(url)
        self._limits = limits
        self._states: dict[str, RequestState] = {}
        self._background: set[asyncio.Task[None]] = set()
        self._streams = 0
        self._stream_starts = 0
        #: The token for requests that belong to the session rather than to a call.
        self.session_token: Secret | None = None
        #: While a session is opened, everything belongs to this state.
        self.opening: RequestState | None = None

    def admit(self, state: RequestState) -> str:
        """Expect a request of this state, and say what its header must hold."""
        key = f"{id(state):x}"
        self._states[key] = state
        return key

    def forget(self, key: str) -> None:
        """Expect nothing more of an state."""
        self._states.pop(key, None)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request within its limits; whatever happens, give a response."""
        told = {name.lower(): value for name, value in request.headers.raw}
        state = self._states.get(told.get(_REQUEST, b"").decode()) or self.opening
        if state is not None and request.method == "POST":
            return await self._bounded(request, told, state)
        if request.method == "GET" or told.get(b"mcp-method") == b"subscriptions/listen":
            return await self._stream(request, told)
        if request.method == "POST" and _INITIALIZED not in request.content:
            return self._send_aside(request, told)
        return await self._bounded(request, told, self._session_state(_BACKGROUND_SECONDS))

    async def aclose(self) -> None:
        """End what runs aside, then the connections."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._sender.aclose()

    def _session_state(self, seconds: float) -> RequestState:
        return RequestState(asyncio.get_running_loop().time() + seconds, self.session_token)

    def _send_aside(self, request: httpx2.Request, told: Mapping[bytes, bytes]) -> httpx2.Response:
        """Send a notification without waiting: the library above would let every other call wait with it."""

        async def send() -> None:
            await self._bounded(request, told, self._session_state(_BACKGROUND_SECONDS))

        if len(self._background) < _MAX_BACKGROUND:
            task = asyncio.create_task(send())
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def _stream(self, request: httpx2.Request, told: Mapping[bytes, bytes]) -> httpx2.Response:
        """Open the stream on which a server speaks unasked, or resume an answer; few at once."""
        self._stream_starts += 1
        if self._streams >= _MAX_STREAMS or self._stream_starts > _MAX_STREAM_STARTS:
            return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED, request=request)
        resumes = b"last-event-id" in told
        state = self._session_state(self._limits.total_seconds if resumes else float("inf"))
        response = await self._bounded(request, told, state)
        if isinstance(response.stream, EventStream):
            self._streams += 1
            response.stream.on_close = self._stream_ended
        return response

    @property
    def has_stream(self) -> bool:
        """Whether the server can speak unasked."""
        return self._streams > 0

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _bounded(
        self, request: httpx2.Request, told: Mapping[bytes, bytes], state: RequestState
    ) -> httpx2.Response:
        try:
            with anyio.CancelScope() as scope:
                state.cut = scope.cancel
                return await self._answered(request, told, state)
            state.fail(UpstreamUnreachable("Nobody waits for the answer any more."))
        except AdapterError as error:
            state.fail(strip_tracebacks(error))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            state.sent = False
            state.fail(_caused(UpstreamUnreachable(str(error)), error))
        except httpx2.RemoteProtocolError as error:
            state.fail(_caused(UpstreamProtocolError(str(error)), error))
        except (httpx2.TransportError, OSError) as error:
            state.fail(_caused(UpstreamUnreachable("The connection was lost."), error))
        return _stand_in(request)

    async def _answered(
        self, request: httpx2.Request, told: Mapping[bytes, bytes], state: RequestState
    ) -> httpx2.Response:
        answer = await self._send(request, told, state)
        try:
            return await self._receive(answer, request, state)
        except BaseException:
            await answer.aclose()
            raise

    async def _send(
        self, request: httpx2.Request, told: Mapping[bytes, bytes], state: RequestState
    ) -> UpstreamResponse:
        if _place(request.url) != self._place:
            raise UpstreamRedirectRefused("Only the configured endpoint is called.")
        state.in_session = b"mcp-session-id" in told
        outgoing = OutgoingRequest(request.method, self._url, _dressed(told, state.token), request.content)
        head_by = min(state.deadline, asyncio.get_running_loop().time() + self._limits.idle_seconds)
        # From here on only a failed connection proves that nothing was sent.
        state.sent = True
        try:
            async with asyncio.timeout_at(head_by):
                return await self._sender.send(outgoing)
        except AddressBlocked:
            state.sent = False
            raise
        except TimeoutError as error:
            raise UpstreamTimeout("The server did not begin its answer in time.") from error

    async def _receive(
        self, answer: UpstreamResponse, request: httpx2.Request, state: RequestState
    ) -> httpx2.Response:
        status, found = answer.status, answer.headers
        state.status = status
        state.headers = {n: sanitise(found[n], state.token) for n in _NOTED if n in found}
        _judge_head(status, found, self._limits.max_bytes)
        headers = {n: without_token(found[n], state.token) for n in _PASSED_ON if n in found}
        if status == HTTPStatus.OK and headers.get("content-type", "").lower().startswith(_EVENT_STREAM):
            stream = EventStream(answer, state, self._limits)
            state.cut = answer.abort
            return httpx2.Response(status, headers=headers, stream=stream, request=request)
        content = await read_whole(answer, state, self._limits)
        state.cut = None
        await answer.aclose()
        state.has_rpc_error = status != HTTPStatus.OK and b'"jsonrpc"' in content and b'"error"' in content
        return httpx2.Response(status, headers=headers, content=content, request=request)


_REQUEST = REQUEST_HEADER.encode()


def _place(url: httpx2.URL) -> tuple[bytes, bytes, bytes]:
    return url.raw_scheme, url.netloc, url.raw_path


def _dressed(told: Mapping[bytes, bytes], token: Secret | None) -> list[tuple[bytes, bytes]]:
    headers = [pair for pair in told.items() if pair[0] not in _REPLACED]
    if token is not None:
        headers.append((b"authorization", b"Bearer " + token.expose().encode()))
    return headers + _OURS


def _judge_head(status: int, headers: Mapping[str, str], max_bytes: int) -> None:
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise UpstreamRedirectRefused
    if status == HTTPStatus.UNAUTHORIZED:
        raise UpstreamAuthFailed
    if headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise UpstreamProtocolError("The server compressed its answer although it was asked not to.")
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length) > max_bytes:
        raise UpstreamTooLarge


def _stand_in(request: httpx2.Request) -> httpx2.Response:
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "The request failed."}}
    return httpx2.Response(
        HTTPStatus.SERVICE_UNAVAILABLE,
        headers={"content-type": _JSON},
        content=json.dumps(body).encode(),
        request=request,
    )


def _caused(error: AdapterError, cause: BaseException) -> AdapterError:
    error.__cause__ = cause
    return strip_tracebacks(error)
