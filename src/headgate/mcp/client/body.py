"""The body of an answer on its way in: counted, timed, and without our token in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import anyio
import httpx2

from headgate.errors import AdapterError, UpstreamTimeout, UpstreamTooLarge
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.sender import UpstreamResponse
from headgate.operations.secrets import REDACTED, Secret

_MIN_TOKEN_BYTES = 8
_MAX_WORDS = 500
#: What may hide a token from a search for it, or is no JSON at all.
_SUSPECT = (b"\\u", b"NaN", b"Infinity")


async def read_whole(answer: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    """Read a body to its end.

    Raises:
        UpstreamTooLarge: it is longer than allowed.
        UpstreamTimeout: it did not come in time.
    """
    body = answer.whole()
    if body is None:
        return b"".join([chunk async for chunk in chunks(answer, state, limits)])
    if len(body) > limits.max_bytes:
        raise UpstreamTooLarge
    redact = Redactor(state.token)
    clean = redact(body) + redact.rest()
    _note_suspects(clean, state)
    return clean


async def chunks(
    answer: UpstreamResponse, state: RequestState, limits: Limits, *, max_events: int | None = None
) -> AsyncIterator[bytes]:
    """Give a body part by part, within the limits.

    Raises:
        UpstreamTooLarge: it is longer, or has more events, than allowed.
        UpstreamTimeout: it did not come in time.
    """
    redact = Redactor(state.token)
    size = events = 0
    tail = b""
    while True:
        chunk = await _next(answer, state, limits)
        size += len(chunk)
        if size > limits.max_bytes:
            raise UpstreamTooLarge
        if max_events is not None:
            events += _event_ends(tail, chunk)
            tail = chunk[-3:]
            if events > max_events:
                raise UpstreamTooLarge("The server sent more events than allowed.")
        clean = redact(chunk) if chunk else redact.rest()
        _note_suspects(clean, state)
        if clean:
            yield clean
        if not chunk:
            return


class EventStream(httpx2.AsyncByteStream):
    """An event stream for the library above, which reads it at its own pace."""

    def __init__(self, answer: UpstreamResponse, state: RequestState, limits: Limits) -> None:
        self._answer = answer
        self._state = state
        self._limits = limits
        self.on_close: Callable[[], None] | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        limits = self._limits
        try:
            async for chunk in chunks(self._answer, self._state, limits, max_events=limits.max_events):
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
        """Be done with the stream, read to its end or not."""
        self._state.cut = None
        if self.on_close is not None:
            self.on_close()
            self.on_close = None
        with anyio.CancelScope(shield=True):
            await self._answer.aclose()


async def _next(answer: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    quiet_by = asyncio.get_running_loop().time() + limits.idle_seconds
    # A stream that waits for events may be silent for ever; an answer may not.
    until = None if state.deadline == float("inf") else min(state.deadline, quiet_by)
    try:
        async with asyncio.timeout_at(until):
            return await answer.next_chunk()
    except TimeoutError as error:
        raise UpstreamTimeout from error


def _note_suspects(clean: bytes, state: RequestState) -> None:
    if any(suspect in clean for suspect in _SUSPECT):
        state.needs_look = True


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


def without_token(text: str, token: Secret | None) -> str:
    """Take the token out of a text."""
    return text if token is None else text.replace(token.expose(), REDACTED)


def sanitise(text: str, token: Secret | None, *, most: int = _MAX_WORDS) -> str:
    """Make a stranger's words fit to be quoted: short, without control characters or the token."""
    short = without_token(text, token)[:most]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in short)


def strip_tracebacks(error: AdapterError) -> AdapterError:
    """Take the tracebacks off an error and its causes: their frames hold the request, and so the token."""
    link: BaseException | None = error
    while link is not None:
        link.__traceback__ = None
        link = link.__cause__ or link.__context__
    return error
