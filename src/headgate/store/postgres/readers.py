"""The connections that read: some for short reads, one for columns, one for searches, each with its thread.

A thread owns its connection, so that no request waits for one while it holds another, and a transaction is never
shared. When all threads are busy reads wait in their queues, which are bounded.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

import psycopg

from headgate import memory
from headgate.errors import HeadgateError, StorageUnusable
from headgate.model.plan import RecordPlan
from headgate.model.record import Record
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.relational.catalog import Catalog, current
from headgate.store.relational.columns.cache import ColumnCache
from headgate.store.relational.database import Database
from headgate.store.relational.read.pages import find, finder
from headgate.store.relational.read.rows import FoundColumns
from headgate.store.relational.store import READ_BYTES

_T = TypeVar("_T")
#: How many reads may wait for a thread; one more is refused.
WAITING_MOST = 512


class PostgresReader:
    """A connection for reading, with the catalog it last saw."""

    def __init__(self, place: HomePlace) -> None:
        self.database = PostgresDatabase(place)
        self.columns = ColumnCache()
        self._catalog = Catalog()

    def read(self, work: Callable[[Database, Catalog], _T], seconds: float | None = None) -> _T:
        """Do one read in one state of the store."""
        limit = {} if seconds is None else {"seconds": seconds}
        with translated(), self.database.reading(**limit):
            self._catalog = current(self.database, self._catalog)
            return work(self.database, self._catalog)

    def at_once(self, work: Callable[[Database], _T]) -> _T:
        """Run statements that need not see the same state; again if the connection was lost since the last ones."""
        with translated():
            try:
                return work(self.database)
            except psycopg.OperationalError:
                if not self.database.is_lost:
                    raise
            return work(self.database)

    def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record by one statement, which also gives the number of the catalog that it saw.

        If it is not the one the statement was made for, or nothing was found, the read is done in a transaction.
        """
        if not plan.expand:
            try:
                with translated():
                    found = self._find_at_once(plan)
            except HeadgateError:
                # An old catalog may be the reason. Otherwise the second attempt meets the failure again.
                found = ()
            if found:
                return found
        return self.read(lambda database, catalog: find(database, catalog, plan))

    def _find_at_once(self, plan: RecordPlan) -> tuple[Record, ...]:
        statement = finder(self.database, self._catalog, plan) if self._catalog.number else None
        if statement is None:
            return ()
        rows = self.database.all(
            SQL["with_catalog_number"].format(statement=statement.sql), statement.values(plan.record_id)
        )
        if not rows or rows[0][-1] != self._catalog.number:
            return ()
        return tuple(statement.make(cast("FoundColumns", row[:-1])) for row in rows)


class ReaderThreads:
    """Threads that each own a reader."""

    def __init__(self, place: HomePlace, name: str, count: int) -> None:
        self._place = place
        self._own = threading.local()
        self._made: list[PostgresReader] = []
        self._waiting = 0
        self._executor = ThreadPoolExecutor(count, thread_name_prefix=f"headgate-{name}")

    async def read(self, work: Callable[[PostgresReader], _T]) -> _T:
        """Do some work with the reader of a thread that is free."""
        if self._waiting >= WAITING_MOST:
            raise StorageUnusable("Too many reads are waiting.", hint="Try again in a moment.")

        def do() -> _T:
            with memory.alone():
                memory.require(READ_BYTES)
                return work(self._reader())

        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, do)
        finally:
            self._waiting -= 1

    def _reader(self) -> PostgresReader:
        reader: PostgresReader | None = getattr(self._own, "reader", None)
        if reader is None:
            reader = self._own.reader = PostgresReader(self._place)
            self._made.append(reader)
        return reader

    def close(self) -> None:
        """End the threads and close their connections."""
        self._executor.shutdown()
        for reader in self._made:
            reader.database.finish()


class PostgresReaders:
    """Implements `relational.store.Readers`."""

    def __init__(self, place: HomePlace, connections: int) -> None:
        self._place = place
        self._short = ReaderThreads(place, "reads", connections)
        self._columns = ReaderThreads(place, "columns", 1)
        self._search = ReaderThreads(place, "search", 1)

    async def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record."""
        return await self._short.read(lambda reader: reader.find(plan))

    async def short(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do a short read in one state of the store."""
        return await self._short.read(lambda reader: reader.read(work))

    async def columns(self, work: Callable[[Database, Catalog, ColumnCache], _T]) -> _T:
        """Do a read over columns, in the thread that they belong to."""
        return await self._columns.read(
            lambda reader: reader.read(lambda database, catalog: work(database, catalog, reader.columns))
        )

    async def searching(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do a search, in the thread that what searches remember belongs to."""
        return await self._search.read(lambda reader: reader.read(work))

    async def scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Read the whole store, on a connection for this alone, however long it takes."""
        return await asyncio.to_thread(scan, self._place, work)

    async def catalog(self) -> Catalog:
        """Give the catalog as of now."""
        return await self.short(lambda _, catalog: catalog)

    async def close(self) -> None:
        """Close the connections and end the threads."""
        for threads in (self._short, self._columns, self._search):
            await asyncio.to_thread(threads.close)


def scan(place: HomePlace, work: Callable[[Database, Catalog], _T]) -> _T:
    """Read the whole store in this thread, on a connection for this alone."""
    reader = PostgresReader(place)
    try:
        return reader.read(work, math.inf)
    finally:
        reader.database.finish()
