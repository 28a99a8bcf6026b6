"""The body of a response on its way in: counted, timed, and without our token in it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable

import anyio
import httpx2

from headgate.errors import AdapterError, UpstreamTooLarge
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.redaction import Redactor, needs_redaction, strip_tracebacks
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.sender import UpstreamResponse


async def read_whole(response: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    """Read a body to its end.

    Raises:
        UpstreamTooLarge: it is longer than allowed.
        UpstreamTimeout: it did not come in time.
    """
    return b"".join([chunk async for chunk in chunks(response, state, limits)])


async def chunks(
    response: UpstreamResponse, state: RequestState, limits: Limits, *, max_events: int | None = None
) -> AsyncIterator[bytes]:
    """Yield a body part by part, within the limits.

    Raises:
        UpstreamTooLarge: it is longer, or has more events, than allowed.
        UpstreamTimeout: it did not come in time.
    """
    redact = Redactor(state.token)
    size = events = 0
    tail = b""
    while True:
        chunk = await _next(response, state, limits)
        size += len(chunk)
        if size > limits.max_bytes:
            raise UpstreamTooLarge
        if max_events is not None:
            events += _event_ends(tail, chunk)
            tail = chunk[-3:]
            if events > max_events:
                raise UpstreamTooLarge("The server sent more events than allowed.")
        clean = redact(chunk) if chunk else redact.rest()
        if needs_redaction(clean):
            state.needs_redaction = True
        if clean:
            yield clean
        if not chunk:
            return


class EventStream(httpx2.AsyncByteStream):
    """An event stream for the library above, which reads it at its own pace."""

    def __init__(self, response: UpstreamResponse, state: RequestState, limits: Limits) -> None:
        self._response = response
        self._state = state
        self._limits = limits
        self.on_close: Callable[[], None] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        limits = self._limits
        try:
            async for chunk in chunks(self._response, self._state, limits, max_events=limits.max_events):
                yield chunk
        except AdapterError as error:
            self._state.fail_now(strip_tracebacks(error))
            raise httpx2.ReadError("The stream was ended.") from None
        except (httpx2.TransportError, OSError):
            # The library resumes a stream that has event ids, so this is not yet the end of the call.
            raise httpx2.ReadError("The stream was lost.") from None
        finally:
            self._state.stream_ended = True

    async def aclose(self) -> None:
        """Close the stream, read to its end or not."""
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
        with anyio.CancelScope(shield=True):
            await self._response.aclose()


async def _next(response: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    silent_until = asyncio.get_running_loop().time() + limits.idle_seconds
    # A stream that waits for events may be silent for ever; an answer may not.
    until = math.inf if state.deadline == math.inf else min(state.deadline, silent_until)
    with state.network_wait(until):
        return await response.next_chunk()


def _event_ends(tail: bytes, chunk: bytes) -> int:
    seen = tail + chunk
    before = tail.count(b"\n\n") + tail.count(b"\r\n\r") + tail.count(b"\r\r")
    return seen.count(b"\n\n") + seen.count(b"\r\n\r") + seen.count(b"\r\r") - before
