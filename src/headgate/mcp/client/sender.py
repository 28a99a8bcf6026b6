"""The seam between the guard and the network: a request that is ready to be written, and its response.

Two senders exist: the connection pool in ``pool``, and the adapter below for a transport that the program brings.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import httpx2

from headgate.mcp.client.request_state import RequestState


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request with all its headers, the token among them, which its ``repr`` must not show."""

    method: str
    url: httpx2.URL
    headers: list[tuple[bytes, bytes]]
    content: bytes

    def __repr__(self) -> str:
        return f"OutgoingRequest({self.method})"


class UpstreamResponse(Protocol):
    """A response whose head has arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in small letters; repeated ones are joined with a comma."""
        ...

    async def next_chunk(self) -> bytes:
        """Return the next part of the body, empty at its end."""
        ...

    async def aclose(self) -> None:
        """Release the connection, whether the body was read or not."""
        ...


class Sender(Protocol):
    """Sends requests to one server; fails with an ``httpx2.TransportError`` or an ``AdapterError``."""

    async def send(self, request: OutgoingRequest, state: RequestState) -> UpstreamResponse:
        """Send a request and return when the head of its response is there.

        Sets ``state.sent`` when the first byte is handed to the network, and not before.
        """
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...


class TransportAdapter:
    """Sends through a transport that the importing program brought, and will close itself."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def send(self, request: OutgoingRequest, state: RequestState) -> UpstreamResponse:
        """Send a request through the program's transport."""
        # What such a transport has written cannot be seen; only a failed connection proves that it was nothing.
        state.sent = True
        try:
            response = await self._transport.handle_async_request(
                httpx2.Request(request.method, request.url, headers=request.headers, content=request.content)
            )
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            state.sent = False
            raise
        return _AdaptedResponse(response)

    async def aclose(self) -> None:
        """Leave the transport open; it belongs to the program."""


class _AdaptedResponse:
    """A response of the program's transport."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._body = cast("AsyncGenerator[bytes]", aiter(cast("Any", response.stream)))
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())

    async def next_chunk(self) -> bytes:
        while True:
            chunk = await anext(self._body, None)
            # An empty part is not the end.
            if chunk is None or chunk:
                return chunk or b""

    async def aclose(self) -> None:
        await self._response.aclose()
