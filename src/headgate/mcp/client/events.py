"""The answers in a response: one message, or a stream of events that ends with one.

The result of a call is read here and kept in its ``RequestState``; the library above handles a small answer in its
place. It would parse a large one on the event loop, and put the id of the request on any answer in a stream.
"""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field

import anyio
import httpx2
import msgspec

from headgate.errors import AdapterError, UpstreamProtocolError, UpstreamTooLarge
from headgate.mcp.client.body import chunks
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.message import IncomingMessage, read_message
from headgate.mcp.client.redaction import strip_tracebacks
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.sender import UpstreamResponse
from headgate.operations.running import off_loop

#: Less is read on the event loop: a thread would take longer than the work.
_SMALL_BYTES = 16 * 1024
#: Of a request or notification in a stream, and of the answer that opens a session.
_MAX_LIBRARY_BYTES = 256 * 1024
_MAX_LINES = 100_000
_RETRY = re.compile(rb"[0-9]{1,6}")


class _Numbered(msgspec.Struct):
    id: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def request_id(content: bytes) -> bytes | None:
    """Return the id of our request, as it is written in it."""
    if not content:
        return None
    found = msgspec.json.decode(content, type=_Numbered).id
    return None if isinstance(found, msgspec.UnsetType) else bytes(found)


async def read_reply(
    data: bytes, state: RequestState, limits: Limits, *, used_values: int = 0
) -> IncomingMessage:
    """Parse a message; a large one beside the event loop.

    Raises:
        UpstreamTooLarge: it holds too many values.
        UpstreamProtocolError: it is no message.
        UpstreamTimeout: reading it took too long.
    """
    most, cuts = limits.max_values - used_values, state.cuts_depth
    if len(data) <= _SMALL_BYTES:
        return read_message(data, state.token, max_values=most, cuts_depth=cuts)
    return await off_loop(state.deadline, read_message, data, state.token, max_values=most, cuts_depth=cuts)


def check_reply(message: IncomingMessage, state: RequestState) -> None:
    """Accept the answer to a request.

    Raises:
        UpstreamProtocolError: it is no answer, or the answer to another request.
    """
    if not message.is_reply:
        raise UpstreamProtocolError("The server's answer is no answer.")
    # An error without an id is of a request that the server could not read; it is an error all the same.
    if message.id != state.rpc_id and not (message.id is None and message.error is not None):
        raise UpstreamProtocolError("The server's answer belongs to another request.")


def stand_in_of(message: IncomingMessage, state: RequestState) -> bytes:
    """Keep the result for the caller, and return the answer that the library handles in its place.

    Raises:
        UpstreamTooLarge: the library itself needs the result, and it is too large.
    """
    result = message.result or {}
    if state.keeps_result:
        state.result, result = message.result, {}
    written = message.to_json(result, state.rpc_id)
    if len(written) > _MAX_LIBRARY_BYTES:
        raise UpstreamTooLarge
    return written


@dataclass(slots=True)
class Event:
    """One event of a stream."""

    data: bytes = b""
    kind: bytes = b""
    id: bytes = b""
    retry: bytes = b""

    def to_bytes(self) -> bytes:
        """Write the event as a stream has it."""
        fields = ((b"event", self.kind), (b"id", self.id), (b"retry", self.retry))
        lines = [name + b": " + value for name, value in fields if value]
        lines += [b"data: " + line for line in self.data.split(b"\n")] if self.data or self.id else []
        return b"\n".join(lines) + b"\n\n"


@dataclass(slots=True)
class EventAssembler:
    """Puts events together from parts that may end anywhere."""

    _pieces: list[bytes] = field(default_factory=list[bytes])
    _lines: list[bytes] = field(default_factory=list[bytes])
    _skips_newline: bool = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that end in the next part.

        Raises:
            UpstreamTooLarge: an event has too many lines.
        """
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


class EventStream(httpx2.AsyncByteStream):
    """An event stream for the library above, which reads it at its own pace."""

    def __init__(self, response: UpstreamResponse, state: RequestState, limits: Limits) -> None:
        self._response = response
        self._state = state
        #: Whose answer the stream carries.
        self._asked = state.resumes or state
        self._limits = limits
        self._events = self._values = 0
        self.on_close: Callable[[], None] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        assembler = EventAssembler()
        try:
            async for chunk in chunks(self._response, self._state, self._limits):
                for event in assembler.feed(chunk):
                    yield await self._passed_on(event)
        except AdapterError as error:
            self._asked.fail_now(strip_tracebacks(error))
            raise httpx2.ReadError("The stream was ended.") from None
        except (httpx2.TransportError, OSError):
            # The library resumes a stream that has event ids, so this is not yet the end of the call.
            raise httpx2.ReadError("The stream was lost.") from None
        finally:
            self._state.stream_ended = True

    async def _passed_on(self, event: Event) -> bytes:
        """Read an event, and return what the library handles in its place."""
        self._events += 1
        if self._events > self._limits.max_events:
            raise UpstreamTooLarge("The server sent more events than allowed.")
        if event.id:
            self._asked.event_id = event.id
        if event.data and event.kind in {b"", b"message"}:
            message = await read_reply(event.data, self._asked, self._limits, used_values=self._values)
            # A stream that is open for ever brings no answer, so only its single events are bounded.
            self._values += 0 if math.isinf(self._state.deadline) else message.values
            if message.is_reply:
                check_reply(message, self._asked)
                event.data = stand_in_of(message, self._asked)
            elif len(event.data) > _MAX_LIBRARY_BYTES:
                raise UpstreamTooLarge
        return event.to_bytes()

    async def aclose(self) -> None:
        """Close the stream, read to its end or not."""
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
        with anyio.CancelScope(shield=True):
            await self._response.aclose()
