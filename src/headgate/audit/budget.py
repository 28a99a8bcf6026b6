"""Daily budgets: how many records a grant may show in a day, counted before an answer leaves.

The count of a grant lies in a small file that every process of the home locks while it counts, so that requests that
run at the same time, in one process or in several, cannot all pass under the same rest. At most the answer that
crosses the limit is larger than the rest.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from headgate.errors import RateLimited, StorageReadOnly
from headgate.home import Home
from headgate.model.grant import Access
from headgate.model.ids import GrantId
from headgate.model.instants import DAY_US, iso
from headgate.system import lock, open_private, read_at, write_at

_DIRECTORY = "budgets"
#: Day and count, with as many digits as they can have: a count is written over the one before it.
_LINE = b"%010d %019d\n"
_LINE_BYTES = 31


class DailyBudgets:
    """Counts the records shown under grants that have a daily limit."""

    __slots__ = ("_clock", "_directory", "_logged")

    def __init__(
        self, home: Home, *, clock: Callable[[], int], logged: Callable[[GrantId, int], int]
    ) -> None:
        self._directory = home.path / _DIRECTORY
        self._clock = clock
        #: How many records the log has for a grant and a day, where there is no count yet.
        self._logged = logged

    def check(self, access: Access) -> None:
        """Refuse a request whose grant has nothing left for the day.

        Raises:
            RateLimited: the records of the day are used up.
        """
        self.settle(access, 0)

    def settle(self, access: Access, records: int) -> None:
        """Count the records of an answer that is about to leave.

        Raises:
            RateLimited: the records of the day were used up meanwhile; the answer must not leave.
            StorageReadOnly: the count cannot be written; the same.
        """
        for grant_id, limit in access.daily_records:
            self._count(grant_id, limit, records)

    def _count(self, grant_id: GrantId, limit: int, records: int) -> None:
        now = self._clock()
        day = now // DAY_US
        try:
            handle = self._open(grant_id)
            try:
                lock(handle, wait=True)
                counted = _read(handle, day)
                used = self._logged(grant_id, day) if counted is None else counted
                if used < limit and records:
                    write_at(handle, _LINE % (day, used + records), 0)
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageReadOnly("The records of a grant cannot be counted.") from error
        if used >= limit:
            raise _used_up(limit, now)

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
