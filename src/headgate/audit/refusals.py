"""Refusals in the log: a token that has ended and goes on asking must not fill the disk."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from msgspec.structs import replace

from headgate.audit.journal import Discloser
from headgate.model.disclosure import Disclosure

_HOUR_US = 3600 * 1_000_000
_LOGGED_EACH = 5
_MOST_COUNTED = 1000
#: The token's digest, the address, the code of the refusal.
_Key = tuple[bytes, str, str]


@dataclass(slots=True)
class _Refusals:
    """The refusals of one token at one address, for one reason, in one hour."""

    last: Disclosure
    hour: int
    count: int = 0
    logged: int = 0


class RefusalLog:
    """Logs the first refusals of a token in an hour each, and later ones together whenever their number has doubled.

    They are counted by address and reason: what a token tries elsewhere has entries too.
    """

    __slots__ = ("_discloser", "_known")

    def __init__(self, discloser: Discloser) -> None:
        self._discloser = discloser
        self._known: OrderedDict[_Key, _Refusals] = OrderedDict()

    def note(self, token: bytes, refusal: Disclosure) -> None:
        """Count a refusal of the token with a digest, and log it now or together with others."""
        key, hour = (token, refusal.via, refusal.outcome), refusal.at // _HOUR_US
        known = self._known.pop(key, None)
        if known is not None and known.hour != hour:
            self._log(known)
            known = None
        known = self._known[key] = known or _Refusals(refusal, hour)
        known.last = refusal
        known.count += 1
        if known.count <= _LOGGED_EACH or known.count >= 2 * known.logged:
            self._log(known)
        if len(self._known) > _MOST_COUNTED:
            self._log(self._known.popitem(last=False)[1])

    def log_rest(self) -> None:
        """Log what was counted and not logged yet."""
        for known in self._known.values():
            self._log(known)

    def _log(self, known: _Refusals) -> None:
        count = known.count - known.logged
        known.logged = known.count
        if count:
            self._discloser.write(known.last if count == 1 else replace(known.last, refusals=count))
