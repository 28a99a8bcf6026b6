"""The seam between the wire and the network: a request that is ready to be written, its response, and two senders.

The connection pool of ``httpcore2`` is used unless the program brings its own transport. It follows no redirect, reads
no environment and keeps no cookies, because a pool does none of that. The wire above it keeps the limits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

import httpcore2
import httpx2

from headgate.mcp.client.network import (
    MAX_HEAD_BYTES,
    WRITING,
    CheckedBackend,
    CheckedStream,
    DialOptions,
    HeadTooLarge,
    UpstreamEndpoint,
    system_trust,
)
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


# Under the five seconds after which common servers drop an idle connection: a request that meets a
# dropped connection cannot be repeated safely.
_KEEP_SECONDS = 4.0
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)


class PooledSender:
    """Sends requests to one server, over connections that are reused while they are fresh."""

    def __init__(self, endpoint: UpstreamEndpoint, options: DialOptions) -> None:
        url = endpoint.url
        self._url = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=endpoint.port, target=url.raw_path
        )
        self._extensions = {"timeout": {"connect": options.connect_seconds}}
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=(options.tls or system_trust()) if endpoint.is_tls else None,
            max_connections=None,
            keepalive_expiry=_KEEP_SECONDS,
            network_backend=CheckedBackend(endpoint, options),
        )

    async def send(self, request: OutgoingRequest, state: RequestState) -> UpstreamResponse:
        """Send a request, and return when the head of its response is there."""
        WRITING.set(state)
        try:
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    self._url,
                    headers=request.headers,
                    content=request.content,
                    extensions=self._extensions,
                )
            )
        except _FAILURES as error:
            failure = _as_httpx(error)
        else:
            # Of the whole head: what the connection counts depends on how the bytes were split.
            if sum(len(name) + len(value) + 4 for name, value in response.headers) <= MAX_HEAD_BYTES:
                return _PooledResponse(response)
            await response.aclose()
            failure = _as_httpx(HeadTooLarge())
        # Raised out here, so that it does not carry the library's error, which quotes the server's bytes.
        raise failure

    async def aclose(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


class _PooledResponse:
    """A response whose body is read from a connection of the pool."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._body = cast("AsyncGenerator[bytes]", aiter(cast("Any", response.stream)))
        self._network: CheckedStream = cast("Any", response).extensions["network_stream"]
        self.status = response.status
        self.headers: Mapping[str, str] = _joined(response.headers)
        self._network.head_is_complete(
            ends_with_connection="content-length" not in self.headers
            and "transfer-encoding" not in self.headers
        )

    async def next_chunk(self) -> bytes:
        try:
            chunk = await anext(self._body, b"")
        except _FAILURES as error:
            failure = _as_httpx(error)
        else:
            if not chunk:
                await self._refuse_surplus()
            return chunk
        raise failure

    async def aclose(self) -> None:
        await self._body.aclose()
        await self._response.aclose()

    async def _refuse_surplus(self) -> None:
        """Refuse bytes behind the end of the response: the pool would take them for the next one.

        The library offers no public way to see them. Where this private one is missing, the connection is
        closed, and so never used again.
        """
        connection = getattr(getattr(self._response.stream, "_stream", None), "_connection", None)
        parser = getattr(connection, "_h11_state", None)
        surplus = None if parser is None else parser.trailing_data[0]
        if surplus == b"":
            return
        await self._network.aclose()
        if surplus:
            raise httpx2.RemoteProtocolError("The server answered twice.")


def _as_httpx(error: Exception) -> httpx2.TransportError:
    """Return the httpx2 error for an error of httpcore2, without text that a server may have written."""
    match error:
        case httpcore2.ConnectError():
            return httpx2.ConnectError(str(error))
        case httpcore2.ConnectTimeout():
            return httpx2.ConnectTimeout(str(error))
        case HeadTooLarge():
            return httpx2.RemoteProtocolError("The head of the answer is too large.")
        case httpcore2.RemoteProtocolError():
            return httpx2.RemoteProtocolError("The answer is not HTTP.")
        case httpcore2.LocalProtocolError():
            return httpx2.LocalProtocolError("The request is not HTTP.")
        case _:
            return httpx2.ReadError("The connection was lost.")


def _joined(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers
