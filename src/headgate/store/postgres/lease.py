"""Leases: work that one process alone must do, whichever machine it runs on."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL

#: How long a process that has gone away keeps others from the work.
LEASE_US = 60_000_000


class Lease:
    """The right to do one kind of work for one home, for a while."""

    def __init__(self, place: HomePlace, name: str, now: Callable[[], int]) -> None:
        self._database = PostgresDatabase(place)
        self._name = name
        self._now = now
        self._holder = secrets.token_hex(8)

    def hold(self) -> bool:
        """Take or renew the lease; returns whether it is held."""
        now = self._now()
        with translated():
            values = (self._name, self._holder, now + LEASE_US, now)
            return self._database.one(SQL["take_lease"], values) is not None

    async def hold_soon(self) -> bool:
        """Take or renew the lease without blocking the event loop; returns whether it is held.

        The connection is closed in between, because it is asked for seldom.
        """

        def hold() -> bool:
            try:
                return self.hold()
            finally:
                self._database.finish()

        return await asyncio.to_thread(hold)

    def release(self) -> None:
        """Let another process have it, and close the connection."""
        with translated():
            self._database.run(SQL["end_lease"], (self._name, self._holder))
        self._database.finish()
