"""What a store can do, in terms of plans. Engines implement it; other packages know only this.

Every method that reads takes a plan that has passed policy. A store decides nothing: it selects, compares,
counts and ranks exactly what the plan's reach allows.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.model.declaration import SourceDeclaration
from headgate.model.hiding import HidingRule, RuleCount, RuleId
from headgate.model.ids import BlobId, ConnectionId, ConnectorKey, RecordId, StreamName
from headgate.model.plan import (
    AggregatePlan,
    BlobPlan,
    ChangesPlan,
    KeyPlan,
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
    MarkedRecords,
    OnInvalid,
    Page,
    SearchPage,
    ShelfSummary,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """Lines of NDJSON for one stream of one connection, as they came in."""

    connection_id: ConnectionId
    stream: StreamName
    lines: Sequence[bytes]
    #: Microseconds since 1970: when the batch came in.
    received_at: int
    #: Makes a repeated batch answer as the first one did, instead of being taken again.
    idempotency_key: str | None = None
    on_invalid: OnInvalid = OnInvalid.REJECT


class RecordReader(Protocol):
    """Read records by plan."""

    async def record(self, plan: RecordPlan) -> tuple[Record, ...]:
        """Find one record in each connection of the reach that has it."""
        ...

    async def key(self, plan: KeyPlan) -> RecordId | None:
        """Find the key of a record by its beginning and its digest; None if no record of the reach has it."""
        ...

    async def page(self, plan: PagePlan) -> Page:
        """Read a page, merged over the connections of the reach."""
        ...

    async def changes(self, plan: ChangesPlan) -> Changes:
        """Read what changed in the projection that the reach allows.

        Raises:
            CursorExpired: changes since then are no longer known.
        """
        ...

    async def aggregate(self, plan: AggregatePlan) -> Aggregate:
        """Compute a number, or one for each group, exactly."""
        ...

    async def search(self, plan: SearchPlan) -> SearchPage:
        """Find records by words; only visible text matches or ranks."""
        ...

    async def window(self, plan: WindowPlan) -> tuple[FieldWindow, ...]:
        """Read a part of a field, in each connection of the reach that has the record.

        Raises:
            FieldNotFound: the record has no value there.
            FieldNotText: the value is no text, nor an object or a list that is read as JSON.
            QueryNotFound: the text sought does not occur.
        """
        ...

    async def blobs(self, plan: BlobPlan) -> tuple[FoundBlob, ...]:
        """Find a file through the visible records that refer to it, at most one for each connection."""
        ...

    def read_blob(self, blob_id: BlobId, *, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Read a file's bytes in pieces. Ask only for a file that `blobs` has found."""
        ...

    async def summaries(self, reaches: Sequence[Reach]) -> tuple[ShelfSummary, ...]:
        """Count what each connection holds, as far as the reaches go."""
        ...


class RecordWriter(Protocol):
    """Store records, and what is known about where they come from."""

    @property
    def is_writable(self) -> bool:
        """Whether anything can be stored; if not, every write raises StorageReadOnly."""
        ...

    async def declare(self, connector_key: ConnectorKey, document: Mapping[str, Any]) -> SourceDeclaration:
        """Register a declaration; a new version adds columns and changes nothing that is there.

        Raises:
            InvalidDeclaration: it breaks a rule, or gives an old version a new meaning.
        """
        ...

    async def catalog_version(self) -> int:
        """Give a number that is larger after anything was declared, connected, renamed or removed."""
        ...

    async def declarations(self) -> Mapping[ConnectorKey, SourceDeclaration]:
        """Give the newest declaration of every connector."""
        ...

    async def declared_versions(self) -> Mapping[ConnectorKey, Sequence[SourceDeclaration]]:
        """Give every version that was declared of every connector, the newest last."""
        ...

    async def create_connection(self, connector_key: ConnectorKey, display_name: str) -> Connection:
        """Add a connection of a declared connector."""
        ...

    async def connections(self) -> tuple[Connection, ...]:
        """Give every connection, oldest first."""
        ...

    async def rename_connection(self, connection_id: ConnectionId, display_name: str) -> Connection:
        """Give a connection another name."""
        ...

    async def delete_connection(self, connection_id: ConnectionId) -> None:
        """Remove a connection with all its records."""
        ...

    async def ingest(self, batch: Batch) -> IngestReport:
        """Store a batch, whole and durably, before this returns.

        Raises:
            StorageFull: there is no room; nothing of the batch was stored.
            IdempotencyConflict: the key was used with another body.
        """
        ...

    async def marked(
        self, connection_id: ConnectionId, stream: StreamName, *, after: int, limit: int
    ) -> MarkedRecords:
        """List records that are stored although they break their stream's schema."""
        ...

    async def delete_record(
        self, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
    ) -> bool:
        """Remove a record; a tombstone stays for readers that had seen it. Says whether it was there."""
        ...

    async def rules(self) -> tuple[HidingRule, ...]:
        """Give the owner's rules on what no client ever sees, the oldest first."""
        ...

    async def count_found(self, rule: HidingRule) -> RuleCount:
        """Count the records that a rule finds, whether it is one of the owner's or not."""
        ...

    async def hidden_counts(self) -> Mapping[RuleId, int]:
        """Count what each rule hides."""
        ...

    async def add_rule(self, rule: HidingRule, *, at: int) -> int:
        """Add a rule; when this returns no client can see what it finds. Gives how many records it hid.

        Raises:
            ResourceLimit: there are as many rules as there may be.
        """
        ...

    async def remove_rule(self, rule_id: RuleId, *, at: int) -> int:
        """Remove a rule. Gives how many records clients may see again, as far as their grants go.

        Raises:
            NotFound: there is no such rule.
        """
        ...

    async def put_blob(self, content: AsyncIterator[bytes], mime_type: str) -> tuple[BlobId, int]:
        """Store a file under the digest of its content; gives its id and size."""
        ...

    async def state(self, connection_id: ConnectionId) -> bytes | None:
        """Give the document that a collector last stored for itself, as JSON."""
        ...

    async def put_state(self, connection_id: ConnectionId, document: bytes) -> None:
        """Store a document for a collector, to be read by its next run."""
        ...


class Store(RecordReader, RecordWriter, Protocol):
    """A whole store."""

    async def close(self) -> None:
        """Finish what is under way, and move the WAL into the file."""
        ...
