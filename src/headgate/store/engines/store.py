"""A store over tables: what each method does with the connections that an engine gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from headgate import memory
from headgate.errors import (
    ConnectionNotFound,
    ModelUnavailable,
    StorageUnusable,
    StreamNotDeclared,
    Unsupported,
)
from headgate.model.declaration import SourceDeclaration
from headgate.model.hiding import HidingRule, RuleCount, RuleId
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName
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
    Batch,
    Changes,
    FieldWindow,
    FoundBlob,
    IngestReport,
    MarkedRecords,
    Page,
    SearchPage,
    ShelfSummary,
)
from headgate.store.changes import accounts, declare, hiding, ingest
from headgate.store.changes.vector_making import VectorStore, VectorThread, model_key
from headgate.store.changes.writer import NoWriter, Writer
from headgate.store.models.model import MeaningModel
from headgate.store.queries.aggregates import aggregate
from headgate.store.queries.changes import changes
from headgate.store.queries.pages import find_key, looks_at_all, page
from headgate.store.queries.rows import marked_records
from headgate.store.queries.summaries import summaries
from headgate.store.queries.windows import find_blobs, windows
from headgate.store.search.counting import aggregate_texts
from headgate.store.search.find import find
from headgate.store.search.meaning import AskedMeaning, SearchMemory, question_text
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.tasks import Supervisor

#: What must be left, beside the reserve, when a thread begins to read.
READ_BYTES = 16 * 1024 * 1024
_T = TypeVar("_T")


class Readers(Protocol):
    """The connections that read, and the threads that they belong to."""

    async def find(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record: the shortest read there is, and the most frequent."""
        ...

    async def short(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do a short read in one state of the store."""
        ...

    async def long(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do a read that may look at every record of a stream, in a thread for such reads."""
        ...

    async def searching(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Do a search, in the thread that what searches remember belongs to."""
        ...

    async def scan(self, work: Callable[[Database, Catalog], _T]) -> _T:
        """Read the whole store, on a connection for this alone, however long it takes."""
        ...

    async def catalog(self) -> Catalog:
        """Return the catalog as of now."""
        ...

    async def close(self) -> None:
        """Close the connections and end the threads."""


class BlobContents(Protocol):
    """Where the bytes of files lie."""

    async def write(self, content: AsyncIterator[bytes]) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; returns its id and size."""
        ...

    def read(self, blob_id: BlobId, start: int, end: int | None) -> AsyncIterator[bytes]:
        """Read a file's bytes in pieces."""
        ...

    async def exists(self, blob_id: BlobId) -> bool:
        """Return whether the bytes of a file are there."""
        ...


class Store:
    """A whole store; with a model, it can be searched by meaning.

    Every method that reads takes a plan that has passed policy. A store decides nothing: it selects, compares,
    counts and ranks exactly what the plan's reach allows.
    """

    def __init__(
        self,
        readers: Readers,
        writer: Writer | NoWriter,
        files: BlobContents,
        now: Callable[[], int],
        meaning: tuple[MeaningModel, VectorStore | None] | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._readers = readers
        self._writer = writer
        self._files = files
        self._now = now
        #: Used in the thread of searches alone.
        self._memory = SearchMemory()
        self._model = None if meaning is None else meaning[0]
        self._vectors: VectorThread | None = None
        if meaning is not None and meaning[1] is not None:
            self._vectors = VectorThread(meaning[1], meaning[0], supervisor or Supervisor())

    # Reading

    async def record(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record in each connection of the reach that has it."""
        return await self._readers.find(plan)

    async def key(self, plan: KeyPlan) -> RecordId | None:
        """Find the key of a record by its beginning and its digest; None if no record of the reach has it."""
        # Many can have the same beginning, so this is not done in the event loop.
        return await self._readers.searching(lambda database, catalog: find_key(database, catalog, plan))

    async def page(self, plan: PagePlan) -> Page:
        """Read a page, merged over the connections of the reach."""
        read = self._readers.long if looks_at_all(plan) else self._readers.short
        return await read(lambda database, catalog: page(database, catalog, plan))

    async def changes(self, plan: ChangesPlan) -> Changes:
        """Read what changed in the projection that the reach allows."""
        return await self._readers.short(lambda database, catalog: changes(database, catalog, plan))

    async def aggregate(self, plan: AggregatePlan) -> Aggregate:
        """Compute a number, or one for each group, exactly."""
        if plan.reads_texts:
            return await self._readers.searching(
                lambda database, catalog: aggregate_texts(database, catalog, self._memory.segments, plan)
            )
        return await self._readers.long(lambda database, catalog: aggregate(database, catalog, plan))

    async def search(self, plan: SearchPlan) -> SearchPage:
        """Find records by words or by meaning; only visible text matches or ranks."""
        question = None
        if plan.mode is not SearchMode.LEXICAL:
            if self._model is None:
                raise Unsupported(param="mode")
            # The model may have to be loaded first, and other searches need not wait for it.
            try:
                question = await asyncio.to_thread(_asked, self._model, plan)
            except ModelUnavailable:
                if not plan.or_words:
                    raise
        return await self._readers.searching(
            lambda database, catalog: find(database, catalog, self._memory, plan, question)
        )

    async def window(self, plan: WindowPlan) -> tuple[FieldWindow, ...]:
        """Read a part of a field, in each connection of the reach that has the record."""
        if isinstance(plan.window, MatchWindow):
            return await self._readers.searching(lambda database, catalog: windows(database, catalog, plan))
        return await self._readers.short(lambda database, catalog: windows(database, catalog, plan))

    async def blobs(self, plan: BlobPlan) -> tuple[FoundBlob, ...]:
        """Find a file through the visible records that refer to it, at most one for each connection."""
        return await self._readers.short(lambda database, catalog: find_blobs(database, catalog, plan))

    def read_blob(self, blob_id: BlobId, *, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Read a file's bytes in pieces. Ask only for a file that `blobs` has found."""
        return self._files.read(blob_id, start, end)

    async def summaries(self, reaches: Sequence[Reach]) -> tuple[ShelfSummary, ...]:
        """Count what each connection holds, as far as the reaches go."""
        return await self._readers.long(lambda database, catalog: summaries(database, catalog, reaches))

    # Writing

    @property
    def is_writable(self) -> bool:
        """Whether anything can be stored; if not, every write raises StorageReadOnly."""
        return self._writer.is_able

    async def declare(self, connector_key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
        """Register a declaration; a new version adds columns and changes nothing that is there."""
        declared = await self._writer.run_alone(
            lambda database: declare.declare(database, connector_key, document)
        )
        self._report_texts()
        return declared

    async def catalog_version(self) -> int:
        """Return a number that is larger after anything was declared, connected, renamed or removed."""
        return (await self._readers.catalog()).number

    async def declarations(self) -> Mapping[ConnectorKey, SourceDeclaration]:
        return (await self._readers.catalog()).declarations

    async def declared_versions(self) -> Mapping[ConnectorKey, Sequence[SourceDeclaration]]:
        """Return every version that was declared of every connector, the newest last."""
        return (await self._readers.catalog()).versions

    async def create_connection(self, connector_key: ConnectorKey, display_name: str) -> Connection:
        """Add a connection; its id is made from its name, and stays when the name changes."""
        if connector_key not in await self.declarations():
            raise StreamNotDeclared(f"There is no declaration for '{connector_key}'.")
        at = self._now()
        return await self._writer.run(
            lambda database: accounts.create(database, connector_key, display_name, at=at)
        )

    async def connections(self) -> tuple[Connection, ...]:
        """Return every connection, oldest first."""
        return tuple((await self._readers.catalog()).connections.values())

    async def rename_connection(self, connection_id: ConnectionId, display_name: str) -> Connection:
        await self._writer.run(lambda database: accounts.rename(database, connection_id, display_name))
        renamed = await self._readers.short(lambda _, catalog: catalog.connections.get(connection_id))
        if renamed is None:
            raise ConnectionNotFound
        return renamed

    async def delete_connection(self, connection_id: ConnectionId) -> None:
        """Remove a connection with all its records."""
        await self._writer.run_alone(lambda database: accounts.delete(database, connection_id), is_small=True)

    async def ingest(self, batch: Batch) -> IngestReport:
        """Store a batch, whole and durably, before this returns."""
        catalog = await self._readers.catalog()
        # Reading lines takes a while; in a thread it does not block the event loop.
        checked = await asyncio.to_thread(_check, batch, catalog)
        report = await self._writer.run(lambda database: ingest.take(database, checked))
        self._report_texts()
        return report

    async def marked(
        self, connection_id: ConnectionId, stream: StreamName, *, after: int, limit: int
    ) -> MarkedRecords:
        """List records that are stored although they break their stream's schema."""
        return await self._readers.short(
            lambda database, catalog: marked_records(
                database, catalog, connection_id, stream, after=after, limit=limit
            )
        )

    async def delete_record(
        self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
    ) -> bool:
        """Remove a record; a tombstone stays for readers that had seen it; returns whether it was there."""
        was_there = await self._writer.run(
            lambda database: ingest.delete(database, connection_id, stream, record_id, at=at), is_small=True
        )
        self._report_texts()
        return was_there

    async def rules(self) -> tuple[HidingRule, ...]:
        """Return the owner's rules on what no client ever sees, the oldest first."""
        return (await self._readers.catalog()).rules

    async def count_found(self, rule: HidingRule) -> RuleCount:
        """Count the records that a rule finds, whether it is one of the owner's or not."""
        return await self._readers.scan(lambda database, catalog: hiding.count(database, catalog, rule))

    async def hidden_counts(self) -> Mapping[RuleId, int]:
        return await self._readers.scan(hiding.hidden_counts)

    async def add_rule(self, rule: HidingRule, *, at: int) -> int:
        """Add a rule; when this returns no client can see what it finds. Returns how many records it hid."""
        matches = await self._readers.scan(lambda database, catalog: hiding.find(database, catalog, rule))
        hidden = await self._writer.run_alone(lambda database: hiding.add(database, rule, matches, at=at))
        self._report_texts()
        return hidden

    async def remove_rule(self, rule_id: RuleId, *, at: int) -> int:
        """Remove a rule. Returns how many records clients may see again, as far as their grants go.

        Raises:
            NotFound: there is no such rule.
        """
        count = await self._writer.run_alone(lambda database: hiding.remove(database, rule_id, at=at))
        self._report_texts()
        return count

    async def put_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; returns its id and size."""
        self._writer.refuse_without_room()
        blob_id, size = await self._files.write(content)
        at = self._now()
        await self._writer.run(lambda database: accounts.note_blob(database, blob_id, mime_type, size, at=at))
        if not await self._files.exists(blob_id):
            # The same file was stored before, no record used it, and it was removed in this moment.
            raise StorageUnusable("The file was removed while it was stored.", hint="Send it again.")
        return blob_id, size

    async def state(self, connection_id: ConnectionId) -> bytes | None:
        """Return the document that a collector last stored for itself, as JSON."""
        return await self._readers.short(lambda database, _: accounts.state(database, connection_id))

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
        """Finish what is under way, and close every connection."""
        if self._vectors is not None:
            await asyncio.to_thread(self._vectors.close)
        await self._readers.close()
        await self._writer.close()


def _asked(model: MeaningModel, plan: SearchPlan) -> AskedMeaning:
    (vector,) = model.vectors([question_text(plan.terms)])
    embedder = model.embedder
    return AskedMeaning(vector, embedder.least_similarity, embedder.weight, model_key(embedder.identity))


def _check(batch: Batch, catalog: Catalog) -> ingest.CheckedBatch:
    with memory.alone():
        memory.require(READ_BYTES)
        return ingest.check(batch, catalog)
