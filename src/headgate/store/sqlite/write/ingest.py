"""Store batches: one transaction holds a whole batch, with everything that is stored beside its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from headgate.errors import IdempotencyConflict, InvalidRecord, ResourceLimit
from headgate.model.declaration import Semantics
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.record import Op
from headgate.model.rows import IngestReport, LineError, OnInvalid, RecordProblem
from headgate.store.lines import Incoming, read_line
from headgate.store.protocol import Batch
from headgate.store.sqlite.catalog import Catalog, StreamTable, current
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import MAX_SID
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.accounts import make_shelves
from headgate.store.sqlite.write.record_check import RecordCheck
from headgate.store.sqlite.write.shelf_changes import ShelfChanges, stored_records

_KEEP_KEY_US = DAY_US


@dataclass(frozen=True, slots=True)
class CheckedBatch:
    """A batch whose lines have been read, before the store is touched."""

    batch: Batch
    stream: StreamTable
    #: Which catalog the stream was found in.
    catalog: int
    incoming: Sequence[Incoming]
    errors: tuple[LineError, ...] = ()
    #: Lines among the incoming ones that break the stream's schema.
    invalid: tuple[LineError, ...] = ()
    #: Of the lines, if the batch has an idempotency key.
    digest: bytes = b""


def check(batch: Batch, catalog: Catalog) -> CheckedBatch:
    """Read a batch's lines; bad ones are reported, and the others are stored.

    Raises:
        ConnectionNotFound: there is no such connection.
        StreamNotDeclared: its connector has no such stream.
    """
    stream = catalog.stream_of(batch.connection_id, batch.stream)
    problems_of = RecordCheck(stream).problems
    incoming: list[Incoming] = []
    errors: list[LineError] = []
    invalid: list[LineError] = []
    for index, line in enumerate(batch.lines):
        outcome = read_line(index, line, stream.declaration, received_at=batch.received_at)
        if isinstance(outcome, LineError):
            errors.append(outcome)
        elif outcome.op is Op.DELETE or not (problems := problems_of(outcome.values)):
            incoming.append(outcome)
        elif batch.on_invalid is OnInvalid.KEEP:
            incoming.append(replace(outcome, problems=problems))
            invalid.append(_line_error(index, problems))
        else:
            errors.append(_line_error(index, problems))
    digest = b"" if batch.idempotency_key is None else _batch_digest(batch)
    return CheckedBatch(batch, stream, catalog.number, incoming, tuple(errors), tuple(invalid), digest)


def _line_error(index: int, problems: Sequence[RecordProblem]) -> LineError:
    first, *others = problems
    more = f" (and {len(others)} more)" if others else ""
    return LineError(index, InvalidRecord.code, f"{first.message}{more}", first.pointer)


def _batch_digest(batch: Batch) -> bytes:
    hashed = hashlib.sha256(f"{batch.connection_id}\0{batch.stream}\0{batch.on_invalid}\0".encode())
    for line in batch.lines:
        hashed.update(line)
        hashed.update(b"\n")
    return hashed.digest()


def take(database: Database, checked: CheckedBatch) -> IngestReport:
    """Write a checked batch, inside the writer's transaction.

    Raises:
        IdempotencyConflict: its key was used with another body.
    """
    key, received_at = checked.batch.idempotency_key, checked.batch.received_at
    known = None if key is None else _earlier_report(database, key, checked.digest, received_at)
    if known is not None:
        return known
    checked = _by_current_declaration(database, checked)
    if checked.incoming:
        _write(database, checked)
    report = IngestReport(len(checked.incoming), checked.errors, checked.invalid)
    if key is not None:
        values = (key, checked.digest, msgspec.msgpack.encode(report), received_at + _KEEP_KEY_US)
        database.run(SQL["insert_idempotent_report"], values)
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
    _write(database, CheckedBatch(Batch(connection_id, stream, (), at), table, catalog.number, [line]))
    return True


def _by_current_declaration(database: Database, checked: CheckedBatch) -> CheckedBatch:
    """Check a batch again if anything was declared or deleted while it waited its turn.

    Raises:
        ConnectionNotFound: the connection has gone.
        StreamNotDeclared: the stream has gone.
    """
    if checked.catalog == database.value(SQL["catalog_number"]):
        return checked
    return check(checked.batch, current(database, Catalog()))


def _earlier_report(database: Database, key: str, digest: bytes, now: int) -> IngestReport | None:
    database.run(SQL["delete_expired_keys"], (now,))
    row = database.one(SQL["idempotent_report"], (key,))
    if row is None:
        return None
    if row[0] != digest:
        raise IdempotencyConflict
    return msgspec.msgpack.decode(row[1], type=IngestReport)


def _write(database: Database, checked: CheckedBatch) -> None:
    changes = _shelf(database, checked)
    before = changes.seq
    is_append_only = checked.stream.declaration.semantics is Semantics.APPEND_ONLY
    items = _first_of_each(checked.incoming) if is_append_only else _last_of_each(checked.incoming)
    cleared = {item.id for item in checked.incoming if item.op is Op.DELETE} if is_append_only else None
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


def _shelf(database: Database, checked: CheckedBatch) -> ShelfChanges:
    seq: int = database.value(SQL["change_number"])
    key = (checked.batch.connection_id, checked.stream.stid)
    row = database.one(SQL["shelf_to_fill"], key)
    if row is None:
        make_shelves(database, checked.stream.connector_key)
        row = database.one(SQL["shelf_to_fill"], key)
    assert row is not None
    sid, next_n = row
    if sid > MAX_SID:
        raise ResourceLimit(f"A store holds at most {MAX_SID} streams of connections.")
    return ShelfChanges(database, checked.stream, sid, next_n, seq, checked.batch.received_at)


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
