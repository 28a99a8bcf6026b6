"""HTTP for live sources: one server, addresses checked before they are dialled, bounded answers.

The address that was checked is the one that is dialled, so a name server that changes its answer gains nothing. A
password goes to the server that it was given for, over TLS or on this machine.
"""

from __future__ import annotations

import base64
import socket
import ssl
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpcore2

from headgate.errors import (
    AddressBlocked,
    ConfigInvalid,
    UpstreamAuthFailed,
    UpstreamProtocolError,
    UpstreamUnreachable,
)
from headgate.operations.network_addresses import is_this_machine, permitted_addresses
from headgate.operations.secrets import Secret
from headgate.sources.accounts import Connections, cut_at_deadline

MAX_ANSWER_BYTES = 64 * 1024 * 1024
_SECONDS = 30.0
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 307, 308})
_REFUSED = frozenset({401, 403})
_LOCAL = frozenset({"127.0.0.1", "::1", "localhost"})
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a server answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    #: The address that answered, after redirects.
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAccess:
    """Who signs in, and which addresses may be called."""

    user: str = ""
    secret: Secret | None = field(default=None, repr=False)
    allow_private: bool = False


class WebAccount:
    """Requests to one server; made by `web_account`."""

    def __init__(
        self, pool: httpcore2.ConnectionPool, access: WebAccess, origin: tuple[str, str, int]
    ) -> None:
        self._pool = pool
        self._access = access
        self._origin = origin
        self._is_here = is_this_machine(origin[1].rstrip("."))

    def request(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> HttpAnswer:
        """Send a request and read the answer, following redirects."""
        for _ in range(_MAX_REDIRECTS):
            self._refuse_elsewhere(url)
            answer = self._send(method, url, headers or {}, body)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return _accepted(answer)
            url = urljoin(url, answer.headers["location"])
        raise UpstreamProtocolError("The server redirects without end.")

    def _refuse_elsewhere(self, url: str) -> None:
        """Refuse an address that a server elsewhere names on this machine, where services trust every caller."""
        scheme, host, _ = origin_of(url)
        if not self._is_here and (scheme != "https" or is_this_machine(host.rstrip("."))):
            raise AddressBlocked(f"{self._origin[1]} leads to {host}, which must not be called.")

    def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        sent = {"Accept-Encoding": "identity", "User-Agent": "headgate", **headers, **self._signed(url)}
        limits = dict.fromkeys(("connect", "read", "write", "pool"), _SECONDS)
        try:
            with self._pool.stream(
                method, url, headers=list(sent.items()), content=body, extensions={"timeout": limits}
            ) as answer:
                names = {
                    name.decode("latin-1").lower(): text.decode("latin-1") for name, text in answer.headers
                }
                return HttpAnswer(answer.status, names, _bounded(answer.iter_stream()), url)
        except (
            httpcore2.NetworkError,
            httpcore2.TimeoutException,
            httpcore2.ProtocolError,
            OSError,
        ) as error:
            reason = str(error) or type(error).__name__
            raise UpstreamUnreachable(f"{urlsplit(url).hostname}: {reason}") from None

    def _signed(self, url: str) -> Mapping[str, str]:
        """Return the header with the password, for the server that it is for and for no other one that this one names."""
        if self._access.secret is None or origin_of(url) != self._origin:
            return {}
        pair = f"{self._access.user}:{self._access.secret.expose()}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}


@contextmanager
def web_account(url: str, access: WebAccess) -> Generator[WebAccount]:
    """Open an account at an address for the length of a block."""
    origin = origin_of(url)
    with (
        cut_at_deadline() as connections,
        httpcore2.ConnectionPool(
            ssl_context=ssl.create_default_context(),
            network_backend=CheckedDialling(access, connections),
            max_connections=1,
        ) as pool,
    ):
        yield WebAccount(pool, access, origin)


def origin_of(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise ConfigInvalid("The address is not a URL.", hint="Give an https URL.") from None
    if parts.scheme not in _PORTS or not host or parts.username is not None:
        raise ConfigInvalid(
            "The address is no https URL, or has a password in it.", hint="Give an https URL."
        )
    if parts.scheme == "http" and host not in _LOCAL:
        raise ConfigInvalid(f"{host} is not this machine: the address must be https.", hint="Use https.")
    return parts.scheme, host, port or _PORTS[parts.scheme]


class CheckedDialling(httpcore2.NetworkBackend):
    def __init__(self, access: WebAccess, connections: Connections) -> None:
        self._access = access
        self._connections = connections
        self._network = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.NetworkStream:
        """Connect to the first permitted address that accepts."""
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        allowed = {host} if self._access.allow_private else frozenset[str]()
        addresses = permitted_addresses((str(entry[4][0]) for entry in resolved), host, allowed_hosts=allowed)
        failure: Exception = httpcore2.ConnectError(f"{host} has no address.")
        for address in addresses:
            try:
                stream = self._network.connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
            else:
                self._connections.add(stream.get_extra_info("socket"))
                return stream
        raise failure


def _bounded(pieces: Iterable[bytes]) -> bytes:
    collected, size = list[bytes](), 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_ANSWER_BYTES:
            raise UpstreamProtocolError(f"The answer has more than {MAX_ANSWER_BYTES:,} bytes.")
        collected.append(piece)
    return b"".join(collected)


def _accepted(answer: HttpAnswer) -> HttpAnswer:
    host = urlsplit(answer.url).hostname
    if answer.status in _REFUSED:
        raise UpstreamAuthFailed(f"{host} refused the name or password.")
    if answer.status >= 400:  # noqa: PLR2004 - HTTP's own border
        raise UpstreamProtocolError(f"{host} answered with the status {answer.status}.")
    return answer
