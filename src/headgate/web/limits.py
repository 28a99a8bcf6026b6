"""How often one token may ask, and how often one network address may send tokens that do not exist."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from time import monotonic

from headgate.errors import RateLimited

_MAX_BUCKETS = 10_000
_FAILED_TOKENS_A_SECOND = 20.0
_FAILED_TOKEN_BURST = 100.0
_WAIT_AFTER_FAILED_TOKENS_SECONDS = 2


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
        if len(self._levels) > _MAX_BUCKETS:
            self._levels.popitem(last=False)
        return can_take


class RequestLimits:
    """The limits that every address with a token shares."""

    __slots__ = ("_failed_tokens", "_has_failed_tokens", "_rate", "_requests")

    def __init__(self, requests_a_second: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate = requests_a_second
        self._requests = TokenBuckets(requests_a_second, requests_a_second * 2.0, clock)
        self._failed_tokens = TokenBuckets(_FAILED_TOKENS_A_SECOND, _FAILED_TOKEN_BURST, clock)
        self._has_failed_tokens = False

    def check_rate(self, token: str) -> None:
        """Count a request of a token.

        Raises:
            RateLimited: there were too many.
        """
        if self._rate and not self._requests.take(sha256(token.encode("latin-1")).digest()[:12]):
            raise RateLimited(data={"retry_after_seconds": 1})

    def record_failed_token(self, client_address: str) -> None:
        """Count a token or password that does not exist."""
        self._has_failed_tokens = True
        self._failed_tokens.take(client_address.encode())

    def check_failed_tokens(self, client_address: str) -> None:
        """Refuse an address that has guessed too often.

        Raises:
            RateLimited: there were too many guesses.
        """
        if self._has_failed_tokens and self._failed_tokens.level(client_address.encode()) < 1:
            raise RateLimited(data={"retry_after_seconds": _WAIT_AFTER_FAILED_TOKENS_SECONDS})
