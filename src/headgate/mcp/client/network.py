"""How the HTTP library reaches the network: only checked addresses are dialled, and every byte passes here.

``CheckedBackend`` is the network backend of an ``httpcore2`` connection pool. It resolves the name of the
server, refuses the addresses that must not be called, and dials one of the others as a literal address: what
was checked is what is called, so a name server that changes its answer in between (DNS rebinding) gains nothing.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import httpcore2
import httpx2

from headgate.errors import AdapterConfigInvalid
from headgate.mcp.client.request_state import RequestState
from headgate.operations.network_addresses import is_this_machine, permitted_addresses

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class UpstreamEndpoint:
    """The address of one server, parsed and accepted."""

    url: httpx2.URL
    host: str
    port: int

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return self.url.scheme == "https"

    @property
    def public(self) -> str:
        """Scheme, host and path, for display; the query is left out because it may hold a secret."""
        return str(self.url.copy_with(query=None))


def parse_endpoint(text: str, *, allow_insecure: bool = False) -> UpstreamEndpoint:
    """Parse the address of a server."""
    try:
        url = httpx2.URL(text)
        host, port = url.host, url.port
    except (httpx2.InvalidURL, TypeError, ValueError) as error:
        raise AdapterConfigInvalid("The endpoint is not a URL.") from error
    if url.scheme not in _PORTS or not host:
        raise AdapterConfigInvalid(
            "The endpoint must be an http or https URL with a host; stdio is not offered."
        )
    if url.userinfo or url.fragment:
        raise AdapterConfigInvalid("The endpoint must not carry a user, a password or a fragment.")
    if url.scheme == "http" and not (allow_insecure or is_this_machine(host)):
        raise AdapterConfigInvalid(f"The endpoint must be https: {host} is not this machine.")
    return UpstreamEndpoint(url, host, port or _PORTS[url.scheme])


#: Gives the addresses of a host name.
Resolve = Callable[[str, int], Awaitable[list[str]]]

#: The request whose bytes the current task writes. A pool chooses the connection itself, so the stream below
#: learns from here whose bytes it is handed.
WRITING: ContextVar[RequestState] = ContextVar("headgate_writing")

MAX_HEAD_BYTES = 64 * 1024


class HeadTooLarge(httpcore2.RemoteProtocolError):
    """The head of a response is larger than allowed."""


async def resolve(host: str, port: int) -> list[str]:
    """Resolve a host with the system's resolver."""
    entries = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(entry[4][0]) for entry in entries]


@cache
def system_trust() -> ssl.SSLContext:
    """Return the TLS settings of this machine; loading the certificates is slow, so they are shared."""
    return httpx2.create_ssl_context(trust_env=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class DialOptions:
    """How connections are made: the resolver, the hosts that may be private, the time it may take."""

    allowed_hosts: frozenset[str] = frozenset()
    connect_seconds: float = 5.0
    resolve: Resolve = resolve
    #: None means the trust of this machine.
    tls: ssl.SSLContext | None = None


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Dials one server, and only those of its addresses that may be called."""

    def __init__(self, endpoint: UpstreamEndpoint, options: DialOptions) -> None:
        self._host = endpoint.host
        self._options = options
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the signature of the library
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first permitted address that accepts; each gets an equal share of the time."""
        del host, timeout
        resolved = await self._resolved(port)
        addresses = permitted_addresses(resolved, self._host, allowed_hosts=self._options.allowed_hosts)
        failure: Exception = httpcore2.ConnectError(f"{self._host} has no address.")
        for address in addresses:
            try:
                stream = await self._network.connect_tcp(
                    address,
                    port,
                    timeout=self._options.connect_seconds / len(addresses),
                    local_address=local_address,
                    socket_options=socket_options,
                )
            except httpcore2.ConnectTimeout:
                failure = httpcore2.ConnectTimeout(f"{self._host} did not accept in time.")
            except httpcore2.ConnectError as error:
                failure = _refused(self._host, error)
            else:
                return CheckedStream(stream, self._host)
        raise failure

    async def _resolved(self, port: int) -> list[str]:
        try:
            async with asyncio.timeout(self._options.connect_seconds):
                return await self._options.resolve(self._host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"{self._host} could not be found in time.") from error
        except OSError as error:
            raise httpcore2.ConnectError(f"{self._host} cannot be found.") from error


class CheckedStream(httpcore2.AsyncNetworkStream):
    """One connection: notes when a request is written, bounds a response's head, reports a premature end."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, host: str) -> None:
        self._stream = stream
        self._host = host
        self._is_closed = False
        self._head_bytes: int | None = None
        self._may_end = False

    def head_is_complete(self, *, ends_with_connection: bool) -> None:
        """Expect a body now; only when it has no other end may the server end it by closing."""
        self._head_bytes = None
        self._may_end = ends_with_connection

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Read what the server sent."""
        if self._head_bytes is not None and self._head_bytes > MAX_HEAD_BYTES:
            raise HeadTooLarge
        data = await self._stream.read(max_bytes, timeout)
        if not data and not self._may_end:
            raise httpcore2.ReadError("The connection was lost.")
        if self._head_bytes is not None:
            self._head_bytes += len(data)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109
        """Hand bytes of a request to the socket; from here on the server may have received it."""
        WRITING.get().sent = True
        self._head_bytes, self._may_end = 0, False
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        """Close the connection."""
        self._is_closed = True
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109
    ) -> httpcore2.AsyncNetworkStream:
        """Encrypt the connection; what the handshake writes is no part of a request."""
        try:
            stream = await self._stream.start_tls(ssl_context, server_hostname, timeout)
        except httpcore2.ConnectError as error:
            raise _refused(self._host, error) from error
        return CheckedStream(stream, self._host)

    def get_extra_info(self, info: str) -> Any:
        """Return a fact that the pool needs; a closed connection counts as readable, and so as expired."""
        return True if info == "is_readable" and self._is_closed else self._stream.get_extra_info(info)


def _refused(host: str, error: httpcore2.ConnectError) -> httpcore2.ConnectError:
    reason = type(error.__cause__ or error).__name__
    return httpcore2.ConnectError(f"{host} does not accept: {reason}.")
