"""Daily budgets: how many records a grant may show in a day, counted before an answer leaves.

The count of a grant lies in a small file that every process of the home locks while it counts, or in the database that
several machines share, so that requests that run at the same time, in one process or in several, cannot all pass under
the same rest. At most the answer that crosses the limit is larger than the rest.
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
from headgate.store.budget import BudgetCounter
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

    async def check(self, access: Access) -> None:
        """Refuse a request whose grant has nothing left for the day.

        Raises:
            RateLimited: the records of the day are used up.
        """
        await self.settle(access, 0)

    async def settle(self, access: Access, records: int) -> None:
        """Count the records of an answer that is about to leave.

        Raises:
            RateLimited: the records of the day were used up meanwhile; the answer must not leave.
            StorageUnusable: or one of its kinds: the count cannot be written; the same.
        """
        for grant_id, limit in access.daily_records:
            now = self._clock()
            used = await self._counter.count_records(grant_id, now // DAY_US, records, limit)
            if used is None or used >= limit:
                raise _used_up(limit, now)


class FileCounter:
    """Counts in files of the home, for every process of one machine; implements `store.budget.BudgetCounter`."""

    __slots__ = ("_directory", "_logged")

    def __init__(self, home: Home, logged: Callable[[GrantId, int], Awaitable[int]]) -> None:
        self._directory = home.path / _DIRECTORY
        #: How many records the log has for a grant and a day, where there is no count yet.
        self._logged = logged

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int | None:
        """Count records of a grant for a day, if there is room; gives how many there were before.

        Raises:
            StorageReadOnly: the count cannot be written.
        """
        used = self._count(grant_id, limit, records, day)
        if used is not None:
            return used
        # Looked up without the lock, which other requests of this process would wait for, and with them this one.
        return self._count(grant_id, limit, records, day, await self._logged(grant_id, day))

    def _count(
        self, grant_id: GrantId, limit: int, records: int, day: int, logged: int | None = None
    ) -> int | None:
        """Count records, if there is room; says how many there were before, None if that is not known yet."""
        try:
            handle = self._open(grant_id)
            try:
                lock(handle, wait=True)
                counted = _read(handle, day)
                used = logged if counted is None else counted
                if used is not None and used < limit and records:
                    write_at(handle, _LINE % (day, used + records), 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageReadOnly("The records of a grant cannot be counted.") from error
        return used

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
