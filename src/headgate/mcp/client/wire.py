"""HTTP/1.1 to one server: dial a checked address, send, read; one state at a time on each connection.

It exists because the general client costs more than the whole protocol above it, and because the safe-replay
rules need to know whether a byte of the request has left. It follows nothing, caches nothing, reads no
environment. Limits are kept by the guard above.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import cast

import httptools
import httpx2

from headgate.errors import AddressBlocked
from headgate.mcp.client.addresses import UpstreamEndpoint, check_address
from headgate.mcp.client.sender import OutgoingRequest, UpstreamResponse

#: Gives the addresses of a host name.
Resolve = Callable[[str, int], Awaitable[list[str]]]

_MAX_HEAD_BYTES = 64 * 1024
_READ_AHEAD_BYTES = 256 * 1024
# Under the five seconds after which common servers drop an idle connection: a request that meets a
# dropped connection cannot be repeated safely.
_KEEP_SECONDS = 4.0


async def resolve(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in found]


@cache
def system_trust() -> ssl.SSLContext:
    """Give the TLS settings of this machine; making them is slow, so they are shared."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialOptions:
    """How connections are made: who resolves names, which hosts may be private, how long it may take."""

    allowed_hosts: frozenset[str] = frozenset()
    connect_seconds: float = 5.0
    resolve: Resolve = resolve
    #: None means the trust of this machine.
    tls: ssl.SSLContext | None = None


class Wire:
    """Connections to one server, kept while they are fresh."""

    def __init__(self, endpoint: UpstreamEndpoint, dial: DialOptions) -> None:
        self._endpoint = endpoint
        self._options = dial
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()

    async def send(self, request: OutgoingRequest) -> UpstreamResponse:
        """Send one request and give the answer as soon as its head is there."""
        message = _message(request)
        connection = self._fresh() or await self._dial()
        try:
            connection.send(message)
            await connection.head_arrived()
        except BaseException:
            connection.abort()
            raise
        return _WireAnswer(self, connection)

    async def aclose(self) -> None:
        """Drop every connection and wait until each is gone."""
        gone = [connection.gone for connection in self._open]
        for connection in list(self._open):
            connection.abort()
        await asyncio.gather(*gone)

    def give_back(self, connection: Connection) -> None:
        """Keep a connection whose answer was read to its end; drop any other."""
        if connection.is_reusable:
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()

    def _fresh(self) -> Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if not connection.is_closing and now - connection.idle_since < _KEEP_SECONDS:
                return connection
            connection.abort()
        return None

    async def _dial(self) -> Connection:
        """Connect to the first address that accepts; none of them may use up the time of the others."""
        seconds, host = self._options.connect_seconds, self._endpoint.host
        try:
            async with asyncio.timeout(seconds):
                addresses = await self._permitted()
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"{host} could not be found in time.") from error
        failure: Exception = httpx2.ConnectError(f"{host} has no address.")
        for address in addresses:
            try:
                async with asyncio.timeout(seconds / len(addresses)):
                    return await self._connect(address)
            except TimeoutError:
                failure = httpx2.ConnectTimeout(f"{host} did not accept in time.")
            except OSError as error:
                failure = httpx2.ConnectError(f"{host} does not accept: {type(error).__name__}.")
        raise failure

    async def _permitted(self) -> list[str]:
        host = self._endpoint.host
        try:
            addresses = await self._options.resolve(host, self._endpoint.port)
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be found.") from error
        permitted: list[str] = []
        blocked: AddressBlocked | None = None
        for address in dict.fromkeys(addresses):
            try:
                check_address(address, host, allowed_hosts=self._options.allowed_hosts)
                permitted.append(address)
            except AddressBlocked as error:
                blocked = error
        if blocked is not None and not permitted:
            raise blocked
        return permitted

    async def _connect(self, address: str) -> Connection:
        endpoint = self._endpoint
        tls = (self._options.tls or system_trust()) if endpoint.is_tls else None
        _, connection = await asyncio.get_running_loop().create_connection(
            lambda: Connection(self._open),
            address,
            endpoint.port,
            ssl=tls,
            server_hostname=endpoint.host if tls else None,
        )
        return connection


def _message(request: OutgoingRequest) -> bytes:
    head = b"%s %s HTTP/1.1\r\n" % (request.method.encode("ascii"), request.url.raw_path)
    lines = b"".join([b"%s: %s\r\n" % pair for pair in request.headers])
    # Every line break must be one of ours.
    if (head + lines).count(b"\n") != len(request.headers) + 1 or lines.count(b"\r") != len(request.headers):
        raise httpx2.LocalProtocolError("A header must not hold a line break.")
    return head + lines + b"\r\n" + request.content


