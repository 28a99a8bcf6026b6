"""The SQLite store: which thread does what.

Short reads run in the event loop, on a connection for the loop alone: passing them to a thread would cost more
than the read. Searches, and reads that look at every record of a stream, take longer and have a thread each. One more
thread writes.
"""

from __future__ import annotations

import asyncio
import functools
import math
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from headgate import memory
from headgate.errors import HeadgateError, StorageFull, StorageReadOnly
from headgate.home import Home, has_room, revocation_reserve
from headgate.model.ids import BlobId, GrantId
from headgate.model.plan import RecordPlan
from headgate.model.record import Record
from headgate.store.changes import word_index
from headgate.store.changes.hiding import RuleComparison
from headgate.store.changes.retention import ChangeRetention, UnusedFiles
from headgate.store.changes.writer import IdleTask, NoWriter, Writer
from headgate.store.engines.store import READ_BYTES, Store
from headgate.store.format.records import text_in
from headgate.store.ledger.ledger import Ledger
from headgate.store.models.model import MeaningModel
from headgate.store.queries.pages import find
from headgate.store.queries.rows import TooLargeHere
from headgate.store.sql.catalog import Catalog, current
from headgate.store.sql.database import Database, refuse_unfinished_copy
from headgate.store.sql.word_segments import is_current
from headgate.store.sqlite import BLOBS, FILE
from headgate.store.sqlite.blobs import BlobFiles
from headgate.store.sqlite.database import SqliteDatabase, open_reader, open_writer, translate_errors
from headgate.store.sqlite.migrate import all_migrations, migrate, version_of
from headgate.system import lock, open_private
from headgate.tasks import Supervisor

_VECTOR_LOCK = "vectors.lock"
#: How much a read may load in the event loop: at most a few milliseconds of it.
_LOOP_BYTES = 512 * 1024
_T = TypeVar("_T")


def prepare_reader(connection: Any) -> None:
    """Add to a connection what reads need."""
    connection.create_scalar_function("field_text", text_in, 2, deterministic=True)
    # Checking every cell of a page when it is loaded keeps damage from spreading, and takes a fifteenth of a short
    # read. A reader spreads nothing, and compares every record with its digest.
    connection.pragma("cell_size_check", 0)


