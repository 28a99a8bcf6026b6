"""The connections that read: some for short reads, one for long ones, one for searches, each with its thread.

A thread owns its connection, so that no request waits for one while it holds another, and a transaction is never
shared. When all threads are busy reads wait in their queues, which are bounded.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

import psycopg

from headgate import memory
from headgate.errors import StorageUnusable
from headgate.model.plan import RecordPlan
from headgate.model.record import Record
from headgate.store.changes.writer import settle
from headgate.store.engines.store import READ_BYTES
from headgate.store.postgres.database import HomePlace, PostgresDatabase, StateMoved, translated
from headgate.store.queries.pages import find
from headgate.store.sql.catalog import Catalog, current
from headgate.store.sql.database import QUERY_SECONDS, Database

_T = TypeVar("_T")
#: How many reads may wait for a thread; one more is refused.
WAITING_MOST = 512


class PostgresReader:
    """A connection for reading."""

    def __init__(self, place: HomePlace) -> None:
        self.database = PostgresDatabase(place, statement_seconds=QUERY_SECONDS)

    def read(self, work: Callable[[Database, Catalog], _T], seconds: float | None = None) -> _T:
        """Do one read in one state of the store; with a limit on its time, in a transaction."""
        database = self.database
        with translated():
            known = database.known_catalog
            done = None if seconds is not None or known is None else self._read_watched(work, known)
            if done is not None:
                return done[0]
            with database.reading(QUERY_SECONDS if seconds is None else seconds):
                return work(database, current(database))

    def finish(self) -> None:
        """Close the connection."""
        self.database.finish()

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
        return self.read(lambda database, catalog: find(database, catalog, plan))

    def _read_watched(self, work: Callable[[Database, Catalog], _T], catalog: Catalog) -> tuple[_T] | None:
        """Do one read with the catalog that was seen last, without a transaction.

        None: it was another state of the store from one statement to the next, or the catalog is an old one.
        """
        database = self.database
        with database.watching(catalog.number) as watched:
            try:
                value = work(database, catalog)
            except StateMoved:
                return None
            except Exception:
                # An old catalog or a lost connection may be the reason. Otherwise the second attempt fails again.
                if watched.version is None or database.is_lost:
                    return None
                raise
        return None if watched.version is None else (value,)


class _AskedRead(Generic[_T]):
    """A read that waits for a thread, and its result, for which a caller waits."""

    __slots__ = ("_work", "result")

    def __init__(self, work: Callable[[PostgresReader], _T]) -> None:
        self._work = work
        self.result: asyncio.Future[_T] = asyncio.get_running_loop().create_future()

    def do(self, reader: PostgresReader) -> None:
        """Do it in the thread that calls this, and deliver the outcome to the caller."""
        try:
            with memory.alone():
                memory.require(READ_BYTES)
                value = self._work(reader)
        except BaseException as error:  # noqa: BLE001 - the caller's, not the thread's
            settle(self.result, partial(self.result.set_exception, error))
        else:
            settle(self.result, partial(self.result.set_result, value))


class ReaderThreads:
    """Threads that each own a reader; one more is started when all are busy.

    A pool of the standard library makes two futures for each read, which takes a tenth of a request's time.
    """

    def __init__(self, place: HomePlace, name: str, count: int) -> None:
        self._place = place
        self._name = f"headgate-{name}"
        self._count = count
        self._threads: list[threading.Thread] = []
        #: The reads that wait; one that its caller left is not among them.
        self._asked: deque[_AskedRead[Any]] = deque()
        #: Wakes a thread for a read that waits, or waited; False ends it.
        self._calls: SimpleQueue[bool] = SimpleQueue()
        self._waiting = 0

    async def read(self, work: Callable[[PostgresReader], _T]) -> _T:
        """Do some work with the reader of a thread that is free."""
        if self._waiting >= WAITING_MOST:
            raise StorageUnusable("Too many reads are waiting.", hint="Try again in a moment.")
        waiting = _AskedRead(work)
        self._waiting += 1
        try:
            if self._waiting > len(self._threads) < self._count:
                self._start_thread()
            self._asked.append(waiting)
            self._calls.put(item=True)
            return await waiting.result
        except asyncio.CancelledError:
            # A thread may have begun it meanwhile.
            with suppress(ValueError):
                self._asked.remove(waiting)
            raise
        finally:
            self._waiting -= 1

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._read_until_end, name=self._name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _read_until_end(self) -> None:
        reader = PostgresReader(self._place)
        while self._calls.get():
            with suppress(IndexError):
                # Not given a name: what was read is not kept until the next read comes.
                self._asked.popleft().do(reader)
        reader.finish()

    def close(self) -> None:
        """End the threads, after what they were asked for, and close their connections."""
        for _ in self._threads:
            self._calls.put(item=False)
        for thread in self._threads:
            thread.join()


class PostgresReaders:
    """Implements `engines.store.Readers`."""

    def __init__(self, place: HomePlace, connections: int) -> None:
        self._place = place
        self._short = ReaderThreads(place, "reads", connections)
        self._long = ReaderThreads(place, "long-reads", 1)
        self._search = ReaderThreads(place, "search", 1)

    async def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        return await self._short.read(lambda reader: reader.find(plan))

    async def short(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await self._short.read(lambda reader: reader.read(work))

    async def long(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await self._long.read(lambda reader: reader.read(work, QUERY_SECONDS))

    async def searching(self, work: Callable[[Database, Catalog], _T]) -> _T:
        # A search runs many statements: a transaction costs little beside them, and no write makes it start again.
        return await self._search.read(lambda reader: reader.read(work, QUERY_SECONDS))

    async def scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await asyncio.to_thread(scan, self._place, work)

    async def catalog(self) -> Catalog:
        return await self.short(_catalog_as_of_now)

    async def close(self) -> None:
        for threads in (self._short, self._long, self._search):
            await asyncio.to_thread(threads.close)


def _catalog_as_of_now(database: Database, catalog: Catalog) -> Catalog:
    # It is the newest one if a statement sees its number.
    database.snapshot_version()
    return catalog


def scan(place: HomePlace, work: Callable[[Database, Catalog], _T]) -> _T:
    """Read the whole store in this thread, on a connection for this alone."""
    reader = PostgresReader(place)
    try:
        return reader.read(work, math.inf)
    finally:
        reader.database.finish()
