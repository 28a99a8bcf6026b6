"""Between the wire and the network: a transport with a connection pool, unless the program brings its own transport.

The pool of ``httpcore2`` follows no redirect, reads no environment and keeps no cookies. The wire above it keeps the
limits.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Self, cast

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

# Under the five seconds after which common servers drop an idle connection: a request that meets a
# dropped connection cannot be repeated safely.
_KEEP_SECONDS = 4.0
_FAILURES = (
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
    httpcore2.TimeoutException,
    httpcore2.UnsupportedProtocol,
)


async def send(
    transport: httpx2.AsyncBaseTransport, request: httpx2.Request, state: RequestState
) -> httpx2.Response:
    """Send a request and return when the head of its response is there.

    Sets ``state.sent`` when the first byte is handed to the network. What a program's own transport has written cannot
    be seen; only a failed connection proves that it was nothing.
    """
    WRITING.set(state)
    state.sent = not isinstance(transport, PooledTransport)
    try:
        return await transport.handle_async_request(request)
    except (httpx2.ConnectError, httpx2.ConnectTimeout):
        state.sent = False
        raise


class PooledTransport(httpx2.AsyncBaseTransport):
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

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return when the head of its response is there."""
        try:
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    request.method,
                    self._url,
                    headers=request.headers.raw,
                    content=request.content,
                    extensions=self._extensions,
                )
            )
        except _FAILURES as error:
            failure = _as_httpx(error)
        else:
            # Of the whole head: what the connection counts depends on how the bytes were split.
            if sum(len(name) + len(value) + 4 for name, value in response.headers) <= MAX_HEAD_BYTES:
                return httpx2.Response(
                    response.status, headers=response.headers, stream=_PooledBody(response)
                )
            await response.aclose()
            failure = _as_httpx(HeadTooLarge())
        # Raised out here, so that it does not carry the library's error, which quotes the server's bytes.
        raise failure

    async def aclose(self) -> None:
        await self._pool.aclose()


class _PooledBody(httpx2.AsyncByteStream):
    """A body that is read from a connection of the pool."""

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._body = cast("AsyncGenerator[bytes]", aiter(cast("Any", response.stream)))
        self._network: CheckedStream = cast("Any", response).extensions["network_stream"]
        names = {name.lower() for name, _ in response.headers}
        self._network.head_is_complete(
            ends_with_connection=names.isdisjoint({b"content-length", b"transfer-encoding"})
        )

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await anext(self._body)
        except StopAsyncIteration:
            await self._refuse_surplus()
            raise
        except _FAILURES as error:
            failure = _as_httpx(error)
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
