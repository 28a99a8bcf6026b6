"""What counts records for daily limits where several machines share a home."""

from __future__ import annotations

from typing import Protocol

from headgate.model.ids import GrantId


class BudgetCounter(Protocol):
    """Counts in one place for every process."""

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int:
        """Count as many of some records of a grant for a day as its limit leaves; a negative number is given back.

        Returns how many were left before.
        """
        ...