class _SqliteReader:
    """A connection for reading, with the catalog it last saw."""

    def __init__(self, path: Path, most_bytes: int = sys.maxsize) -> None:
        self.database = open_reader(path, register=prepare_reader)
        self.database.most_bytes = most_bytes
        #: The version of the file that the catalog was read from; -1: none was read yet.
        self._version = -1

    def read(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do one read in one state of the store."""
        with translate_errors(), self.database.reading():
            catalog = current(self.database)
            self._version = self.database.snapshot_version()
            return work(self.database, catalog)

    def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record: the shortest read there is, and the most frequent.

        One statement sees one state without a transaction around it. If that state is the one the catalog was
        read from, the catalog was true of it. If not, or if anything fails, the read is done in a transaction.
        """
        catalog = self.database.known_catalog
        if catalog is not None and not plan.expand and not self.database.is_immutable:
            try:
                records = find(self.database, catalog, plan)
                if self.database.snapshot_version() == self._version:
                    return records
            except (apsw.Error, HeadgateError):
                # An old catalog may be the reason. Otherwise the second attempt meets the failure again.
                pass
        return self.read(lambda database, catalog: find(database, catalog, plan))

    def catalog(self) -> Catalog:
        """Return the catalog as of now; it is read again only if the file has changed."""
        with translate_errors():
            version = self.database.version()
        known = self.database.known_catalog
        return (
            known if known is not None and version == self._version else self.read(lambda _, catalog: catalog)
        )

    def close(self) -> None:
        """Close the connection."""
        self.database.db.close()


class _ReaderThread:
    """A reader with its own thread, for reads that would keep the event loop waiting."""

    def __init__(self, path: Path, name: str) -> None:
        self._reader = _SqliteReader(path)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-{name}")

    async def read(self, work: Callable[[Database, Catalog], _T]) -> _T:
        loop = asyncio.get_running_loop()
        reader = self._reader

        def do() -> _T:
            with memory.alone():
                memory.require(READ_BYTES)
                return reader.read(work)

        return await loop.run_in_executor(self._executor, do)

    def close(self) -> None:
        self._executor.shutdown()
        self._reader.close()


class _SqliteReaders:
    """The readers of one file; implements `engines.store.Readers`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._loop_reader = _SqliteReader(path, _LOOP_BYTES)
        self._long = _ReaderThread(path, "long-reads")
        self._search = _ReaderThread(path, "search")

    async def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        try:
            return self._loop_reader.find(plan)
        except TooLargeHere:
            return await self._long.read(lambda database, catalog: find(database, catalog, plan))

    async def short(self, work: Callable[[Database, Catalog], _T]) -> _T:
        try:
            return self._loop_reader.read(work)
        except TooLargeHere:
            return await self._long.read(work)

    async def long(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await self._long.read(work)

    async def searching(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await self._search.read(work)

    async def scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return await asyncio.to_thread(_scan, self._path, work)

    async def catalog(self) -> Catalog:
        return self._loop_reader.catalog()

    async def close(self) -> None:
        self._loop_reader.close()
        await asyncio.to_thread(self._long.close)
        await asyncio.to_thread(self._search.close)


class _SqliteFiles(BlobFiles):
    """Files beside the database, whose failures are the store's."""

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        with translate_errors():
            return await super().write(content)


class SqliteStore(Store):
    """A store in one file of the home; with a model, it can be searched by meaning."""

    def __init__(
        self,
        home: Home,
        now: Callable[[], int],
        model: MeaningModel | None = None,
        *,
        supervisor: Supervisor | None = None,
    ) -> None:
        path = home.path / FILE
        files = _SqliteFiles(home.path / BLOBS)
        unused = UnusedFiles(now, lambda _, gone: files.remove(gone), files.remove_unfinished)
        tasks = (RuleComparison(now), ChangeRetention(now), unused)
        #: Of the whole file: the ledger writes through it too.
        self.writer = writer = start_writer(path, idle_tasks=tasks, supervisor=supervisor)
        vectors = _SqliteVectors(path, writer) if model is not None and isinstance(writer, Writer) else None
        meaning = None if model is None else (model, vectors)
        super().__init__(_SqliteReaders(path), writer, files, now, meaning, supervisor)


def _scan(path: Path, work: Callable[[Database, Catalog], _T]) -> _T:
    """Read the whole store in this thread, on a connection for this alone, however long it takes."""
    database = open_reader(path, register=prepare_reader)
    try:
        with translate_errors(), database.reading(math.inf):
            return work(database, current(database))
    finally:
        database.db.close()


class _SqliteVectors:
    """What the thread that makes vectors needs; of several processes, the one that holds a lock file makes them."""

    def __init__(self, path: Path, writer: Writer) -> None:
        self._path = path
        self._writer = writer
        self._file = open_private(path.with_name(_VECTOR_LOCK), os.O_RDWR | os.O_CREAT)

    def scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        return _scan(self._path, work)

    async def change(self, work: Callable[[Database], None]) -> None:
        await self._writer.run(work)

    def has_turn(self) -> bool:
        try:
            lock(self._file)
        except BlockingIOError:
            return False
        return True

    def end_turn(self) -> None:
        os.close(self._file)


def start_writer(
    path: Path, *, idle_tasks: Sequence[IdleTask] = (), supervisor: Supervisor | None = None
) -> Writer | NoWriter:
    """Open a file for writing and bring it up to date; or, if it can only be read, use it as it is."""
    try:
        return Writer(
            _open_newest(path),
            idle_tasks=(word_index.WordFilling(), *idle_tasks),
            has_room=functools.partial(has_room, path.parent),
            supervisor=supervisor,
        )
    except (StorageReadOnly, StorageFull) as trouble:
        _refuse_unless_newest(path)
        return NoWriter(type(trouble))


def _open_newest(path: Path) -> SqliteDatabase:
    database = open_writer(path)
    try:
        with translate_errors(database):
            migrate(database, all_migrations())
            refuse_unfinished_copy(database)
            word_index.bring_up_to_date(database, word_index.OPENING_SECONDS)
    except BaseException:
        database.db.close()
        raise
    return database


def _refuse_unless_newest(path: Path) -> None:
    if not path.exists():
        raise StorageReadOnly(f"There is no store in {path.parent}, and none can be made there.")
    reader = open_reader(path)
    try:
        refuse_unfinished_copy(reader)
        is_newest = version_of(reader) == all_migrations()[-1].number and is_current(reader)
    finally:
        reader.db.close()
    if not is_newest:
        raise StorageReadOnly("The store is of an older version, and cannot be brought to this one.")


class _SqliteConnections:
    """Implements `store.ledger.LedgerConnections`."""

    def __init__(self, home: Home, writer: Writer | NoWriter) -> None:
        self._path = home.path / FILE
        self._reader = open_reader(self._path)
        self._writer = writer
        #: One that was opened when there was room again; None: the store's works, and is the store's to close.
        self._later_writer: Writer | NoWriter | None = None
        self._scans = ThreadPoolExecutor(1, thread_name_prefix="headgate-log")
        self._scanned: SqliteDatabase | None = None

    async def version(self) -> int:
        try:
            return self._reader.version()
        except apsw.Error:
            # Asked for at every request, so nothing is prepared for a failure before there is one.
            with translate_errors():
                raise

    async def look_up(self, work: Callable[[Database], _T]) -> _T:
        with translate_errors():
            return work(self._reader)

    async def scan(self, work: Callable[[Database], _T]) -> _T:
        return await asyncio.get_running_loop().run_in_executor(self._scans, self._scan, work)

    def _scan(self, work: Callable[[Database], _T]) -> _T:
        with translate_errors():
            if self._scanned is None:
                # At the first scan: most processes never do one.
                self._scanned = open_reader(self._path)
            return work(self._scanned)

    async def change(self, work: Callable[[Database], _T], *, is_small: bool = True) -> _T:
        return await self._writer.run(work, is_small=is_small)

    async def log(self, work: Callable[[Database], _T]) -> _T:
        return await self._writer.run(work, is_small=True)

    def open_again(self) -> None:
        """Open a writer where there was no room for one."""
        if isinstance(self._writer, NoWriter):
            self._writer = self._later_writer = start_writer(self._path)

    async def close(self) -> None:
        await asyncio.to_thread(self._scans.shutdown)
        if self._scanned is not None:
            self._scanned.db.close()
        self._reader.db.close()
        if self._later_writer is not None:
            await self._later_writer.close()


class SqliteLedger(Ledger):
    """The ledger of a home whose store has been opened, and is closed after it."""

    def __init__(self, home: Home, writer: Writer | NoWriter) -> None:
        self._own = _SqliteConnections(home, writer)
        super().__init__(self._own)
        self._reserve = revocation_reserve(home.path)

    async def revoke(self, grant_id: GrantId, at: int) -> bool:
        """End a grant for good, also on a full disk; returns whether it was there."""
        try:
            return await super().revoke(grant_id, at)
        except StorageFull:
            if not self._reserve.release():
                raise
        try:
            self._own.open_again()
            return await super().revoke(grant_id, at)
        finally:
            self._reserve.make_what_fits()
