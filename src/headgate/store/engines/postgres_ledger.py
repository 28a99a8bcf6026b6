"""The ledger in PostgreSQL: look-ups in threads that own a connection, changes one after the other on another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import TypeVar

from headgate.errors import IntegrityBroken
from headgate.model.ids import GrantId
from headgate.model.ledger import Holder
from headgate.store.engines.postgres_readers import ReaderThreads
from headgate.store.ledger.ledger import Ledger
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.sql.database import Database

_T = TypeVar("_T")


class _PostgresConnections:
    """Implements `ledger.LedgerConnections`."""

    def __init__(self, place: HomePlace, connections: int) -> None:
        self._readers = ReaderThreads(place, "ledger", connections)
        self._database = PostgresDatabase(place)
        self._latest_time = place.latest_time
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="headgate-ledger-writer")

    async def version(self) -> int:
        return await self.look_up(self.version_in)

    def version_in(self, database: Database) -> int:
        """Return the version, and note the latest time, which comes with it."""
        row = database.one(SQL["epoch"])
        if row is None or row[0] is None:
            raise IntegrityBroken("The store's tables are damaged.")
        epoch, latest_time = row
        self._latest_time.note(latest_time)
        return epoch

    async def look_up(self, work: Callable[[Database], _T]) -> _T:
        return await self._readers.read(lambda reader: reader.at_once(work))

    async def scan(self, work: Callable[[Database], _T]) -> _T:
        return await self._readers.read(lambda reader: reader.read(lambda database, _: work(database), inf))

    async def change(self, work: Callable[[Database], _T], *, is_small: bool = True) -> _T:
        del is_small  # the server has the disk
        return await self._write(SQL["raise_ledger_version"], work)

    async def log(self, work: Callable[[Database], _T]) -> _T:
        return await self._write(SQL["lock_chain"], work)

    async def _write(self, first: str, work: Callable[[Database], _T]) -> _T:
        """Do some work in one transaction whose first statement keeps others of its kind waiting."""
        database = self._database

        def do() -> _T:
            with translated(), database.changing(first):
                return work(database)

        # A caller that goes away leaves its work to be done whole.
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._writer, do))

    async def close(self) -> None:
        await asyncio.to_thread(self._readers.close)
        await asyncio.to_thread(self._writer.shutdown)
        self._database.finish()


class PostgresLedger(Ledger):
    """The ledger of one home of a database."""

    def __init__(self, place: HomePlace, *, connections: int = 2) -> None:
        connected = _PostgresConnections(place, connections)
        super().__init__(connected)
        self._version_in = connected.version_in
        self._latest_time = place.latest_time

    @property
    def latest_time(self) -> int:
        """The latest time that a machine has seen, as far as this one knows; every admission brings it up to date."""
        return self._latest_time.value

    async def raise_latest_time(self, at: int) -> None:
        """Let every machine know a time, from its next admission on."""
        await self.connections.look_up(lambda database: database.run(SQL["raise_latest_time"], (at,)))
        self._latest_time.note(at)

    async def holder(self, digest: bytes) -> Holder | None:
        """Look up a token, its grants and the version they have, in one turn of a thread."""

        def work(database: Database) -> Holder | None:
            # Read first: what another process writes meanwhile then counts as newer than what is found.
            return self.holder_in(database, digest, self._version_in(database))

        return await self.connections.look_up(work)

    async def count_records(self, grant_id: GrantId, day: int, records: int, limit: int) -> int:
        """Count as many of some records of a grant for a day as are left; returns how many were left before."""

        def work(database: Database) -> int:
            database.run(SQL["begin_budget"], (grant_id, day))
            while True:
                left = max(limit - database.value(SQL["counted_budget"], (grant_id, day)), 0)
                counts = min(records, left)
                # No row: another machine has counted in between.
                if not counts or database.all(SQL["count_budget"], (grant_id, day, counts, limit)):
                    return left

        return await self.connections.look_up(work)


def has_log(place: HomePlace) -> bool:
    """Return whether the log of a home has any entry."""
    database = PostgresDatabase(place)
    try:
        with translated():
            return database.one(SQL["chain_head"]) is not None
    finally:
        database.finish()
