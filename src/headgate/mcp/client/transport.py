"""The guard between the protocol library and the network.

Every request to a server passes here and nowhere else. The guard enforces the limits, adds the token at the
last moment, refuses redirects and encodings, and takes the token out of what comes back. It never raises into
the library above, because one failed connection would end the library's session for good.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
from collections.abc import Mapping
from http import HTTPStatus

import anyio
import httpx2

from headgate import __version__
from headgate.errors import (
    AdapterError,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamRedirectRefused,
    UpstreamRefused,
    UpstreamTooLarge,
    UpstreamUnreachable,
)
from headgate.mcp.client.body import read_beginning, read_whole
from headgate.mcp.client.events import EventStream, check_reply, read_reply, request_id, stand_in_of
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.redaction import readable, redact_text, sanitise, strip_tracebacks
from headgate.mcp.client.request_state import REQUEST_HEADER, RequestState
from headgate.mcp.client.sender import OutgoingRequest, Sender, UpstreamResponse
from headgate.operations.secrets import Secret

_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
#: Headers of a response that the library above reads; it quotes them in its errors.
_PASSED_ON = ("content-type", "mcp-session-id")
_NOTED = ("retry-after", "date", "www-authenticate")
#: Statuses with which a server refuses the token, or the caller.
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_MAX_LENGTH_DIGITS = 15
_BACKGROUND_SECONDS = 5.0
_MAX_BACKGROUND = 16
_MAX_STREAMS = 4
# The library opens a notification stream again whenever the server, or a proxy before it, ends it: so many at once,
# and one more after each of these times. It never opens one again after a refusal.
_MAX_STREAM_STARTS = 100
_STREAM_START_SECONDS = 30.0
# The one notification that later requests must not overtake.
_INITIALIZED = b'"notifications/initialized"'
_OURS = [(b"accept-encoding", b"identity"), (b"user-agent", f"headgate/{__version__}".encode())]
_KEY = REQUEST_HEADER.encode()
_REPLACED = {_KEY, b"authorization", *(name for name, _ in _OURS)}


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Carries all requests of one session to its server, within the limits."""

    def __init__(self, sender: Sender, url: httpx2.URL, *, limits: Limits) -> None:
        self._sender = sender
        self._url = url
        self._target = _target(url)
        self._limits = limits
        self._states: dict[bytes, RequestState] = {}
        self._keys = itertools.count(1)
        self._background: set[asyncio.Task[None]] = set()
        self._streams = 0
        #: How many streams were opened, less those that the time since has made up for.
        self._stream_starts = 0.0
        self._stream_started_at = 0.0
        #: The token for requests that belong to the session rather than to a call.
        self.session_token: Secret | None = None
        #: The state of every request while the session is opened.
        self.opening: RequestState | None = None

    def admit(self, state: RequestState) -> str:
        """Expect a request with this state, and return the key that its header must carry."""
        key = str(next(self._keys))
        state.keeps_result = True
        self._states[key.encode()] = state
        return key

    def forget(self, key: str) -> None:
        """Expect no further request under a key."""
        self._states.pop(key.encode(), None)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request within its limits; return a response even when it fails."""
        headers = {name.lower(): value for name, value in request.headers.raw}
        state = self._states.get(headers.get(_KEY, b"")) or self.opening
        if state is not None and request.method == "POST":
            return await self._bounded(request, headers, state)
        if request.method == "GET" or headers.get(b"mcp-method") == b"subscriptions/listen":
            return await self._stream(request, headers)
        if request.method == "POST" and _INITIALIZED not in request.content:
            return self._send_in_background(request, headers)
        return await self._bounded(request, headers, self._session_state(_BACKGROUND_SECONDS))

    async def aclose(self) -> None:
        """End the notifications that are being sent, then the connections."""
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._sender.aclose()

    def _session_state(self, seconds: float) -> RequestState:
        return RequestState(asyncio.get_running_loop().time() + seconds, self.session_token)

    def _send_in_background(self, request: httpx2.Request, headers: Mapping[bytes, bytes]) -> httpx2.Response:
        """Send a notification without waiting: the library above would hold up every other call meanwhile."""

        async def send() -> None:
            await self._bounded(request, headers, self._session_state(_BACKGROUND_SECONDS))

        if len(self._background) < _MAX_BACKGROUND:
            task = asyncio.create_task(send())
            self._background.add(task)
            task.add_done_callback(self._background.discard)
        return httpx2.Response(HTTPStatus.ACCEPTED, request=request)

    async def _stream(self, request: httpx2.Request, headers: Mapping[bytes, bytes]) -> httpx2.Response:
        """Open a notification stream, or resume an answer; few at once."""
        now = asyncio.get_running_loop().time()
        passed = (now - self._stream_started_at) / _STREAM_START_SECONDS
        self._stream_starts, self._stream_started_at = max(0.0, self._stream_starts - passed) + 1, now
        if self._streams >= _MAX_STREAMS or self._stream_starts > _MAX_STREAM_STARTS:
            return httpx2.Response(HTTPStatus.METHOD_NOT_ALLOWED, request=request)
        resumed = headers.get(b"last-event-id")
        state = self._session_state(math.inf if resumed is None else self._limits.total_seconds)
        state.resumes = self._state_of_event(resumed)
        response = await self._bounded(request, headers, state)
        if isinstance(response.stream, EventStream):
            self._streams += 1
            response.stream.on_close = self._stream_ended
        return response

    def _state_of_event(self, event_id: bytes | None) -> RequestState | None:
        """Find the request whose stream of events is resumed."""
        waiting = [*self._states.values(), *([] if self.opening is None else [self.opening])]
        return next((s for s in waiting if event_id is not None and s.event_id == event_id), None)

    @property
    def has_stream(self) -> bool:
        """Whether a notification stream is open."""
        return self._streams > 0

    def _stream_ended(self) -> None:
        self._streams -= 1

    async def _bounded(
        self, request: httpx2.Request, headers: Mapping[bytes, bytes], state: RequestState
    ) -> httpx2.Response:
        try:
            return await self._answered(request, headers, state)
        except AdapterError as error:
            state.fail(strip_tracebacks(error))
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            state.fail(_caused(UpstreamUnreachable(str(error)), error))
        except httpx2.RemoteProtocolError as error:
            state.fail(_caused(UpstreamProtocolError(str(error)), error))
        except (httpx2.TransportError, OSError) as error:
            state.fail(_caused(UpstreamUnreachable("The connection was lost."), error))
        return _stand_in(request)

    async def _answered(
        self, request: httpx2.Request, headers: Mapping[bytes, bytes], state: RequestState
    ) -> httpx2.Response:
        response = await self._send(request, headers, state)
        try:
            return await self._receive(response, request, state)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await response.aclose()
            raise

    async def _send(
        self, request: httpx2.Request, headers: Mapping[bytes, bytes], state: RequestState
    ) -> UpstreamResponse:
        if _target(request.url) != self._target:
            raise UpstreamRedirectRefused("Only the configured endpoint is called.")
        state.in_session = b"mcp-session-id" in headers
        state.rpc_id = request_id(request.content)
        outgoing = OutgoingRequest(
            request.method, self._url, _with_token(headers, state.token), request.content
        )
        head_by = min(state.deadline, asyncio.get_running_loop().time() + self._limits.idle_seconds)
        with state.network_wait(head_by, late="The server did not begin its answer in time."):
            return await self._sender.send(outgoing, state)

    async def _receive(
        self, response: UpstreamResponse, request: httpx2.Request, state: RequestState
    ) -> httpx2.Response:
        status, found = response.status, response.headers
        state.status = status
        state.headers = {n: sanitise(found[n], state.token) for n in _NOTED if n in found}
        if status in _REFUSALS:
            raise await self._refusal(response, state)
        _check_head(status, found, self._limits.max_bytes)
        headers = {n: redact_text(found[n], state.token) for n in _PASSED_ON if n in found}
        if status == HTTPStatus.OK and headers.get("content-type", "").lower().startswith(_EVENT_STREAM):
            stream = EventStream(response, state, self._limits)
            return httpx2.Response(status, headers=headers, stream=stream, request=request)
        content = await read_whole(response, state, self._limits)
        await response.aclose()
        if headers.get("content-type", "").lower().startswith(_JSON):
            content = await self._answer(content, state)
        return httpx2.Response(status, headers=headers, content=content, request=request)

    async def _answer(self, content: bytes, state: RequestState) -> bytes:
        """Read the one answer in a body, and return what the library above handles in its place."""
        is_error = state.status != HTTPStatus.OK
        try:
            message = await read_reply(content, state, self._limits)
        except UpstreamProtocolError:
            if is_error:
                return b""
            raise
        state.has_rpc_error = is_error and message.error is not None
        if not is_error:
            check_reply(message, state)
        return stand_in_of(message, state)

    async def _refusal(self, response: UpstreamResponse, state: RequestState) -> AdapterError:
        """Return the error of a refused request, with what the server says about it."""
        words = readable(await read_beginning(response, state, self._limits), state.token)
        challenge = state.headers.get("www-authenticate")
        known = {"www_authenticate": challenge, "server_message": words}
        details = {"status": response.status, **{name: text for name, text in known.items() if text}}
        if response.status == HTTPStatus.UNAUTHORIZED:
            return UpstreamAuthFailed(details=details)
        return UpstreamRefused(f"The server answered {response.status}.", details=details)


def _target(url: httpx2.URL) -> tuple[bytes, bytes, bytes]:
    return url.raw_scheme, url.netloc, url.raw_path


def _with_token(headers: Mapping[bytes, bytes], token: Secret | None) -> list[tuple[bytes, bytes]]:
    pairs = [pair for pair in headers.items() if pair[0] not in _REPLACED]
    if token is not None:
        pairs.append((b"authorization", b"Bearer " + token.expose().encode()))
    return pairs + _OURS


def _check_head(status: int, headers: Mapping[str, str], max_bytes: int) -> None:
    if status < HTTPStatus.OK:
        raise UpstreamProtocolError("The server wants to change the protocol.")
    if HTTPStatus.MULTIPLE_CHOICES <= status < HTTPStatus.BAD_REQUEST:
        raise UpstreamRedirectRefused
    if headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
        raise UpstreamProtocolError("The server compressed its answer although it was asked not to.")
    length = headers.get("content-length", "")
    if length.isdecimal() and (len(length) > _MAX_LENGTH_DIGITS or int(length) > max_bytes):
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
