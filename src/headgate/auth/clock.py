"""The clock, and the latest time that any process of a home has seen: what has expired stays expired when it goes back.

The latest time lies in eight bytes of a file that every process of the home maps: reading and raising it takes no system
call, other processes see it at once, and it is there after a restart. Machines that share a home know the latest of all:
each admission asks the database for it.

A clock can be wrong for a moment, years ahead after a battery has died. A reading that is more than a day ahead counts for
its moment, and is noted only if the clock has gone on to it for an hour without a jump: one wrong reading must not end
every grant for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import mmap
import os
import struct
import time
from collections.abc import Callable

from headgate.errors import ConfigInvalid
from headgate.home import Home
from headgate.model.instants import iso
from headgate.store.ledger.ledger import Ledger
from headgate.system import open_private, write_at
from headgate.tasks import Supervisor

FILE = "latest-time"
_SHARED_EVERY_SECONDS = 1.0
_FORM = struct.Struct("<q")
#: A clock that is corrected goes back by less than this.
_CORRECTION_US = 3600 * 1_000_000
#: A reading that is further ahead of what was noted may be a mistake.
_MOST_AHEAD_US = 24 * 3600 * 1_000_000
_CERTAIN_AFTER_SECONDS = 3600


def now() -> int:
    """Read the clock: microseconds since 1970."""
    return time.time_ns() // 1000


class LatestTime:
    """The latest time seen, in microseconds since 1970; of this process alone if the home cannot be written."""

    __slots__ = ("_began", "_ledger", "_noted", "_pages", "_path", "_steady")

    def __init__(
        self, home: Home, ledger: Ledger | None = None, *, steady: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = home.path / FILE
        #: Through which other machines know it; None: there are none.
        self._ledger = None if ledger is None or ledger.latest_time is None else ledger
        #: Seconds that pass whatever the clock shows.
        self._steady = steady
        #: A reading after which the clock went on without a jump, and when it was taken by the steady seconds.
        self._began: tuple[int, float] | None = None
        self._pages: mmap.mmap | bytearray = bytearray(_FORM.size)
        with contextlib.suppress(OSError):
            self._pages = _map(str(self._path))
        self._noted = 0

    def raise_to(self, now: int) -> int:
        """Note a time, if it is certain; returns it, or the latest that was noted if that is later."""
        (shared,) = _FORM.unpack_from(self._pages)
        others = 0 if self._ledger is None else self._ledger.latest_time or 0
        noted, seconds = max(shared, self._noted, others), self._went_on(now)
        if now > noted and (not noted or now - noted <= _MOST_AHEAD_US or seconds >= _CERTAIN_AFTER_SECONDS):
            noted = now
        if noted != shared:
            _FORM.pack_into(self._pages, 0, noted)
        self._noted = noted
        return max(now, noted)

    def certain(self, now: int) -> int:
        """Return the latest time that is certain: what cannot be undone is done by it."""
        self.raise_to(now)
        return self._noted

    def _went_on(self, now: int) -> float:
        """Return for how many seconds the clock has gone on without a jump, as far as this process knows."""
        steady = self._steady()
        at, since = self._began or (now, steady)
        if abs(now - at - (steady - since) * 1_000_000) > _CORRECTION_US:
            at, since = now, steady
        self._began = at, since
        return steady - since

    async def share(self) -> None:
        """Let other machines know the latest time."""
        if self._ledger is not None and self._noted > (self._ledger.latest_time or 0):
            await self._ledger.raise_latest_time(self._noted)

    def start_sharing(self, supervisor: Supervisor) -> asyncio.Task[None] | None:
        """Let other machines, if there are any, know the latest time every second."""

        async def step() -> float:
            await self.share()
            return _SHARED_EVERY_SECONDS

        if self._ledger is None:
            return None
        return supervisor.start(
            "latest time shared between machines", step, most_seconds=_SHARED_EVERY_SECONDS
        )

    async def share_end(self, end: int) -> None:
        """Let other machines know that an end has passed, before this one refuses what ended by it."""
        if self._ledger is not None and (self._ledger.latest_time or 0) < end:
            await self.share()

    def refuse_clock_behind(self, now: int) -> None:
        """Refuse to compute an end from a clock that is behind: it would have passed already."""
        latest = self.raise_to(now)
        if latest - now > _CORRECTION_US:
            raise ConfigInvalid(
                f"The clock is at {iso(now)}, but was at {iso(latest)} before: what expired by then stays expired.",
                hint=f"Set the clock; if the later time was wrong, remove {self._path}{self._elsewhere} while nothing runs.",
            )

    @property
    def _elsewhere(self) -> str:
        """The other places that hold the time, for the error's hint."""
        return (
            "" if self._ledger is None else ", on every machine, and the row latest_time of the table meta,"
        )


def _map(path: str) -> mmap.mmap:
    handle = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        if os.fstat(handle).st_size < _FORM.size:
            # Written, not truncated to size: a page of a sparse file may find no space on the disk later.
            write_at(handle, bytes(_FORM.size), 0)
        return mmap.mmap(handle, _FORM.size)
    finally:
        os.close(handle)
