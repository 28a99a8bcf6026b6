"""Once a second: let the machines that share a home know how often limits were used here, and the latest time.

A limit then holds over all machines within about a second. A request waits for none of this: each machine counts by itself,
and subtracts what the others have used as soon as it knows. Without other machines there is nothing to do.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import nlargest

from headgate.auth.latest_time import LatestTime
from headgate.auth.limits import TokenBuckets, shared_name
from headgate.store.sharing import MachineSharing
from headgate.tasks import Supervisor, stop

LOOP = "limits shared between machines"
_BETWEEN_SECONDS = 1.0
#: For how many rounds after its last use here a limit is followed: as many as it was used, within these.
_FOLLOWED_LEAST, _FOLLOWED_ROUNDS = 5, 60
#: How many limits are shared in one round, and followed at once. The most used ones are: tokens that do not exist can have
#: any number of names, and none of them counts for much.
_AT_ONCE = 1000
_FOLLOWED_MOST = 10_000


@dataclass(slots=True)
class _Followed:
    """A bucket whose use by other machines is followed."""

    buckets: TokenBuckets
    name: bytes
    #: How often all machines had used it; None until it was first asked for.
    total: int | None = None
    rounds_left: int = 0


class SharedLimits:
    """Counts the use of limits together with other machines."""

    def __init__(self, sharing: MachineSharing, buckets: Mapping[str, TokenBuckets]) -> None:
        self._sharing = sharing
        self._buckets = buckets
        self._followed: dict[bytes, _Followed] = {}
        #: What was used here and is not in the database yet.
        self._uses: Counter[bytes] = Counter()
        for one in buckets.values():
            one.share()

    async def exchange(self) -> None:
        """Add what was used here, and subtract what others used."""
        self._collect()
        uses = self._uses
        if not self._followed:
            return
        totals = await self._sharing.exchange_uses(uses, self._followed.keys())
        self._uses = Counter()
        for key, total in totals.items():
            _subtract_others(self._followed[key], total, uses[key])
        self._followed = {key: one for key, one in self._followed.items() if one.rounds_left > 0}

    def _collect(self) -> None:
        for one in self._followed.values():
            one.rounds_left -= 1
        taken = [
            (count, kind, name)
            for kind, buckets in self._buckets.items()
            for name, count in buckets.taken().items()
        ]
        for count, kind, name in nlargest(_AT_ONCE, taken):
            self._note(count, kind, name)

    def _note(self, count: int, kind: str, name: bytes) -> None:
        key = shared_name(kind, name)
        followed = self._followed.get(key)
        if followed is None:
            if len(self._followed) >= _FOLLOWED_MOST:
                return
            followed = self._followed[key] = _Followed(self._buckets[kind], name)
        followed.rounds_left = max(followed.rounds_left, _FOLLOWED_LEAST, min(count, _FOLLOWED_ROUNDS))
        self._uses[key] += count


def _subtract_others(followed: _Followed, total: int, own: int) -> None:
    before, followed.total = followed.total, total
    if before is None:
        return
    # A row that was removed in between starts again from nothing.
    others = total - own - (before if total >= before else 0)
    if others > 0:
        followed.buckets.take_elsewhere(followed.name, others)


class Rounds:
    """Does a round every second while the program runs."""

    def __init__(
        self,
        sharing: MachineSharing,
        buckets: Mapping[str, TokenBuckets],
        *,
        latest: LatestTime,
        supervisor: Supervisor,
    ) -> None:
        self._sharing = sharing
        self._limits = SharedLimits(sharing, buckets)
        self._latest = latest
        self._supervisor = supervisor
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def round(self) -> None:
        """Exchange what there is to exchange."""
        async with self._turn:
            await self._latest.share()
            await self._limits.exchange()

    def start(self) -> None:
        """Begin with the rounds."""
        self._task = self._supervisor.start(LOOP, self._step, most_seconds=_BETWEEN_SECONDS)

    async def stop(self) -> None:
        """End after the round that is under way."""
        await stop(self._task)
        async with self._turn:
            await self._sharing.close()

    async def _step(self) -> float:
        await asyncio.shield(self.round())
        return _BETWEEN_SECONDS
