"""The body of a response on its way in: counted, timed, and without our token in it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import suppress

import anyio
import httpx2

from headgate.errors import AdapterError, UpstreamTooLarge
from headgate.mcp.client.limits import Limits
from headgate.mcp.client.redaction import Redactor
from headgate.mcp.client.request_state import RequestState
from headgate.mcp.client.sender import UpstreamResponse

#: Of an error's body.
_ERROR_BYTES = 4096
_ERROR_SECONDS = 1.0


async def read_whole(response: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    """Read a body to its end.

    Raises:
        UpstreamTooLarge: it is longer than allowed.
        UpstreamTimeout: it did not come in time.
    """
    return b"".join([chunk async for chunk in chunks(response, state, limits)])


async def read_beginning(response: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    """Read the first part of an error's body; an error is not worth waiting for more."""
    found = b""
    until = min(state.deadline, asyncio.get_running_loop().time() + _ERROR_SECONDS)
    with anyio.CancelScope(deadline=until), suppress(AdapterError, httpx2.TransportError, OSError):
        async for chunk in chunks(response, state, limits):
            found += chunk
            if len(found) >= _ERROR_BYTES:
                break
    return found[:_ERROR_BYTES]


async def chunks(response: UpstreamResponse, state: RequestState, limits: Limits) -> AsyncIterator[bytes]:
    """Yield a body part by part, within the limits.

    Raises:
        UpstreamTooLarge: it is longer than allowed.
        UpstreamTimeout: it did not come in time.
    """
    redact = Redactor(state.token)
    size = 0
    while True:
        chunk = await _next(response, state, limits)
        size += len(chunk)
        if size > limits.max_bytes:
            raise UpstreamTooLarge
        clean = redact(chunk) if chunk else redact.rest()
        if clean:
            yield clean
        if not chunk:
            return


async def _next(response: UpstreamResponse, state: RequestState, limits: Limits) -> bytes:
    silent_until = asyncio.get_running_loop().time() + limits.idle_seconds
    # A stream that waits for events may be silent for ever; an answer may not.
    until = math.inf if state.deadline == math.inf else min(state.deadline, silent_until)
    with state.network_wait(until):
        return await response.next_chunk()
