"""The wire to one server: every request passes here and nowhere else, and every answer is read here and nowhere else.

A request is sent within its limits, with the token added at the last moment; redirects and encodings are refused. What
comes back is counted, timed, cleared of the token, and parsed once: the answer in a body, or the messages in a stream of
events. The protocol library's own client is not used, because it parses on the event loop before anything is counted,
takes any answer in a stream for the one it waits for, and does not tell whether a request was written.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import cast

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
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.message import (
    IncomingMessage,
    Redactor,
    read_message,
    readable,
    redact_text,
    sanitise,
    strip_tracebacks,
)
from headgate.mcp.client.pool import PooledTransport, send
from headgate.mcp.client.request_state import LATER, RequestState
from headgate.operations.running import off_loop

#: What ends an exchange without an answer.
FAILURES = (AdapterError, httpx2.TransportError, OSError)
_EVENT_STREAM = "text/event-stream"
_JSON = "application/json"
_NOTED = ("retry-after", "date", "www-authenticate")
#: Statuses with which a server refuses the token, or the caller.
_REFUSALS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_MAX_LENGTH_DIGITS = 15
#: Of an error's body.
_ERROR_BYTES = 4096
_ERROR_SECONDS = 1.0
#: Less is read on the event loop: a thread would take longer than the work.
_SMALL_BYTES = 16 * 1024
#: Of a request or notification in a stream.
_MAX_SERVER_MESSAGE_BYTES = 256 * 1024
_MAX_LINES = 100_000
_RETRY = re.compile(rb"[0-9]{1,6}")
_OURS = {"accept-encoding": "identity", "user-agent": f"headgate/{__version__}"}


class Wire:
    """Carries all requests of one session to its server, within the limits."""

    def __init__(self, transport: httpx2.AsyncBaseTransport, url: httpx2.URL, *, limits: Limits) -> None:
        self._transport = transport
        self._url = url
        self.limits = limits

    async def aclose(self) -> None:
        """Close every connection; a transport of the program is left open, because it belongs to the program."""
        if isinstance(self._transport, PooledTransport):
            await self._transport.aclose()

    @asynccontextmanager
    async def exchange(
        self, method: str, headers: Mapping[str, str], state: RequestState, content: bytes = b""
    ) -> AsyncGenerator[Exchange]:
        """Send a request, and offer its response for the length of the block."""
        response = await self._send(method, headers, state, content)
        try:
            state.status = response.status_code
            state.headers = {
                n: sanitise(response.headers[n], state.token) for n in _NOTED if n in response.headers
            }
            if response.status_code in _REFUSALS:
                raise await self._refusal(response, state)
            _check_head(response.status_code, response.headers, self.limits.max_bytes)
            yield Exchange(response, state, self.limits)
        finally:
            with anyio.CancelScope(shield=True):
                await response.aclose()

    async def _send(
        self, method: str, headers: Mapping[str, str], state: RequestState, content: bytes
    ) -> httpx2.Response:
        state.in_session = "mcp-session-id" in headers
        sent = {"host": self._url.netloc.decode("ascii"), **headers, **_OURS}
        if method == "POST":
            sent |= {"content-type": _JSON, "content-length": str(len(content))}
        pairs = [(name.encode("ascii"), value.encode()) for name, value in sent.items()]
        if state.token is not None:
            pairs.append((b"authorization", b"Bearer " + state.token.expose().encode()))
        head_by = state.silent_until(self.limits.idle_seconds)
        with state.network_wait(head_by, late="The server did not begin its answer in time."):
            request = httpx2.Request(method, self._url, headers=pairs, content=content)
            return await send(self._transport, request, state)

    async def _refusal(self, response: httpx2.Response, state: RequestState) -> AdapterError:
        """Return the error of a refused request, with what the server says about it."""
        words = readable(await _read_beginning(response, state, self.limits), state.token)
        challenge = state.headers.get("www-authenticate")
        known = {"www_authenticate": challenge, "server_message": words}
        details = {"status": response.status_code, **{name: text for name, text in known.items() if text}}
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            return UpstreamAuthFailed(details=details)
        return UpstreamRefused(f"The server answered {response.status_code}.", details=details)


@dataclass(slots=True)
class Exchange:
    """A response whose head has arrived and is acceptable."""

    _response: httpx2.Response
    _state: RequestState
    _limits: Limits
    #: The last event of a stream, after which a lost one is resumed, and the pause the server wishes before that.
    event_id: str = ""
    retry_seconds: float = 1.0

    @property
    def is_stream(self) -> bool:
        """Whether the body is a stream of events."""
        return self._response.status_code == HTTPStatus.OK and self._type.startswith(_EVENT_STREAM)

    @property
    def session_id(self) -> str | None:
        """The session that the server has opened."""
        session_id = self._response.headers.get("mcp-session-id")
        return None if session_id is None else redact_text(session_id, self._state.token)

    @property
    def _type(self) -> str:
        return self._response.headers.get("content-type", "").lower()

    async def answer(self) -> IncomingMessage:
        """Read the one answer in the body."""
        state = self._state
        content = await read_whole(self._response, state, self._limits)
        is_error = self._response.status_code >= HTTPStatus.BAD_REQUEST
        if not self._type.startswith(_JSON) or state.status == HTTPStatus.ACCEPTED:
            state.is_answered = True
            if is_error:
                raise state.refusal()
            raise UpstreamProtocolError("The server's answer is no JSON.")
        try:
            message = await _read_reply(content, state, self._limits.max_values)
        except UpstreamProtocolError:
            if not is_error:
                raise
            message = IncomingMessage()
        if is_error:
            state.is_answered = True
            if message.error is None or state.status in LATER:
                raise state.refusal()
            return message
        check_reply(message, state)
        return message

    async def drain(self) -> None:
        """Read a body that says nothing to us, so that the connection can be used again."""
        await read_whole(self._response, self._state, self._limits)

    async def messages(self) -> AsyncGenerator[IncomingMessage]:
        """Yield the messages of a stream of events.

        Raises:
            httpx2.TransportError, OSError: it was lost.
        """
        assembler, events, values = EventAssembler(), 0, 0
        async with aclosing(chunks(self._response, self._state, self._limits)) as body:
            async for chunk in body:
                for event in assembler.feed(chunk):
                    events += 1
                    if events > self._limits.max_events:
                        raise UpstreamTooLarge("The server sent more events than allowed.")
                    if event.id:
                        self.event_id = event.id.decode("utf-8", "replace")
                    if event.retry:
                        self.retry_seconds = int(event.retry) / 1000
                    if not event.data or event.kind not in {b"", b"message"}:
                        continue
                    message = await _read_reply(event.data, self._state, self._limits.max_values - values)
                    # A stream that is open for ever brings no answer, so only its single events are bounded.
                    values += 0 if self._state.is_endless else message.values
                    if not message.is_reply and len(event.data) > _MAX_SERVER_MESSAGE_BYTES:
                        raise UpstreamTooLarge
                    yield message


def as_adapter_error(error: Exception) -> AdapterError:
    """Return the error of ours for whatever ended an exchange, without frames that hold the token."""
    match error:
        case AdapterError():
            return strip_tracebacks(error)
        case httpx2.ConnectError() | httpx2.ConnectTimeout():
            failure: AdapterError = UpstreamUnreachable(str(error))
        case httpx2.RemoteProtocolError():
            failure = UpstreamProtocolError(str(error))
        case _:
            failure = UpstreamUnreachable("The connection was lost.")
    failure.__cause__ = error
    return strip_tracebacks(failure)


def check_reply(message: IncomingMessage, state: RequestState) -> None:
    """Accept the answer to a request."""
    if not message.is_reply:
        raise UpstreamProtocolError("The server's answer is no answer.")
    # An error without an id is of a request that the server could not read; it is an error all the same.
    if message.id != state.rpc_id and not (message.id is None and message.error is not None):
        raise UpstreamProtocolError("The server's answer belongs to another request.")


async def read_whole(response: httpx2.Response, state: RequestState, limits: Limits) -> bytes:
    """Read a body to its end."""
    return b"".join([chunk async for chunk in chunks(response, state, limits)])


async def chunks(response: httpx2.Response, state: RequestState, limits: Limits) -> AsyncGenerator[bytes]:
    """Yield a body part by part, within the limits."""
    redact, size = Redactor(state.token), 0
    body = aiter(cast("httpx2.AsyncByteStream", response.stream))
    while True:
        # A stream that waits for events may be silent for ever; an answer may not.
        with state.network_wait(math.inf if state.is_endless else state.silent_until(limits.idle_seconds)):
            chunk = await anext(body, None)
        size += len(chunk or b"")
        if size > limits.max_bytes:
            raise UpstreamTooLarge
        clean = redact.rest() if chunk is None else redact(chunk)
        if clean:
            yield clean
        if chunk is None:
            return


async def _read_beginning(response: httpx2.Response, state: RequestState, limits: Limits) -> bytes:
    """Read the first part of an error's body; an error is not worth waiting for more."""
    beginning = b""
    until = min(state.deadline, asyncio.get_running_loop().time() + _ERROR_SECONDS)
    with anyio.CancelScope(deadline=until), suppress(*FAILURES):
        async with aclosing(chunks(response, state, limits)) as body:
            async for chunk in body:
                beginning += chunk
                if len(beginning) >= _ERROR_BYTES:
                    break
    return beginning[:_ERROR_BYTES]


