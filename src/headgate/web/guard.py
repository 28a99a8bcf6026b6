"""The guard before every address: whose host, which origin, how many at once, under which request id.

It knows nothing about grants; whoever it lets in is still to be admitted.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from time import monotonic

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from headgate.errors import (
    HeadgateError,
    InvalidRequest,
    MisdirectedRequest,
    Overloaded,
    PermissionRefused,
    RateLimited,
)
from headgate.model.ids import ClientId
from headgate.telemetry import get_logger, logs_requests
from headgate.web.api.failures import failure_reply
from headgate.web.api.replies import WHOLE, Delivery, send_reply
from headgate.web.head import Head, head_of

#: Where in the scope the server says how many requests had arrived before and are not yet answered.
AHEAD = "headgate.ahead"
_REMEMBERED = 10_000
_LOOPBACK_NAMES = frozenset({"localhost"})
_GUESSES_A_SECOND = 20.0
_GUESS_BURST = 100.0
_ID_BYTES = 8


class Visit(msgspec.Struct):
    """One request as the guard sees it, and what is learnt about it on the way."""

    head: Head
    request_id: str
    scheme: str
    address: str
    route: str = "unknown"
    status: int = 0
    seconds: float = 0.0
    client_id: ClientId | None = None

    @property
    def origin(self) -> str:
        """Scheme and host as the caller used them: what addresses in answers start with."""
        return f"{self.scheme}://{self.head.host}"


class Buckets:
    """Token buckets by name: so many a second, with a reserve for bursts."""

    __slots__ = ("_burst", "_clock", "_levels", "_rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._levels: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def level(self, name: bytes) -> float:
        """Say how much is left now."""
        known = self._levels.get(name)
        if known is None:
            return self._burst
        left, at = known
        return min(self._burst, left + (self._clock() - at) * self._rate)

    def take(self, name: bytes) -> float:
        """Take one; gives what is left, below zero when there was none to take."""
        left = self.level(name) - 1
        self._levels[name] = (max(left, -1.0), self._clock())
        if len(self._levels) > _REMEMBERED:
            self._levels.popitem(last=False)
        return left


class Limits:
    """How often one token may ask, and how often one address may guess."""

    __slots__ = ("_guesses", "_has_guesses", "_haste", "_rate")

    def __init__(self, requests_a_second: int) -> None:
        self._rate = requests_a_second
        self._haste = Buckets(requests_a_second, requests_a_second * 2.0)
        self._guesses = Buckets(_GUESSES_A_SECOND, _GUESS_BURST)
        self._has_guesses = False

    def refuse_haste(self, token: str) -> None:
        """Count a request of a token.

        Raises:
            RateLimited: there were too many.
        """
        if self._rate and self._haste.take(sha256(token.encode("latin-1")).digest()[:12]) < 0:
            raise RateLimited(data={"retry_after_seconds": 1})

    def note_guess(self, address: str) -> None:
        """Count a token that nobody has."""
        self._has_guesses = True
        self._guesses.take(address.encode())

    def refuse_guesses(self, address: str) -> None:
        """Refuse an address that guesses.

        Raises:
            RateLimited: there were too many guesses.
        """
        if self._has_guesses and self._guesses.level(address.encode()) < 0:
            raise RateLimited(data={"retry_after_seconds": 2})


@dataclass(slots=True)
class Metrics:
    """What is counted: requests by route and status, and those under way."""

    requests: defaultdict[tuple[str, int], int] = field(default_factory=lambda: defaultdict(int))
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    under_way: int = 0

    def text(self) -> str:
        """Write the numbers the way Prometheus reads them."""
        lines = ["# TYPE headgate_requests_total counter"]
        lines += [
            f'headgate_requests_total{{route="{route}",status="{status}"}} {count}'
            for (route, status), count in sorted(self.requests.items())
        ]
        lines.append("# TYPE headgate_request_seconds_sum counter")
        lines += [
            f'headgate_request_seconds_sum{{route="{route}"}} {total:.6f}'
            for route, total in sorted(self.seconds.items())
        ]
        lines += ["# TYPE headgate_requests_under_way gauge", f"headgate_requests_under_way {self.under_way}"]
        return "\n".join(lines) + "\n"


@dataclass(frozen=True, slots=True)
class Doorstep:
    """Whom the guard lets in."""

    #: Host names beside loopback and private addresses, without a port.
    hosts: frozenset[str] = frozenset()
    #: Origins of pages that may call from a browser, beside our own.
    origins: frozenset[str] = frozenset()
    most_at_once: int = 512


class Guard:
    """Wraps the whole application."""

    def __init__(self, app: ASGIApp, doorstep: Doorstep, metrics: Metrics) -> None:
        self._app = app
        self._doorstep = doorstep
        self._metrics = metrics
        self._known_hosts: dict[str, bool] = {}
        # Its own, and not the module's: workers are made by forking, and must not give the same ids.
        self._ids = _random_ids()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or turn it away."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        head = head_of(scope)
        client = scope.get("client")
        visit = scope["headgate.visit"] = Visit(
            head, head.request_id or next(self._ids), scope["scheme"], client[0] if client else ""
        )
        # Taken out of the scope: what writes the answer knows the scope, and the two would keep each other alive.
        sending = Delivery(visit, send, scope.pop(WHOLE, None))
        metrics = self._metrics
        metrics.under_way += 1
        try:
            refusal = self._refusal(visit, scope)
            if refusal is None:
                await self._app(scope, receive, sending)
            else:
                safe = "" if isinstance(refusal, MisdirectedRequest) else visit.origin
                await send_reply(failure_reply(refusal, request_id=visit.request_id, origin=safe), sending)
        finally:
            metrics.under_way -= 1
            self._note(visit)

    def _refusal(self, visit: Visit, scope: Scope) -> HeadgateError | None:
        head = visit.head
        if head.is_doubled:
            return InvalidRequest("A header that must stand alone was sent twice.")
        if not (self._known_hosts.get(head.host) or self._is_ours(head.host)):
            return MisdirectedRequest()
        origin = head.values.get(b"origin")
        if origin is not None and not self._is_welcome(origin.decode("latin-1"), visit.origin):
            return PermissionRefused("Pages of that origin may not call this server.")
        # A request that nothing has begun to work on yet waits too, though it is not under way here.
        most = self._doorstep.most_at_once
        return Overloaded() if self._metrics.under_way > most or scope.get(AHEAD, 0) >= most else None

    def _is_ours(self, host: str) -> bool:
        known = self._known_hosts.get(host)
        if known is None:
            known = is_known_host(host, self._doorstep.hosts)
            if len(self._known_hosts) < _REMEMBERED:
                self._known_hosts[host] = known
        return known

    def _is_welcome(self, origin: str, own: str) -> bool:
        return origin == own or origin in self._doorstep.origins

    def _note(self, visit: Visit) -> None:
        route = visit.route
        self._metrics.requests[route, visit.status] += 1
        self._metrics.seconds[route] += visit.seconds
        if logs_requests():
            get_logger().info(
                "request",
                request_id=visit.request_id,
                route=visit.route,
                status=visit.status,
                duration_ms=round(visit.seconds * 1000, 2),
                client_id=visit.client_id,
            )


def is_known_host(host: str, names: frozenset[str]) -> bool:
    """Say whether a Host header is one this server answers for: its own names, and addresses at home."""
    name = _without_port(host).lower().rstrip(".")
    if name in names or name in _LOOPBACK_NAMES:
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _random_ids() -> Iterator[str]:
    """Give request ids without end; randomness is fetched for many at once, as asking for it takes a while."""
    while True:
        pool = secrets.token_hex(_ID_BYTES * 256)
        for start in range(0, len(pool), _ID_BYTES * 2):
            yield "req_" + pool[start : start + _ID_BYTES * 2]