class _WireAnswer:
    """An answer on one of our connections."""

    __slots__ = ("_connection", "_wire", "headers", "status")

    def __init__(self, wire: Wire, connection: Connection) -> None:
        self._wire = wire
        self._connection: Connection | None = connection
        self.status = connection.status
        self.headers: Mapping[str, str] = _joined(connection.headers)

    def whole(self) -> bytes | None:
        return None if self._connection is None else self._connection.whole()

    async def next_chunk(self) -> bytes:
        return b"" if self._connection is None else await self._connection.next_chunk()

    def abort(self) -> None:
        if self._connection is not None:
            self._connection.abort()

    async def aclose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._wire.give_back(connection)


def _joined(pairs: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for name, value in pairs:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        headers[key] = f"{headers[key]}, {text}" if key in headers else text
    return headers


class Connection(asyncio.Protocol):
    """One connection and the answer it is reading."""

    def __init__(self, open_connections: set[Connection]) -> None:
        self._open_connections = open_connections
        loop = asyncio.get_running_loop()
        #: Done when the socket is closed.
        self.gone: asyncio.Future[None] = loop.create_future()
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._lost: Exception | None = None
        self._begin()
        self._complete = True

    def _begin(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self._head_done = False
        self._head_bytes = 0
        self._ends_with_connection = False
        self._complete = False
        self._keep = False
        self._chunks: deque[bytes] = deque()
        self._buffered = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None

    # What the wire asks for

    @property
    def is_closing(self) -> bool:
        """Whether the other side, or we, have ended it."""
        return self._transport is None or self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """Whether the answer was read to its end and another may follow."""
        return self._complete and self._keep and not self._chunks and not self.is_closing

    def send(self, message: bytes) -> None:
        """Write one request and get ready for its answer."""
        assert self._complete
        assert self._transport is not None
        self._begin()
        self._transport.write(message)

    async def head_arrived(self) -> None:
        """Wait until status and headers are there."""
        while not self._head_done:
            self._raise_if_lost()
            await self._wait()

    async def next_chunk(self) -> bytes:
        """Give the next part of the body, empty at its end."""
        while not self._chunks:
            if self._complete:
                return b""
            self._raise_if_lost()
            await self._wait()
        chunk = self._chunks.popleft()
        self._buffered -= len(chunk)
        if self._paused and self._buffered < _READ_AHEAD_BYTES and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return chunk

    def whole(self) -> bytes | None:
        """Give the body if all of it is here."""
        if not self._complete:
            return None
        body = b"".join(self._chunks)
        self._chunks.clear()
        self._buffered = 0
        return body

    def abort(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._transport.abort()

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _raise_if_lost(self) -> None:
        if self._lost is not None:
            raise self._lost

    # What the event loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the open socket."""
        self._transport = cast("asyncio.Transport", transport)
        self._open_connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Read on in the present answer."""
        if self._complete:
            # Nobody asked: whatever this is, it must not be taken for the next answer.
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._fail(httpx2.RemoteProtocolError("The answer is not HTTP."))
        if not self._head_done:
            self._head_bytes += len(data)
            if self._head_bytes > _MAX_HEAD_BYTES:
                self._fail(httpx2.RemoteProtocolError("The head of the answer is too large."))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Know that nothing more will come."""
        self._transport = None
        self._open_connections.discard(self)
        if self._ends_with_connection and exc is None and self._lost is None:
            self._complete = True
        elif self._lost is None:
            self._lost = httpx2.ReadError("The connection was lost.")
        if not self.gone.done():
            self.gone.set_result(None)
        self._wake()

    def _fail(self, error: Exception) -> None:
        self._lost = self._lost or error
        self.abort()

    # What the parser finds

    def on_header(self, name: bytes, value: bytes) -> None:
        """Note one header."""
        self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Know the status, and how the body will end."""
        self.status = self._parser.get_status_code()
        if self.status < HTTPStatus.OK:
            return
        self._head_done = True
        lengths = [value for name, value in self.headers if name.lower() == b"content-length"]
        codings = [value.lower() for name, value in self.headers if name.lower() == b"transfer-encoding"]
        if codings and codings != [b"chunked"]:
            self._fail(httpx2.RemoteProtocolError("The answer's transfer coding is not understood."))
        self._ends_with_connection = not lengths and not codings

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body until it is asked for, and stop reading when too much waits."""
        self._chunks.append(body)
        self._buffered += len(body)
        if self._buffered > _READ_AHEAD_BYTES and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request."""
        if self._complete:
            self._fail(httpx2.RemoteProtocolError("The server answered twice."))

    def on_message_complete(self) -> None:
        """Note the end of the answer; an interim one (100, 103) is only the beginning."""
        if not self._head_done:
            self.headers = []
            return
        self._complete = True
        self._keep = self._parser.should_keep_alive()
