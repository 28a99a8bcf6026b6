"""Once a second: let the machines that share a home know how often limits were used here, and the latest time.

A limit then holds over all machines within about a second. A request waits for none of this: each machine counts by itself,
and subtracts what the others have used as soon as it knows. Without other machines there is nothing to do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from headgate.auth.latest_time import LatestTime
from headgate.auth.limits import TokenBuckets, shared_name
from headgate.model.instants import DAY_US
from headgate.store.sharing import Sharing

_BETWEEN_SECONDS = 1.0
#: How long what other machines use is followed after the last use here.
_FOLLOWED_ROUNDS = 60


@dataclass(slots=True)
class _Followed:
    """A bucket whose use by other machines is followed."""

    buckets: TokenBuckets
    name: bytes
    #: How often all machines had used it; None until it was first asked for.
    total: int | None = None
    rounds_left: int = _FOLLOWED_ROUNDS


class SharedLimits:
    """Counts the use of limits together with other machines."""

    def __init__(self, sharing: Sharing, buckets: Mapping[str, TokenBuckets]) -> None:
        self._sharing = sharing
        self._buckets = buckets
        self._followed: dict[bytes, _Followed] = {}
        #: What was used here and is not in the database yet.
        self._uses: Counter[bytes] = Counter()
        for one in buckets.values():
            one.share()

    async def exchange(self, day: int) -> None:
        """Add what was used here, and subtract what others used."""
        self._collect()
        uses = self._uses
        if not self._followed:
            return
        totals = await self._sharing.exchange_uses(uses, self._followed.keys(), day=day)
        self._uses = Counter()
        for key, total in totals.items():
            _subtract_others(self._followed[key], total, uses[key])
        self._followed = {key: one for key, one in self._followed.items() if one.rounds_left > 0}

    def _collect(self) -> None:
        for one in self._followed.values():
            one.rounds_left -= 1
        for kind, buckets in self._buckets.items():
            for name, count in buckets.taken().items():
                key = shared_name(kind, name)
                followed = self._followed.setdefault(key, _Followed(buckets, name))
                followed.rounds_left = _FOLLOWED_ROUNDS
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
        sharing: Sharing,
        buckets: Mapping[str, TokenBuckets],
        *,
        latest: LatestTime,
        clock: Callable[[], int],
        on_trouble: Callable[[Exception], None],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sharing = sharing
        self._limits = SharedLimits(sharing, buckets)
        self._latest = latest
        self._clock = clock
        self._on_trouble = on_trouble
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    async def round(self) -> None:
        """Exchange what there is to exchange."""
        async with self._turn:
            await self._latest.share()
            await self._limits.exchange(self._clock() // DAY_US)
            await self._sharing.check_replica()

    def start(self) -> None:
        """Begin with the rounds."""
        self._task = asyncio.create_task(self._keep_going(), name="headgate-rounds")

    async def stop(self) -> None:
        """End after the round that is under way."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        async with self._turn:
            await self._sharing.close()

    async def _keep_going(self) -> None:
        is_well = True
        while True:
            try:
                await asyncio.shield(self.round())
                is_well = True
            except Exception as trouble:  # noqa: BLE001 - limits hold on this machine, and a later round tries again
                if is_well:
                    self._on_trouble(trouble)
                is_well = False
            await self._sleep(_BETWEEN_SECONDS)
