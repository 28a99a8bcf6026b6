"""The SQLite store: which thread does what.

Short reads run in the event loop, on a connection for the loop alone: passing them to a thread would cost more
than the read. Searches and reads over columns take longer and have a thread each. One more thread writes.
"""

from __future__ import annotations

import asyncio
import math
import secrets
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from headgate import memory
from headgate.errors import ConnectionNotFound, HeadgateError, StreamNotDeclared, Unsupported
from headgate.home import Home
from headgate.model.declaration import SourceDeclaration
from headgate.model.hiding import HidingRule, RuleCount, RuleId
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName, connection_id_from
from headgate.model.plan import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    KeyPlan,
    MatchWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    WindowPlan,
)
from headgate.model.query import SearchMode
from headgate.model.record import Connection, Record
from headgate.model.rows import (
    Aggregate,
    Changes,
    FieldWindow,
    FoundBlob,
    IngestReport,
    MarkedRecords,
    Page,
    SearchPage,
    ShelfSummary,
)
from headgate.store.protocol import Batch
from headgate.store.semantic.models import MeaningModel
from headgate.store.sqlite.catalog import Catalog, current
from headgate.store.sqlite.columns.aggregates import aggregate, summaries
from headgate.store.sqlite.columns.cache import ColumnCache
from headgate.store.sqlite.database import Database, open_reader, translate_errors
from headgate.store.sqlite.maintenance.retention import ChangeRetention
from headgate.store.sqlite.paths import BLOBS, FILE
from headgate.store.sqlite.read.changes import changes
from headgate.store.sqlite.read.filtered import filtered_page, needs_columns
from headgate.store.sqlite.read.marks import marked_records
from headgate.store.sqlite.read.meaning import AskedMeaning, question_text
from headgate.store.sqlite.read.pages import find, find_key, page
from headgate.store.sqlite.read.rows import TooLargeHere
from headgate.store.sqlite.read.scope import register as add_reading_functions
from headgate.store.sqlite.read.search import search
from headgate.store.sqlite.read.search_modes import SearchMemory, search_by_meaning
from headgate.store.sqlite.read.windows import windows
from headgate.store.sqlite.readonly import start_writer
from headgate.store.sqlite.write import accounts, declare, hiding, ingest
from headgate.store.sqlite.write.blobs import BlobFiles, find_blobs
from headgate.store.sqlite.write.vector_making import model_key
from headgate.store.sqlite.write.vector_thread import VectorThread
from headgate.store.sqlite.writer import Writer

_CONNECTION_BYTES = 12
#: How much a read may load in the event loop: at most a few milliseconds of it.
_LOOP_BYTES = 512 * 1024
#: What must be left, beside the reserve, when a thread begins to read.
_READ_BYTES = 16 * 1024 * 1024
_T = TypeVar("_T")


def _prepare(connection: Any) -> None:
    add_reading_functions(connection)
    # Checking every cell of a page when it is loaded keeps damage from spreading, and takes a fifteenth of a short
    # read. A reader spreads nothing, and compares every record with its digest.
    connection.pragma("cell_size_check", 0)


class _SqliteReader:
    """A connection for reading, with the catalog it last saw."""

    def __init__(self, path: Path, most_bytes: int = sys.maxsize) -> None:
        self.database = open_reader(path, register=_prepare)
        self.database.most_bytes = most_bytes
        self._catalog = Catalog()
        #: The version of the file that the catalog was read from; -1: none was read yet.
        self._version = -1
        self.columns = ColumnCache()

    def read(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do one read in one state of the store."""
        with translate_errors(), self.database.reading():
            self._catalog = current(self.database, self._catalog)
            self._version = self.database.snapshot_version()
            return work(self.database, self._catalog)

    def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record: the shortest read there is, and the most frequent.

        One statement sees one state without a transaction around it. If that state is the one the catalog was
        read from, the catalog was true of it. If not, or if anything fails, the read is done in a transaction.
        """
        if not plan.expand and not self.database.is_frozen:
            try:
                found = find(self.database, self._catalog, plan)
                if self.database.snapshot_version() == self._version:
                    return found
            except (apsw.Error, HeadgateError):
                # An old catalog may be the reason. Otherwise the second attempt meets the failure again.
                pass
        return self.read(lambda database, catalog: find(database, catalog, plan))

    def catalog(self) -> Catalog:
        """Give the catalog as of now; it is read again only if the file has changed."""
        with translate_errors():
            version = self.database.version()
        return self._catalog if version == self._version else self.read(lambda _, catalog: catalog)

    def close(self) -> None:
        """Close the connection."""
        self.database.db.close()


class _ReaderThread:
    """A reader with its own thread, for reads that would keep the event loop waiting."""

    def __init__(self, path: Path, name: str) -> None:
        self._reader = _SqliteReader(path)
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"headgate-{name}")

    async def read(self, work: Callable[[Database, Catalog, ColumnCache], _T]) -> _T:
        loop = asyncio.get_running_loop()
        reader = self._reader

        def do() -> _T:
            with memory.alone():
                memory.require(_READ_BYTES)
                return reader.read(lambda database, catalog: work(database, catalog, reader.columns))

        return await loop.run_in_executor(self._executor, do)

    def close(self) -> None:
        self._executor.shutdown()
        self._reader.close()


