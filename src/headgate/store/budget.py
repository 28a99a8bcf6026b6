"""What counts records for daily limits where several machines share a home."""

from __future__ import annotations

from typing import Protocol

from headgate.model.ids import GrantId


class BudgetCounter(Protocol):
    """Counts in one place for every process."""

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int | None:
        """Count records of a grant for a day; gives how many there were before.

        None: the limit was reached, and nothing was counted.
        """
        ...
