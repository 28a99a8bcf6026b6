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

    def hold_once(self) -> bool:
        """Take or renew the lease, and close the connection, because it is asked for seldom."""
        try:
            return self.hold()
        finally:
            self._database.finish()

    async def hold_soon(self) -> bool:
        """Do the same without blocking the event loop."""
        return await asyncio.to_thread(self.hold_once)

    def release(self) -> None:
        """Let another process have it, and close the connection."""
        with translated():
            self._database.run(SQL["end_lease"], (self._name, self._holder))
        self._database.finish()


class LeasedTurn:
    """Whether it is the turn of this process to do work that is done little by little; asks the database seldom.

    Implements `changes.writer.IdleTurn`.
    """

    #: When a process that has no turn looks again, and so how late one takes over.
    again_seconds = LEASE_US / 1_000_000

    def __init__(self, lease: Lease, now: Callable[[], int]) -> None:
        self._lease = lease
        self._now = now
        self._renew_at: int | None = None

    def is_held(self) -> bool:
        now = self._now()
        if self._renew_at is None or not self._renew_at - LEASE_US <= now < self._renew_at:
            has_lease = self._lease.hold_once()
            self._renew_at = now + LEASE_US // 2 if has_lease else None
        return self._renew_at is not None

    def end(self) -> None:
        if self._renew_at is not None:
            self._lease.release()
            self._renew_at = None
