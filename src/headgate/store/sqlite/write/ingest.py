"""Store batches: one transaction holds a whole batch, with everything that is stored beside its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from headgate.errors import IdempotencyConflict, ResourceLimit
from headgate.model.declaration import Semantics
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.record import Op
from headgate.model.rows import IngestReport, LineError
from headgate.store.lines import Incoming, read_line
from headgate.store.protocol import Batch
from headgate.store.sqlite.catalog import Catalog, StreamTable, current
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import MAX_SID
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.accounts import make_shelves
from headgate.store.sqlite.write.shelf_changes import ShelfChanges, stored_records

_KEEP_KEY_US = DAY_US


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch whose lines have been read, before the store is touched."""

    connection_id: ConnectionId
    stream: StreamTable
    #: Which catalog the stream was found in.
    catalog: int
    incoming: Sequence[Incoming]
    errors: tuple[LineError, ...]
    received_at: int
    idempotency_key: str | None
    body_digest: bytes


def check(batch: Batch, catalog: Catalog) -> CheckedBatch:
    """Read a batch's lines; bad ones are reported, and the others are stored.

    Raises:
        ConnectionNotFound: there is no such connection.
        StreamNotDeclared: its connector has no such stream.
    """
    stream = catalog.stream_of(batch.connection_id, batch.stream)
    incoming: list[Incoming] = []
    errors: list[LineError] = []
    for index, line in enumerate(batch.lines):
        outcome = read_line(index, line, stream.declaration, received_at=batch.received_at)
        if isinstance(outcome, Incoming):
            incoming.append(outcome)
        else:
            errors.append(outcome)
    digest = b"" if batch.idempotency_key is None else _batch_digest(batch)
    return CheckedBatch(
        batch.connection_id,
        stream,
        catalog.number,
        incoming,
        tuple(errors),
        batch.received_at,
        batch.idempotency_key,
        digest,
    )


def _batch_digest(batch: Batch) -> bytes:
    hashed = hashlib.sha256(f"{batch.connection_id}\0{batch.stream}\0".encode())
    for line in batch.lines:
        hashed.update(line)
        hashed.update(b"\n")
    return hashed.digest()


def take(database: Database, batch: CheckedBatch) -> IngestReport:
    """Write a checked batch, inside the writer's transaction.

    Raises:
        IdempotencyConflict: its key was used with another body.
    """
    known = _earlier_report(database, batch)
    if known is not None:
        return known
    if batch.incoming:
        _write(database, _with_current_stream(database, batch))
    report = IngestReport(len(batch.incoming), batch.errors)
    if batch.idempotency_key is not None:
        database.run(
            SQL["insert_idempotent_report"],
            (
                batch.idempotency_key,
                batch.body_digest,
                msgspec.msgpack.encode(report),
                batch.received_at + _KEEP_KEY_US,
            ),
        )
    return report


def delete(
    database: Database, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
) -> bool:
    """Remove one record, inside the writer's transaction; says whether it was there."""
    catalog = current(database, Catalog())
    table, shelf = catalog.stream_of(connection_id, stream), catalog.shelves.get((connection_id, stream))
    stored = None if shelf is None else stored_records(database, shelf.sid, [record_id]).get(record_id)
    if stored is None or stored.is_deleted:
        return False
    line = Incoming(record_id, Op.DELETE, at, b"", {})
    _write(database, CheckedBatch(connection_id, table, catalog.number, [line], (), at, None, b""))
    return True


def _with_current_stream(database: Database, batch: CheckedBatch) -> CheckedBatch:
    """Look a batch's stream up again if anything was declared or deleted while the batch waited its turn.

    Raises:
        ConnectionNotFound: the connection has gone.
        StreamNotDeclared: the stream has gone.
    """
    if batch.catalog == database.value(SQL["catalog_number"]):
        return batch
    catalog = current(database, Catalog())
    stream = catalog.stream_of(batch.connection_id, batch.stream.declaration.name)
    return replace(batch, stream=stream, catalog=catalog.number)


def _earlier_report(database: Database, batch: CheckedBatch) -> IngestReport | None:
    if batch.idempotency_key is None:
        return None
    database.run(SQL["delete_expired_keys"], (batch.received_at,))
    row = database.one(SQL["idempotent_report"], (batch.idempotency_key,))
    if row is None:
        return None
    if row[0] != batch.body_digest:
        raise IdempotencyConflict
    return msgspec.msgpack.decode(row[1], type=IngestReport)


def _write(database: Database, batch: CheckedBatch) -> None:
    changes = _shelf(database, batch)
    before = changes.seq
    is_append_only = batch.stream.declaration.semantics is Semantics.APPEND_ONLY
    items = _first_of_each(batch.incoming) if is_append_only else _last_of_each(batch.incoming)
    cleared = {item.id for item in batch.incoming if item.op is Op.DELETE} if is_append_only else None
    stored = stored_records(database, changes.sid, items)
    for key, item in items.items():
        old = stored.get(key)
        if old is None:
            if item.op is Op.UPSERT:
                changes.add(item)
        elif cleared is None or old.is_deleted or key in cleared:
            # What an append-only stream holds stays as it is, unless this very batch has removed it.
            changes.change(item, old)
    if changes.seq != before:
        changes.flush()


def _shelf(database: Database, batch: CheckedBatch) -> ShelfChanges:
    seq: int = database.value(SQL["change_number"])
    key = (batch.connection_id, batch.stream.stid)
    row = database.one(SQL["shelf_to_fill"], key)
    if row is None:
        make_shelves(database, batch.stream.connector_key)
        row = database.one(SQL["shelf_to_fill"], key)
    assert row is not None
    sid, next_n = row
    if sid > MAX_SID:
        raise ResourceLimit(f"A store holds at most {MAX_SID} streams of connections.")
    return ShelfChanges(database, batch.stream, sid, next_n, seq, batch.received_at)


def _last_of_each(incoming: Iterable[Incoming]) -> dict[RecordId, Incoming]:
    """When a batch names a record twice the last line counts."""
    return {item.id: item for item in incoming}


def _first_of_each(incoming: Iterable[Incoming]) -> dict[RecordId, Incoming]:
    """In an append-only stream the first line counts, unless a later one removes the record."""
    items: dict[RecordId, Incoming] = {}
    for item in incoming:
        waiting = items.get(item.id)
        if waiting is None or waiting.op is Op.DELETE or item.op is Op.DELETE:
            items[item.id] = item
    return items
