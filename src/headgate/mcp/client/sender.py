"""What passes between the guard and the network: a request that is ready to be written, and its answer.

The guard speaks to our own connections and to a transport that somebody else brings in the same few words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, cast

import httpx2


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """One request with all its headers, the token among them; it has no other life than to be sent."""

    method: str
    url: httpx2.URL
    headers: list[tuple[bytes, bytes]]
    content: bytes

    def __repr__(self) -> str:
        return f"OutgoingRequest({self.method})"


class UpstreamResponse(Protocol):
    """An answer whose head has arrived."""

    @property
    def status(self) -> int:
        """The HTTP status."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by their names in small letters; repeated ones are joined with a comma."""
        ...

    def whole(self) -> bytes | None:
        """Give the body if all of it has arrived already."""
        ...

    async def next_chunk(self) -> bytes:
        """Give the next part of the body, empty at its end."""
        ...

    def abort(self) -> None:
        """End it at once, whoever waits for more of it."""
        ...

    async def aclose(self) -> None:
        """Be done with it, read or not."""
        ...


class Sender(Protocol):
    """Whatever can send a request and give its answer."""

    async def send(self, request: OutgoingRequest) -> UpstreamResponse:
        """Send a request, and come back when the head of its answer is there."""
        ...

    async def aclose(self) -> None:
        """End every connection."""
        ...


class TransportAdapter:
    """A transport that belongs to somebody else, who will close it."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self._transport = transport

    async def send(self, request: OutgoingRequest) -> UpstreamResponse:
        """Send a request through the other's transport."""
        response = await self._transport.handle_async_request(
            httpx2.Request(request.method, request.url, headers=request.headers, content=request.content)
        )
        return _AdaptedResponse(response)

    async def aclose(self) -> None:
        """Leave the transport as it is."""


class _AdaptedResponse:
    """An answer of somebody else's transport."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response
        self._parts = aiter(cast("httpx2.AsyncByteStream", response.stream))
        self.status = response.status_code
        self.headers: Mapping[str, str] = dict(response.headers.items())

    def whole(self) -> bytes | None:
        return None

    async def next_chunk(self) -> bytes:
        while True:
            chunk = await anext(self._parts, None)
            # An empty part is not the end.
            if chunk is None or chunk:
                return chunk or b""

    def abort(self) -> None:
        # Somebody else's transport has no such thing; its own limits end it.
        return

    async def aclose(self) -> None:
        await self._response.aclose()