class SqliteStore:
    """A store in one file of the home; with a model, it can be searched by meaning."""

    def __init__(self, home: Home, now: Callable[[], int], model: MeaningModel | None = None) -> None:
        path = home.path / FILE
        self._now = now
        self._path = path
        self._writer = start_writer(path, idle_tasks=(ChangeRetention(now),))
        self._files = BlobFiles(home.path / BLOBS)
        self._reader = _SqliteReader(path, _LOOP_BYTES)
        self._columns = _ReaderThread(path, "columns")
        self._search = _ReaderThread(path, "search")
        #: Used in the thread of searches alone.
        self._memory = SearchMemory()
        self._model = model
        self._vectors: VectorThread | None = None
        if model is not None and isinstance(self._writer, Writer):
            self._vectors = VectorThread(path, self._writer, model)

    # Reading

    async def record(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record in each connection of the reach that has it."""
        try:
            return self._reader.find(plan)
        except TooLargeHere:
            return await self._columns.read(lambda database, catalog, _: find(database, catalog, plan))

    async def key(self, plan: KeyPlan) -> RecordId | None:
        """Find the key of a record; many can have the same beginning, so this is not done in the event loop."""
        return await self._search.read(lambda database, catalog, _: find_key(database, catalog, plan))

    async def page(self, plan: PagePlan) -> Page:
        """Read a page, merged over the connections of the reach."""
        if needs_columns(plan):
            return await self._columns.read(
                lambda database, catalog, columns: filtered_page(database, catalog, columns, plan)
            )
        try:
            return self._reader.read(lambda database, catalog: page(database, catalog, plan))
        except TooLargeHere:
            return await self._columns.read(lambda database, catalog, _: page(database, catalog, plan))

    async def changes(self, plan: ChangesPlan) -> Changes:
        """Read what changed in the projection that the reach allows."""
        try:
            return self._reader.read(lambda database, catalog: changes(database, catalog, plan))
        except TooLargeHere:
            return await self._columns.read(lambda database, catalog, _: changes(database, catalog, plan))

    async def aggregate(self, plan: AggregatePlan) -> Aggregate:
        """Compute a number, or one for each group, exactly."""
        return await self._columns.read(
            lambda database, catalog, columns: aggregate(database, catalog, columns, plan)
        )

    async def search(self, plan: SearchPlan) -> SearchPage:
        """Find records by words or by meaning; only visible text matches or ranks."""
        remembered = self._memory
        if plan.mode is SearchMode.LEXICAL:
            return await self._search.read(
                lambda database, catalog, _: search(database, catalog, remembered.segments, plan)
            )
        if self._model is None:
            raise Unsupported(param="mode")
        # The model may have to be loaded first, and other searches need not wait for it.
        asked = await asyncio.to_thread(_asked, self._model, plan)
        return await self._search.read(
            lambda database, catalog, _: search_by_meaning(database, catalog, remembered, plan, asked)
        )

    async def window(self, plan: WindowPlan) -> tuple[FieldWindow, ...]:
        """Read a part of a field, in each connection of the reach that has the record."""
        if isinstance(plan.window, MatchWindow):
            return await self._search.read(lambda database, catalog, _: windows(database, catalog, plan))
        return self._reader.read(lambda database, catalog: windows(database, catalog, plan))

    async def blobs(self, plan: BlobPlan) -> tuple[FoundBlob, ...]:
        """Find a file through the visible records that refer to it, at most one for each connection."""
        return self._reader.read(lambda database, catalog: find_blobs(database, catalog, plan))

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
        """Whether anything can be stored."""
        return self._writer.is_able

    async def declare(self, connector_key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
        """Register a declaration; a new version adds columns and changes nothing that is there."""
        declared = await self._writer.run_alone(
            lambda database: declare.declare(database, connector_key, document)
        )
        self._report_texts()
        return declared

    async def catalog_version(self) -> int:
        """Give a number that is larger after anything was declared, connected, renamed or removed."""
        return self._reader.catalog().number

    async def declarations(self) -> Mapping[ConnectorKey, SourceDeclaration]:
        """Give the newest declaration of every connector."""
        return self._reader.catalog().declarations

    async def declared_versions(self) -> Mapping[ConnectorKey, Sequence[SourceDeclaration]]:
        """Give every version that was declared of every connector, the newest last."""
        return self._reader.catalog().versions

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
        return tuple(self._reader.catalog().connections.values())

    async def rename_connection(self, connection_id: ConnectionId, display_name: str) -> Connection:
        """Give a connection another name."""
        await self._writer.run(lambda database: accounts.rename(database, connection_id, display_name))
        renamed = self._reader.read(lambda _, catalog: catalog.connections.get(connection_id))
        if renamed is None:
            raise ConnectionNotFound
        return renamed

    async def delete_connection(self, connection_id: ConnectionId) -> None:
        """Remove a connection with all its records."""
        await self._writer.run_alone(lambda database: accounts.delete(database, connection_id), is_small=True)

    async def ingest(self, batch: Batch) -> IngestReport:
        """Store a batch, whole and durably, before this returns."""
        catalog = self._reader.catalog()
        # Reading lines takes a while; in a thread it does not block the event loop.
        checked = await asyncio.to_thread(_check, batch, catalog)
        report = await self._writer.run(lambda database: ingest.take(database, checked))
        self._report_texts()
        return report

    async def marked(
        self, connection_id: ConnectionId, stream: StreamName, *, after: int, limit: int
    ) -> MarkedRecords:
        """List records that are stored although they break their stream's schema."""
        return self._reader.read(
            lambda database, catalog: marked_records(
                database, catalog, connection_id, stream, after=after, limit=limit
            )
        )

    async def delete_record(
        self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
    ) -> bool:
        """Remove a record; a tombstone stays for readers that had seen it. Says whether it was there."""
        was_there = await self._writer.run(
            lambda database: ingest.delete(database, connection_id, stream, record_id, at=at), is_small=True
        )
        self._report_texts()
        return was_there

    async def rules(self) -> tuple[HidingRule, ...]:
        """Give the owner's rules on what no client ever sees, the oldest first."""
        return self._reader.catalog().rules

    async def count_found(self, rule: HidingRule) -> RuleCount:
        """Count the records that a rule finds, whether it is one of the owner's or not."""
        return await asyncio.to_thread(
            self._scan, lambda database, catalog: hiding.count(database, catalog, rule)
        )

    async def hidden_counts(self) -> Mapping[RuleId, int]:
        """Count what each rule hides."""
        return await asyncio.to_thread(self._scan, hiding.hidden_counts)

    async def add_rule(self, rule: HidingRule, *, at: int) -> int:
        """Add a rule; when this returns no client can see what it finds. Gives how many records it hid."""
        found = await asyncio.to_thread(
            self._scan, lambda database, catalog: hiding.find(database, catalog, rule)
        )
        hidden = await self._writer.run_alone(lambda database: hiding.add(database, rule, found, at=at))
        self._report_texts()
        return hidden

    async def remove_rule(self, rule_id: RuleId, *, at: int) -> int:
        """Remove a rule. Gives how many records clients may see again, as far as their grants go."""
        shown = await self._writer.run_alone(lambda database: hiding.remove(database, rule_id, at=at))
        self._report_texts()
        return shown

    def _scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Read the whole store in this thread, on a connection for this alone, however long it takes."""
        database = open_reader(self._path, register=_prepare)
        try:
            with translate_errors(), database.reading(math.inf):
                return work(database, current(database, Catalog()))
        finally:
            database.db.close()

    async def put_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; gives its id and size."""
        # A file that no record can ever refer to would never be removed.
        self._writer.refuse_without_room()
        with translate_errors():
            blob_id, size = await self._files.write(content)
        await self._writer.run(lambda database: accounts.note_blob(database, blob_id, mime_type, size))
        return blob_id, size

    async def state(self, connection_id: ConnectionId) -> bytes | None:
        """Give the document that a collector last stored for itself, as JSON."""
        return self._reader.read(lambda database, _: accounts.state(database, connection_id))

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Store a document for a collector, to be read by its next run."""
        await self._writer.run(lambda database: accounts.put_state(database, connection_id, document))

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left for idle tasks to do."""
        return self._writer.is_settled

    def _report_texts(self) -> None:
        if self._vectors is not None:
            self._vectors.report()

    async def wait_for_vectors(self, seconds: float) -> bool:
        """Wait until all that is stored can be found by meaning; returns whether it can."""
        return self._vectors is None or await asyncio.to_thread(self._vectors.wait, seconds)

    async def close(self) -> None:
        """Finish what is under way, and move the WAL into the file."""
        if self._vectors is not None:
            await asyncio.to_thread(self._vectors.close)
        self._reader.close()
        await asyncio.to_thread(self._columns.close)
        await asyncio.to_thread(self._search.close)
        await self._writer.close()


def _asked(model: MeaningModel, plan: SearchPlan) -> AskedMeaning:
    (vector,) = model.vectors([question_text(plan.terms)])
    embedder = model.embedder
    return AskedMeaning(vector, embedder.least_similarity, embedder.weight, model_key(embedder.identity))


def _check(batch: Batch, catalog: Catalog) -> ingest.CheckedBatch:
    with memory.alone():
        memory.require(_READ_BYTES)
        return ingest.check(batch, catalog)
