"""The ledger in the store's file.

Look-ups run on the event loop's own connection, like every short read, and never wait; changes are jobs of the store's
writer, and wait for the disk.
Scans of the log, which only grows, have a thread with its own connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import apsw

from headgate.errors import StorageFull
from headgate.home import Home, revocation_reserve
from headgate.model.ids import GrantId
from headgate.store.changes.writer import Writer
from headgate.store.engines.read_only import NoWriter, start_writer
from headgate.store.ledger.ledger import Ledger
from headgate.store.sql.database import Database
from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import SqliteDatabase, open_reader, translate_errors

_T = TypeVar("_T")


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
        """End a grant for good, also on a full disk. Says whether it was there."""
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
