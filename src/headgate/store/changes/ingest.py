"""Store batches: one transaction holds a whole batch, with everything that is stored beside its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import msgspec

from headgate.errors import IdempotencyConflict, InvalidRecord
from headgate.model.declaration import Semantics
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.instants import DAY_US
from headgate.model.record import Op
from headgate.model.rows import Batch, IngestReport, LineError, OnInvalid, RecordProblem
from headgate.policy.hiding import Hider
from headgate.store.changes.record_check import RecordCheck
from headgate.store.changes.shelf_changes import ShelfPair
from headgate.store.format.lines import Incoming, read_line
from headgate.store.format.streams import StreamTable
from headgate.store.sql.catalog import Catalog, current
from headgate.store.sql.database import Database

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
    """Read a batch's lines; bad ones are reported, and the others are stored."""
    stream = catalog.stream_of(batch.connection_id, batch.stream)
    problems_of = RecordCheck(stream).problems
    hider = Hider(catalog.rules, batch.stream)
    incoming: list[Incoming] = []
    errors: list[LineError] = []
    invalid: list[LineError] = []
    for index, line in enumerate(batch.lines):
        outcome = read_line(index, line, stream.declaration, received_at=batch.received_at)
        if isinstance(outcome, LineError):
            errors.append(outcome)
            continue
        if hider.hides(outcome.values):
            outcome = replace(outcome, is_hidden=True)
        if outcome.op is Op.DELETE or not (problems := problems_of(outcome.values)):
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
    """Write a checked batch, inside the writer's transaction."""
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
        database.run(database.sql["insert_idempotent_report"], values)
    return report


def delete(
    database: Database, connection_id: ConnectionId, stream: StreamName, record_id: RecordId, *, at: int
) -> bool:
    """Remove one record, inside the writer's transaction; returns whether it was there."""
    catalog = current(database)
    table = catalog.stream_of(connection_id, stream)
    shelves = catalog.shelves_at(connection_id, stream)
    if not any(database.one(database.sql["live_record"], (shelf.sid, record_id)) for shelf in shelves):
        return False
    line = Incoming(record_id, Op.DELETE, at, b"", {})
    _write(database, CheckedBatch(Batch(connection_id, stream, (), at), table, catalog.number, [line]))
    return True


def _by_current_declaration(database: Database, checked: CheckedBatch) -> CheckedBatch:
    """Check a batch again if anything was declared or deleted while it waited its turn."""
    if checked.catalog == database.value(database.sql["catalog_number"]):
        return checked
    return check(checked.batch, current(database))


def _earlier_report(database: Database, key: str, digest: bytes, now: int) -> IngestReport | None:
    database.run(database.sql["delete_expired_keys"], (now,))
    row = database.one(database.sql["idempotent_report"], (key,))
    if row is None:
        return None
    if row[0] != digest:
        raise IdempotencyConflict
    return msgspec.msgpack.decode(row[1], type=IngestReport)


def _write(database: Database, checked: CheckedBatch) -> None:
    batch = checked.batch
    is_append_only = checked.stream.declaration.semantics is Semantics.APPEND_ONLY
    # Where a batch names a record twice the last line counts.
    items = {item.id: item for item in checked.incoming}
    if is_append_only:
        items = _first_of_each(checked.incoming)
    pair = ShelfPair(database, checked.stream, batch.connection_id, batch.received_at)
    stored = pair.stored(items)
    if is_append_only:
        # What an append-only stream holds stays as it is, unless this batch removes it.
        cleared = {item.id for item in checked.incoming if item.op is Op.DELETE}
        live = {key for known in stored.values() for key, old in known.items() if not old.is_deleted}
        items = {key: item for key, item in items.items() if key in cleared or key not in live}
    pair.put(items, stored)


def _first_of_each(incoming: Iterable[Incoming]) -> dict[RecordId, Incoming]:
    """In an append-only stream the first line counts, unless a later one removes the record."""
    items: dict[RecordId, Incoming] = {}
    for item in incoming:
        waiting = items.get(item.id)
        if waiting is None or waiting.op is Op.DELETE or item.op is Op.DELETE:
            items[item.id] = item
    return items
