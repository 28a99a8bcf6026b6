"""How often one token may ask, and how often one network address may send tokens that do not exist.

Requests are counted by each process for itself. Attempts to sign in and to register are counted in the ledger, for all
processes and machines of a home.
"""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

import msgspec

from headgate.errors import RateLimited, StorageUnusable
from headgate.store.ledger.oauth import OAuthRows, OAuthStore

_MAX_BUCKETS = 10_000
_FAILED_TOKENS_A_SECOND = 20.0
_FAILED_TOKEN_BURST = 100.0
_WAIT_AFTER_FAILED_TOKENS_SECONDS = 2
_ANONYMOUS_A_SECOND = 20.0
_ANONYMOUS_BURST = 200.0
_PREFIX_CHARS = 12
#: The kind of the rows in which attempts are counted.
_ATTEMPTS = "attempts"
_SECOND_US = 1_000_000
_CLOCKS_DIFFER_US = 300 * _SECOND_US
_ROW_NAME_BYTES = 16


class TokenBuckets:
    """Token buckets by name: a rate a second, with a reserve for bursts."""

    __slots__ = ("_burst", "_clock", "_levels", "_rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._levels: OrderedDict[bytes, tuple[float, float]] = OrderedDict()

    def level(self, name: bytes) -> float:
        """Compute how much a bucket holds now."""
        known = self._levels.get(name)
        if known is None:
            return self._burst
        level, at = known
        return min(self._burst, level + (self._clock() - at) * self._rate)

    def take(self, name: bytes) -> bool:
        """Take one from a bucket; False when it held none, and then nothing is taken."""
        level = self.level(name)
        can_take = level >= 1
        self._levels[name] = (level - 1 if can_take else level, self._clock())
        # The first to be forgotten is the one that was not used for longest.
        self._levels.move_to_end(name)
        if len(self._levels) > _MAX_BUCKETS:
            self._levels.popitem(last=False)
        return can_take


class RequestLimits:
    """The limits that every address with a token shares."""

    __slots__ = ("_failed_tokens", "_rate", "_requests")

    def __init__(self, requests_a_second: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate = requests_a_second
        self._requests = TokenBuckets(requests_a_second, requests_a_second * 2.0, clock)
        self._failed_tokens = TokenBuckets(_FAILED_TOKENS_A_SECOND, _FAILED_TOKEN_BURST, clock)

    def check_rate(self, token: str) -> None:
        if self._rate and not self._requests.take(sha256(token.encode("latin-1")).digest()[:12]):
            raise RateLimited(data={"retry_after_seconds": 1})

    def count_failed_token(self, client_address: str, token: str = "") -> None:
        """Count a token or password that does not exist, by address and by the beginning of the token.

        Only those who send such tokens are slowed down: a valid token is admitted before this is called.
        """
        names = [f"address {client_address}", *([f"token {token[:_PREFIX_CHARS]}"] if token else [])]
        taken = [self._failed_tokens.take(name.encode()) for name in names]
        if not all(taken):
            raise RateLimited(data={"retry_after_seconds": _WAIT_AFTER_FAILED_TOKENS_SECONDS})


class _StoredLevel(msgspec.Struct):
    level: float
    #: Microseconds since 1970.
    at: int


class StoredAttempts:
    """Counts attempts in rows of the ledger, which every process and machine of a home writes to."""

    __slots__ = ("_certain", "_clock", "_store")

    def __init__(self, store: OAuthStore, clock: Callable[[], int], *, certain: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._certain = certain

    async def take(self, name: bytes, *, rate: float, burst: float) -> bool:
        """Take one from a bucket; False when it holds none."""
        now = self._clock()

        def work(rows: OAuthRows) -> bool:
            rows.remove_ended(self._certain())
            document = rows.get(_ATTEMPTS, name)
            known = (
                _StoredLevel(burst, now)
                if document is None
                else msgspec.json.decode(document, type=_StoredLevel)
            )
            # A clock that was set back gives nothing, and counts on from its new time. One that is behind those of
            # other machines counts from theirs: else what lies between them would be given at each change.
            at = known.at if now < known.at <= now + _CLOCKS_DIFFER_US else now
            level = min(burst, known.level + max(at - known.at, 0) / _SECOND_US * rate)
            can_take = level >= 1
            left = _StoredLevel(level - can_take, at)
            full_at = at + int((burst - left.level) / rate * _SECOND_US)
            rows.put(_ATTEMPTS, name, msgspec.json.encode(left), expires_at=full_at)
            return can_take

        try:
            return await self._store.change(work)
        except StorageUnusable:
            # The owner signs in to a home on a full disk too; each process then counts for itself.
            return True


class CountedAttempts:
    """Buckets by name for what is rare: every attempt is counted in one place for all processes of a home."""

    __slots__ = ("_burst", "_kind", "_own", "_rate", "_shared")

    def __init__(
        self, kind: str, rate: float, burst: float, clock: Callable[[], float], shared: StoredAttempts | None
    ) -> None:
        self._kind = kind
        self._rate = rate
        self._burst = burst
        self._own = TokenBuckets(rate, burst, clock)
        self._shared = shared

    async def take(self, name: bytes) -> bool:
        """Take one from a bucket; False when it held none."""
        # Its own first: one process that is asked without end does not burden the place where all count.
        if not self._own.take(name):
            return False
        if self._shared is None:
            return True
        return await self._shared.take(_row_name(self._kind, name), rate=self._rate, burst=self._burst)


def _row_name(kind: str, name: bytes) -> bytes:
    """Name a bucket's row by a digest, because names are addresses and browsers."""
    return sha256(f"{kind}\n".encode() + name).digest()[:_ROW_NAME_BYTES]


_SIGN_IN_BURST = 5.0
_SIGN_INS_A_SECOND = 1 / 60
_ALL_SIGN_INS_BURST = 20.0
_ALL_SIGN_INS_A_SECOND = 1 / 10
_PASSKEY_BURST = 10.0
_PASSKEYS_A_SECOND = 1 / 6
_IPV6_NETWORK_BITS = 64


class SignInLimits:
    """How often a password may be tried: by network, and in total.

    A browser that the owner signed in with before has a limit to itself, and so has this machine: strangers who use
    up the total do not keep the owner out. Passkeys cannot be guessed, and have a limit by network alone.
    """

    __slots__ = ("_passkeys", "_sources", "_total")

    def __init__(self, clock: Callable[[], float] = monotonic, shared: StoredAttempts | None = None) -> None:
        self._sources = CountedAttempts("sign-in", _SIGN_INS_A_SECOND, _SIGN_IN_BURST, clock, shared)
        self._total = CountedAttempts(
            "any sign-in", _ALL_SIGN_INS_A_SECOND, _ALL_SIGN_INS_BURST, clock, shared
        )
        self._passkeys = CountedAttempts("passkey", _PASSKEYS_A_SECOND, _PASSKEY_BURST, clock, shared)

    async def check_passkey(self, client_address: str) -> None:
        """Count an attempt with a passkey."""
        if not await self._passkeys.take(_network(client_address)[0].encode()):
            raise RateLimited("Too many passkeys were tried.", data={"retry_after_seconds": 6})

    async def check(self, client_address: str, known_browser: bytes | None) -> None:
        """Count an attempt, before the password is looked at."""
        if known_browser is not None:
            is_allowed = await self._sources.take(b"browser " + known_browser)
        else:
            network, is_this_machine = _network(client_address)
            is_allowed = await self._sources.take(b"network " + network.encode())
            is_allowed = is_allowed and (is_this_machine or await self._total.take(b""))
        if not is_allowed:
            raise RateLimited(
                "Too many passwords were tried.",
                hint="Wait a minute, or run 'headgate owner reset' on the server.",
                data={"retry_after_seconds": 60},
            )


class RegistrationLimits:
    """How often clients may register themselves, and devices may ask for a code, which both leave rows behind.

    Other requests to the authorization server need no token either, and have a limit by address.
    """

    __slots__ = ("_by_address", "_overall", "_requests")

    def __init__(self, clock: Callable[[], float] = monotonic, shared: StoredAttempts | None = None) -> None:
        self._by_address = CountedAttempts("registration", 16 / 60, 16, clock, shared)
        self._overall = CountedAttempts("any registration", 120 / 600, 120, clock, shared)
        self._requests = TokenBuckets(_ANONYMOUS_A_SECOND, _ANONYMOUS_BURST, clock)

    def check_request(self, client_address: str) -> None:
        """Count a request that needs no token."""
        if not self._requests.take(client_address.encode()):
            raise RateLimited(data={"retry_after_seconds": 1})

    async def check(self, client_address: str) -> None:
        """Count one of an address."""
        is_allowed = await self._by_address.take(client_address.encode()) and await self._overall.take(b"")
        if not is_allowed:
            raise RateLimited(data={"retry_after_seconds": 60})


@dataclass(frozen=True, slots=True)
class ServerLimits:
    requests: RequestLimits
    sign_ins: SignInLimits
    registrations: RegistrationLimits


def limits_of(requests_a_second: int, clock: Callable[[], float], shared: StoredAttempts) -> ServerLimits:
    """Make the limits of a server; those of attempts hold over all processes and machines."""
    return ServerLimits(
        RequestLimits(requests_a_second, clock),
        SignInLimits(clock, shared),
        RegistrationLimits(clock, shared),
    )


def _network(client_address: str) -> tuple[str, bool]:
    """Name the network of an address, and say whether it is this machine."""
    try:
        address = ipaddress.ip_address(client_address)
    except ValueError:
        return client_address, False
    if address.version == 6:  # noqa: PLR2004 - the version of IPv6
        return str(ipaddress.ip_network((address, _IPV6_NETWORK_BITS), strict=False)), address.is_loopback
    return str(address), address.is_loopback
