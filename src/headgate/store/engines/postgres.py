"""The PostgreSQL store: the shared store over connections to one home of a database."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import inf
from typing import Any, TypeVar

from headgate.errors import HeadgateError, IntegrityBroken
from headgate.model.ids import GrantId
from headgate.model.ledger import Holder
from headgate.store.changes.hiding import RuleComparison
from headgate.store.changes.retention import ChangeRetention, UnusedFiles
from headgate.store.changes.word_index import WordFilling
from headgate.store.changes.writer import Writer
from headgate.store.engines.postgres_readers import PostgresReaders, ReaderThreads, scan
from headgate.store.engines.store import Store
from headgate.store.ledger.ledger import Ledger, LedgerConnections
from headgate.store.models.model import MeaningModel
from headgate.store.postgres.blobs import ServedBlobRows, remove_parts
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.postgres.lease import Lease, LeasedTurn
from headgate.store.sql.catalog import BoundedMemo, Catalog
from headgate.store.sql.database import Database
from headgate.tasks import Supervisor

#: How many short reads one process does at once.
CONNECTIONS = 4


class _PostgresVectors:
    """What the thread that makes vectors needs; of several processes, the one that holds the lease makes them."""

    def __init__(self, place: HomePlace, writer: Writer, now: Callable[[], int]) -> None:
        self._place = place
        self._writer = writer
        self._lease = Lease(place, "vectors", now)

    def scan(self, work: Callable[[Database, Catalog], Any]) -> Any:
        return scan(self._place, work)

    async def change(self, work: Callable[[Database], None]) -> None:
        await self._writer.run(work)

    def has_turn(self) -> bool:
        return self._lease.hold()

    def end_turn(self) -> None:
        self._lease.release()


class PostgresStore(Store):
    """A store in a database; with a model, it can be searched by meaning."""

    def __init__(
        self,
        place: HomePlace,
        now: Callable[[], int],
        model: MeaningModel | None = None,
        *,
        connections: int = CONNECTIONS,
        supervisor: Supervisor | None = None,
    ) -> None:
        turn = LeasedTurn(Lease(place, "idle tasks", now), now)
        unused = UnusedFiles(now, remove_parts)
        tasks = (WordFilling(), RuleComparison(now), Statistics(), ChangeRetention(now), unused)
        writer = Writer(PostgresDatabase(place), idle_tasks=tasks, turn=turn, supervisor=supervisor)
        meaning = None if model is None else (model, _PostgresVectors(place, writer, now))
        readers = PostgresReaders(place, connections)
        super().__init__(readers, writer, ServedBlobRows(place, readers.short), now, meaning, supervisor)


#: A table that has grown by so much since it was last counted is counted again.
_TIMES_LARGER = 4


class Statistics:
    """An idle task: let the server count what the tables hold, so that it chooses the right index.

    Servers do this themselves about once a minute. A large import into new tables would be read badly until then. Only
    the owner of the tables can ask for it; for a role that serves one home the server's own rhythm must do.
    """

    name = "statistics"

    def __init__(self) -> None:
        #: How large the tables were when this process last had them counted.
        self._pages = 0

    def plan(self, database: Database) -> bool:
        """Return whether the tables have grown enough since they were last counted."""
        pages, counted = database.all(SQL["table_size"])[0]
        return pages > _TIMES_LARGER * max(self._pages, counted)

    def step(self, database: Database) -> bool:
        self._pages = database.all(SQL["table_size"])[0][0]
        database.run(SQL["gather_statistics"])
        return False


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
        self._shelf: PostgresShelf | None = None
        self._version_in = connected.version_in
        self._latest_time = place.latest_time

    def shelf(self, now: Callable[[], int]) -> PostgresShelf:
        """Make what keeps cursors, until the ledger is closed."""
        self._shelf = PostgresShelf(self.connections, now)
        return self._shelf

    async def close(self) -> None:
        """Store the last cursors, and close the connections."""
        if self._shelf is not None:
            await self._shelf.close()
        await super().close()

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


#: Longer than a cursor can be used.
_CURSOR_US = 25 * 3600 * 1_000_000
_MOST_CURSORS = 200_000
#: Cursors that this process remembers, and how many it keeps between two times at which old ones are dropped.
_REMEMBERED_CURSORS = 4096
_BETWEEN_DROPS = 2000
#: Cursors of so many seconds are stored together, after their answers: a page does not wait for a second statement.
_TOGETHER_SECONDS = 0.02
#: Another machine that is asked at once for the next page looks again after these.
_AGAIN_SECONDS = (0.03, 0.1)
#: After a failure, clients get whole cursors for so long.
_WITHOUT_US = 60 * 1_000_000


class PostgresShelf:
    """Keeps cursors in the database, for every machine that serves the home; implements `model.sealed.CursorShelf`."""

    def __init__(self, connections: LedgerConnections, now: Callable[[], int]) -> None:
        self._connections = connections
        self._now = now
        self._remembered = BoundedMemo[str, str](_REMEMBERED_CURSORS)
        self._waiting: dict[str, str] = {}
        self._storing: asyncio.Task[None] | None = None
        self._able_from = 0
        self._until_drop = 0

    def put(self, name: str, token: str) -> bool:
        """Take a token to be stored soon; False for a while after that has failed."""
        if self._now() < self._able_from:
            return False
        self._waiting[name] = self._remembered.remember(name, token)
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._store_soon())
        return True

    def get(self, name: str) -> str | None:
        """Return a token that this process has kept or fetched."""
        return self._waiting.get(name) or self._remembered.get(name)

    async def fetch(self, name: str) -> None:
        """Look a name up in the database; it may be on its way there."""
        for pause in (*_AGAIN_SECONDS, None):
            if self.get(name) is not None:
                return
            row = await self._connections.look_up(lambda database: database.one(SQL["kept_cursor"], (name,)))
            if row is not None:
                self._remembered.remember(name, row[0])
            elif pause is not None:
                await asyncio.sleep(pause)

    async def close(self) -> None:
        """Store what waits; nothing is put after that."""
        if self._storing is not None:
            self._storing.cancel()
        await self.flush()

    async def flush(self) -> None:
        """Store what waits."""
        tokens, self._waiting = self._waiting, {}
        if not tokens:
            return
        try:
            await self._store(tokens)
        except HeadgateError:
            # A full disk, or a server that only reads: records can be read all the same.
            self._able_from = self._now() + _WITHOUT_US

    async def _store_soon(self) -> None:
        await asyncio.sleep(_TOGETHER_SECONDS)
        self._storing = None
        await self.flush()

    async def _store(self, tokens: Mapping[str, str]) -> None:
        at = self._now()
        self._until_drop -= len(tokens)
        drops = self._until_drop < 0

        def work(database: Database) -> None:
            database.many(SQL["keep_cursor"], [(name, token, at) for name, token in tokens.items()])
            if drops:
                database.run(SQL["drop_old_cursors"], (at - _CURSOR_US, _MOST_CURSORS))

        await self._connections.look_up(work)
        if drops:
            self._until_drop = _BETWEEN_DROPS


def has_log(place: HomePlace) -> bool:
    """Return whether the log of a home has any entry."""
    database = PostgresDatabase(place)
    try:
        with translated():
            return database.one(SQL["chain_head"]) is not None
    finally:
        database.finish()
