"""The SQLite store: which thread does what.

Short reads run on the event loop's own connection: a thread would cost more than the read. Searches and reads
over columns take longer and have a thread each. One more thread writes.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from headgate.errors import ConnectionNotFound, IntegrityBroken, StorageReadOnly, StreamNotDeclared
from headgate.home import Home
from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName, connection_id_from
from headgate.model.plan import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    MatchWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    WindowPlan,
)
from headgate.model.record import Connection, Record
from headgate.model.rows import (
    Aggregate,
    Changes,
    FieldWindow,
    FoundBlob,
    IngestReport,
    Page,
    SearchPage,
    ShelfSummary,
)
from headgate.store.protocol import Batch
from headgate.store.sqlite.catalog import Catalog, current
from headgate.store.sqlite.columns.aggregates import aggregate, summaries
from headgate.store.sqlite.columns.cache import ColumnCache
from headgate.store.sqlite.database import Database, open_reader, translate_errors
from headgate.store.sqlite.maintenance.retention import ChangeRetention
from headgate.store.sqlite.paths import BLOBS, FILE
from headgate.store.sqlite.read.changes import changes
from headgate.store.sqlite.read.filtered import filtered_page, needs_columns
from headgate.store.sqlite.read.pages import find, page
from headgate.store.sqlite.read.scope import register as teach_reading
from headgate.store.sqlite.read.search import register as teach_ranking, search
from headgate.store.sqlite.read.windows import windows
from headgate.store.sqlite.readonly import start_writer
from headgate.store.sqlite.write import accounts, declare, ingest
from headgate.store.sqlite.write.blobs import BlobFiles, find_blobs

_CONNECTION_BYTES = 12
_T = TypeVar("_T")


def _prepare(connection: Any) -> None:
    teach_reading(connection)
    teach_ranking(connection)
    # A look at every cell of a page that is loaded keeps damage from spreading, and takes a fifteenth of a short
    # read. What is only read spreads nothing, and every record that is read is held against its digest.
    connection.pragma("cell_size_check", 0)


class _Lane:
    """A connection for reading, with the catalog it last saw."""

    def __init__(self, path: Path) -> None:
        self._database = open_reader(path, register=_prepare)
        self._catalog = Catalog()
        #: The version of the file that the catalog is known to be true of.
        self._version = 0
        self._looked = 0
        self.columns = ColumnCache()

    def read(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do one read in one state of the store."""
        with translate_errors(), self._database.reading():
            self._catalog = current(self._database, self._catalog)
            return work(self._database, self._catalog)

    def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record: the shortest read there is, and the most frequent.

        One statement sees one state without a transaction around it. If nothing was written since the
        catalog was last looked at, the catalog is still true.
        """
        if plan.expand or self._catalog.number == 0 or self._database.is_frozen:
            return self.read(lambda database, catalog: find(database, catalog, plan))
        try:
            found = find(self._database, self._catalog, plan)
            version = self._database.db.data_version()
        except (apsw.Error, IntegrityBroken):
            # Whatever it was, the careful way says it in the house's words, or finds that it has passed.
            return self.read(lambda database, catalog: find(database, catalog, plan))
        if version != self._version:
            known = self._catalog.number
            found = self.read(lambda database, catalog: find(database, catalog, plan))
            self._version = version if self._catalog.number == known else 0
        return found

    def catalog(self) -> Catalog:
        """Give the catalog as of now; as long as nobody wrote anything it is the one that was last seen."""
        with translate_errors():
            version = self._database.version()
        if version != self._looked:
            self.read(lambda _, catalog: catalog)
            self._looked = version
        return self._catalog

    def close(self) -> None:
        self._database.db.close()


class _Thread:
    """A lane with a thread of its own."""

    def __init__(self, path: Path, name: str) -> None:
        self._lane = _Lane(path)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-{name}")

    async def read(self, work: Callable[[Database, Catalog, ColumnCache], _T]) -> _T:
        loop = asyncio.get_running_loop()
        lane = self._lane
        return await loop.run_in_executor(
            self._executor, lambda: lane.read(lambda database, catalog: work(database, catalog, lane.columns))
        )

    def close(self) -> None:
        self._executor.shutdown()
        self._lane.close()


class SqliteStore:
    """A store in one file of the home."""

    def __init__(self, home: Home, now: Callable[[], int]) -> None:
        path = home.path / FILE
        self._now = now
        self._writer = start_writer(path, idle_tasks=(ChangeRetention(now),))
        self._files = BlobFiles(home.path / BLOBS)
        self._here = _Lane(path)
        self._columns = _Thread(path, "columns")
        self._search = _Thread(path, "search")

    # Reading

    async def record(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record; each connection of the reach that has it gives one."""
        return self._here.find(plan)

    async def page(self, plan: PagePlan) -> Page:
        """Read a page, merged over the connections of the reach."""
        if needs_columns(plan):
            return await self._columns.read(
                lambda database, catalog, columns: filtered_page(database, catalog, columns, plan)
            )
        return self._here.read(lambda database, catalog: page(database, catalog, plan))

    async def changes(self, plan: ChangesPlan) -> Changes:
        """Read what changed in the projection that the reach allows."""
        return self._here.read(lambda database, catalog: changes(database, catalog, plan))

    async def aggregate(self, plan: AggregatePlan) -> Aggregate:
        """Compute a number, or one for each group, exactly."""
        return await self._columns.read(
            lambda database, catalog, columns: aggregate(database, catalog, columns, plan)
        )

    async def search(self, plan: SearchPlan) -> SearchPage:
        """Find records by words; only visible text matches or ranks."""
        return await self._search.read(lambda database, catalog, _: search(database, catalog, plan))

    async def window(self, plan: WindowPlan) -> tuple[FieldWindow, ...]:
        """Read a part of a field; each connection of the reach that has the record gives one."""
        if isinstance(plan.window, MatchWindow):
            return await self._search.read(lambda database, catalog, _: windows(database, catalog, plan))
        return self._here.read(lambda database, catalog: windows(database, catalog, plan))

    async def blobs(self, plan: BlobPlan) -> tuple[FoundBlob, ...]:
        """Find a file through the visible records that refer to it, at most one for each connection."""
        return self._here.read(lambda database, catalog: find_blobs(database, catalog, plan))

    def read_blob(self, blob_id: BlobId, *, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Read a file's bytes in pieces. Ask only for a file that `blobs` has found."""
        return self._files.read(blob_id, start, end)

    async def summaries(self, reaches: Sequence[Reach]) -> tuple[ShelfSummary, ...]:
        """Count what each connection holds, as far as the reaches go."""
        return await self._columns.read(
            lambda database, catalog, columns: summaries(database, catalog, columns, reaches)
        )

    # Writing

    @property
    def is_writable(self) -> bool:
        """Whether anything can be taken in."""
        return self._writer.is_able

    async def declare(self, connector_key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
        """Register a declaration; a new version adds columns and changes nothing that is there."""
        return await self._writer.run_alone(
            lambda database: declare.declare(database, connector_key, document)
        )

    async def catalog_version(self) -> int:
        """Give a number that is larger after anything was declared, connected, renamed or removed."""
        return self._here.catalog().number

    async def declarations(self) -> Mapping[ConnectorKey, SourceDeclaration]:
        """Give the newest declaration of every connector."""
        return self._here.catalog().declarations

    async def create_connection(self, connector_key: ConnectorKey, display_name: str) -> Connection:
        """Add a connection of a declared connector."""
        if connector_key not in await self.declarations():
            raise StreamNotDeclared(f"There is no declaration for '{connector_key}'.")
        minted = connection_id_from(secrets.token_bytes(_CONNECTION_BYTES))
        made = Connection(minted, connector_key, display_name, self._now())
        await self._writer.run(lambda database: accounts.create(database, made))
        return made

    async def connections(self) -> tuple[Connection, ...]:
        """Give every connection, oldest first."""
        return tuple(self._here.catalog().connections.values())

    async def rename_connection(self, connection_id: ConnectionId, display_name: str) -> Connection:
        """Give a connection another name."""
        await self._writer.run(lambda database: accounts.rename(database, connection_id, display_name))
        renamed = self._here.read(lambda _, catalog: catalog.connections.get(connection_id))
        if renamed is None:
            raise ConnectionNotFound
        return renamed

    async def delete_connection(self, connection_id: ConnectionId) -> None:
        """Remove a connection with everything it brought."""
        await self._writer.run_alone(lambda database: accounts.delete(database, connection_id))

    async def ingest(self, batch: Batch) -> IngestReport:
        """Take a batch in, whole and durably, before this returns."""
        catalog = self._here.catalog()
        # Reading lines takes a while; others on this loop are served meanwhile.
        checked = await asyncio.to_thread(ingest.check, batch, catalog)
        return await self._writer.run(lambda database: ingest.take(database, checked))

    async def delete_record(
        self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
    ) -> bool:
        """Remove a record; a tombstone stays for those who had seen it. Says whether it was there."""
        return await self._writer.run(
            lambda database: ingest.delete(database, connection_id, stream, record_id, at=at)
        )

    async def put_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Keep a file under the digest of its content; gives its id and size."""
        if not self.is_writable:
            # A file that nothing could ever refer to would stay for good.
            raise StorageReadOnly
        with translate_errors():
            blob_id, size = await self._files.write(content)
        await self._writer.run(lambda database: accounts.note_blob(database, blob_id, mime_type, size))
        return blob_id, size

    async def state(self, connection_id: ConnectionId) -> bytes | None:
        """Give what a collector last noted for itself, as JSON."""
        return self._here.read(lambda database, _: accounts.state(database, connection_id))

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Keep what a collector notes for itself."""
        await self._writer.run(lambda database: accounts.put_state(database, connection_id, document))

    @property
    def is_settled(self) -> bool:
        """Whether nothing is being done beside what is asked for."""
        return self._writer.is_settled

    async def close(self) -> None:
        """Finish what is under way and leave the files tidy."""
        self._here.close()
        await asyncio.to_thread(self._columns.close)
        await asyncio.to_thread(self._search.close)
        await self._writer.close()