async def _read_reply(data: bytes, state: RequestState, max_values: int) -> IncomingMessage:
    """Parse a message; a large one beside the event loop.

    Raises:
        UpstreamProtocolError: it is no message.
    """
    cuts = state.cuts_depth
    if len(data) <= _SMALL_BYTES:
        return read_message(data, state.token, max_values=max_values, cuts_depth=cuts)
    return await off_loop(
        state.deadline, read_message, data, state.token, max_values=max_values, cuts_depth=cuts
    )


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


@dataclass(slots=True)
class Event:
    """One event of a stream."""

    data: bytes = b""
    kind: bytes = b""
    id: bytes = b""
    retry: bytes = b""


@dataclass(slots=True)
class EventAssembler:
    """Puts events together from parts that may end anywhere."""

    _pieces: list[bytes] = field(default_factory=list[bytes])
    _lines: list[bytes] = field(default_factory=list[bytes])
    _skips_newline: bool = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that end in the next part."""
        if not chunk:
            return
        if self._skips_newline:
            chunk = chunk.removeprefix(b"\n")
        self._skips_newline = chunk.endswith(b"\r")
        *lines, rest = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            whole = b"".join([*self._pieces, line])
            self._pieces.clear()
            if not whole and self._lines:
                yield _event(self._lines)
                self._lines.clear()
            elif whole and not whole.startswith(b":"):
                self._lines.append(whole)
                if len(self._lines) > _MAX_LINES:
                    raise UpstreamTooLarge("An event of the server has too many lines.")
        if rest:
            self._pieces.append(rest)


def _event(lines: list[bytes]) -> Event:
    event, data = Event(), list[bytes]()
    for line in lines:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                data.append(value)
            case b"event":
                event.kind = value
            case b"id" if b"\0" not in value:
                event.id = value
            case b"retry" if _RETRY.fullmatch(value):
                event.retry = value
            case _:
                pass
    event.data = b"\n".join(data)
    return event
