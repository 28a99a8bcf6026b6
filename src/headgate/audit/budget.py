"""Daily budgets: how many records a grant may show in a day, counted before an answer leaves.

The count of a grant lies in a small file that every process of the home locks while it counts, or in the database that
several machines share, so that requests that run at the same time, in one process or in several, cannot all pass under
the same rest. An answer shows as many records as were left and counted for it, and no more.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from hashlib import sha256
from pathlib import Path

from headgate.errors import RateLimited, StorageReadOnly
from headgate.home import Home
from headgate.model.grant import Access
from headgate.model.ids import GrantId
from headgate.model.instants import DAY_US, iso
from headgate.store.ledger.ledger import BudgetCounter
from headgate.system import lock, open_private, read_at, write_at

_DIRECTORY = "budgets"
#: Day and count, with as many digits as they can have: a count is written over the one before it.
_LINE = b"%010d %019d\n"
_LINE_BYTES = 31


class DailyBudgets:
    """Refuses what goes beyond the daily limits of grants; for grants without one there is nothing to count."""

    __slots__ = ("_clock", "_counter")

    def __init__(self, counter: BudgetCounter, *, clock: Callable[[], int]) -> None:
        self._counter = counter
        self._clock = clock

    async def left(self, access: Access) -> int:
        """Return how many records a request may show at most; for an access with a limit.

        Raises:
            RateLimited: the records of the day are used up.
        """
        now = self._clock()
        remaining = [
            (await self._counter.count_records(grant_id, now // DAY_US, 0, limit), limit)
            for grant_id, limit in access.daily_records
        ]
        left, limit = min(remaining)
        if left <= 0:
            raise _used_up(limit, now)
        return left

    async def take(self, access: Access, records: int) -> int:
        """Count the records of an answer that is about to leave, or as many of them as are left; returns how many.

        Raises:
            RateLimited: the records of the day were used up meanwhile; the answer must not leave.
            StorageUnusable: or one of its kinds: the count cannot be written; the same.
        """
        now, fit = self._clock(), records
        counted: list[tuple[GrantId, int, int]] = []
        for grant_id, limit in access.daily_records:
            fit = min(fit, await self._counter.count_records(grant_id, now // DAY_US, fit, limit))
            counted.append((grant_id, limit, fit))
        for grant_id, limit, taken in counted:
            if taken > fit:
                # Another grant of the package had less left.
                await self._counter.count_records(grant_id, now // DAY_US, fit - taken, limit)
        if records and not fit:
            raise _used_up(min(limit for _, limit in access.daily_records), now)
        return fit


class FileCounter:
    """Counts in files of the home, for every process of one machine; implements `store.ledger.BudgetCounter`."""

    __slots__ = ("_directory", "_logged")

    def __init__(self, home: Home, logged: Callable[[GrantId, int], Awaitable[int]]) -> None:
        self._directory = home.path / _DIRECTORY
        #: How many records the log has for a grant and a day, where there is no count yet.
        self._logged = logged

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int:
        """Count as many of some records of a grant for a day as are left; returns how many were left before.

        Raises:
            StorageReadOnly: the count cannot be written.
        """
        left = self._count(grant_id, limit, records, day)
        if left is not None:
            return left
        # Looked up without the lock, which other requests of this process would wait for, and with them this one.
        left = self._count(grant_id, limit, records, day, await self._logged(grant_id, day))
        assert left is not None
        return left

    def _count(
        self, grant_id: GrantId, limit: int, records: int, day: int, logged: int | None = None
    ) -> int | None:
        """Count records, as many as are left; returns how many were left before, None if that is not known yet."""
        try:
            handle = self._open(grant_id)
            try:
                lock(handle, wait=True)
                counted = _read(handle, day)
                used = logged if counted is None else counted
                left = None if used is None else max(limit - used, 0)
                if used is not None and left is not None and (counts := min(records, left)):
                    write_at(handle, _LINE % (day, used + counts), 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageReadOnly("The records of a grant cannot be counted.") from error
        return left

    def _open(self, grant_id: GrantId) -> int:
        path = self._directory / sha256(grant_id.encode()).hexdigest()[:32]
        flags = os.O_RDWR | os.O_CREAT
        try:
            return open_private(path, flags)
        except FileNotFoundError:
            Path(self._directory).mkdir(mode=0o700, exist_ok=True)
            return open_private(path, flags)


def _read(handle: int, day: int) -> int | None:
    """Read the count of a day; None if there is only one of another day, or none."""
    parts = read_at(handle, _LINE_BYTES, 0).split()
    is_today = len(parts) == 2 and all(map(bytes.isdigit, parts)) and int(parts[0]) == day  # noqa: PLR2004 - day and count
    return int(parts[1]) if is_today else None


def _used_up(limit: int, now: int) -> RateLimited:
    day, into = divmod(now, DAY_US)
    return RateLimited(
        f"The {limit} records that this grant allows in a day are used up; "
        f"the next day begins at {iso((day + 1) * DAY_US)}.",
        data={"retry_after_seconds": (DAY_US - into) // 1_000_000 + 1},
    )
