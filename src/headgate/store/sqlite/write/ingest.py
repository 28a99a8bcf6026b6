"""Take batches in: one transaction holds a batch whole, with everything that is kept beside its records."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

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
from headgate.store.sqlite.row_numbers import MAX_N, MAX_SID, RID_SHIFT
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write import derive, long_texts
from headgate.store.sqlite.write.accounts import make_shelves
from headgate.store.sqlite.write.long_texts import long_notes, values_of

_KEEP_KEY_US = DAY_US
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Checked:
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


def check(batch: Batch, catalog: Catalog) -> Checked:
    """Read a batch's lines; bad ones are told, good ones go on.

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
    return Checked(
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


@dataclass(slots=True)
class _Work:
    """Rows to be written for one batch, each list in the order its table likes best."""

    records: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    updates: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    typed: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    texts: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    old_texts: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    lives: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    chunks: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    blobs: list[tuple[Any, ...]] = field(default_factory=list[tuple[Any, ...]])
    #: Records whose chunks and file uses are replaced, and records that are gone.
    replaced: list[tuple[int]] = field(default_factory=list[tuple[int]])
    gone: list[tuple[int]] = field(default_factory=list[tuple[int]])


@dataclass(slots=True)
class _Shelf:
    sid: int
    next_n: int
    seq: int
    received_at: int
    live: int = 0


def take(database: Database, batch: Checked) -> IngestReport:
    """Write a checked batch, inside the writer's transaction.

    Raises:
        IdempotencyConflict: its key was used with another body.
    """
    known = _answered_before(database, batch)
    if known is not None:
        return known
    if batch.incoming:
        _write(database, _brought_up_to_date(database, batch))
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
    stored = None if shelf is None else _stored(database, shelf.sid, [record_id]).get(record_id)
    if stored is None or stored.is_deleted:
        return False
    line = Incoming(record_id, Op.DELETE, at, b"", {})
    _write(database, Checked(connection_id, table, catalog.number, [line], (), at, None, b""))
    return True


def _brought_up_to_date(database: Database, batch: Checked) -> Checked:
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


def _answered_before(database: Database, batch: Checked) -> IngestReport | None:
    if batch.idempotency_key is None:
        return None
    database.run(SQL["delete_expired_keys"], (batch.received_at,))
    row = database.one(SQL["idempotent_report"], (batch.idempotency_key,))
    if row is None:
        return None
    if row[0] != batch.body_digest:
        raise IdempotencyConflict
    return msgspec.msgpack.decode(row[1], type=IngestReport)


def _write(database: Database, batch: Checked) -> None:
    stream = batch.stream
    shelf = _shelf(database, batch)
    before = shelf.seq
    is_append_only = stream.declaration.semantics is Semantics.APPEND_ONLY
    items = _first_of_each(batch.incoming) if is_append_only else _last_of_each(batch.incoming)
    cleared = {item.id for item in batch.incoming if item.op is Op.DELETE} if is_append_only else None
    work = _Work()
    old = _stored(database, shelf.sid, items)
    for key, item in items.items():
        row = old.get(key)
        if row is None:
            if item.op is Op.UPSERT:
                _add(stream, shelf, item, work)
        elif cleared is None or row.is_deleted or key in cleared:
            # What an append-only stream holds stays as it is, unless this very batch has removed it.
            _change(database, stream, shelf, item, row, work)
    if shelf.seq == before:
        return
    _flush(database, stream, work)
    database.run(
        SQL["update_shelf"],
        (shelf.next_n, shelf.live, shelf.seq, batch.received_at, shelf.sid),
    )
    database.run(SQL["set_change_number"], (shelf.seq,))


def _shelf(database: Database, batch: Checked) -> _Shelf:
    seq: int = database.value(SQL["change_number"])
    key = (batch.connection_id, batch.stream.stid)
    row = database.one(SQL["shelf_to_fill"], key)
    if row is None:
        make_shelves(database, batch.stream.connector_key)
        row = database.one(SQL["shelf_to_fill"], key)
    assert row is not None
    if row[0] > MAX_SID:
        raise ResourceLimit(f"A store holds at most {MAX_SID} streams of connections.")
    return _Shelf(row[0], row[1], seq, batch.received_at)


def _last_of_each(incoming: Iterable[Incoming]) -> dict[RecordId, Incoming]:
    """When a batch names a record twice the last line counts."""
    return {item.id: item for item in incoming}


def _first_of_each(incoming: Iterable[Incoming]) -> dict[RecordId, Incoming]:
    """In an append-only stream the first line counts, until the record is removed."""
    items: dict[RecordId, Incoming] = {}
    for item in incoming:
        waiting = items.get(item.id)
        if waiting is None or waiting.op is Op.DELETE or item.op is Op.DELETE:
            items[item.id] = item
    return items


@dataclass(frozen=True, slots=True)
class _Stored:
    rid: int
    born_seq: int
    ts: int | None
    is_deleted: bool
    changed: bytes | None
    long: bytes | None
    digest: bytes
    body: bytes | None


def _stored(database: Database, sid: int, keys: Iterable[str]) -> dict[str, _Stored]:
    rows = database.all(
        SQL["stored_records"],
        (sid, msgspec.json.encode(list(keys)).decode()),
    )
    return {row[0]: _Stored(row[1], row[2], row[3], bool(row[4]), *row[5:]) for row in rows}


def _add(stream: StreamTable, shelf: _Shelf, item: Incoming, work: _Work) -> None:
    if shelf.next_n > MAX_N:
        raise ResourceLimit(f"One stream of one connection holds at most {MAX_N} records.")
    shelf.seq += 1
    shelf.live += 1
    rid = shelf.sid << RID_SHIFT | shelf.next_n
    shelf.next_n += 1
    keep = long_texts.split_body(stream, item.body, item.values)
    ts = derive.ts_of(stream, item.values)
    work.records.append(
        (
            rid,
            shelf.sid,
            item.id,
            shelf.seq,
            shelf.seq,
            derive.sort_of(stream, item.values),
            ts,
            item.emitted_at,
            keep.long,
            derive.digest_of(item.id, keep.long, keep.body),
            keep.body,
        )
    )
    _beside(stream, rid, ts, item, keep, work)


def _change(
    database: Database, stream: StreamTable, shelf: _Shelf, item: Incoming, old: _Stored, work: _Work
) -> None:
    if item.op is Op.DELETE:
        if not old.is_deleted:
            _remove(database, stream, shelf, item.emitted_at, old, work)
        return
    keep = long_texts.split_body(stream, item.body, item.values)
    digest = derive.digest_of(item.id, keep.long, keep.body)
    if not old.is_deleted and digest == old.digest:
        return
    changed = _changed_fields(old, keep)
    if not old.is_deleted and not changed:
        return
    shelf.seq += 1
    shelf.live += old.is_deleted
    ts = derive.ts_of(stream, item.values)
    if old.is_deleted or ts != old.ts:
        work.lives.append((old.rid, shelf.seq, not old.is_deleted, old.ts, shelf.received_at))
    if not old.is_deleted:
        _forget_text(database, stream, old, work)
    work.replaced.append((old.rid,))
    work.updates.append(
        (
            old.rid,
            shelf.seq,
            derive.sort_of(stream, item.values),
            ts,
            item.emitted_at,
            0,
            _change_numbers(old, changed, shelf.seq),
            keep.long,
            digest,
            keep.body,
        )
    )
    _beside(stream, old.rid, ts, item, keep, work)


def _remove(
    database: Database, stream: StreamTable, shelf: _Shelf, emitted_at: int, old: _Stored, work: _Work
) -> None:
    shelf.seq += 1
    shelf.live -= 1
    work.lives.append((old.rid, shelf.seq, True, old.ts, shelf.received_at))
    _forget_text(database, stream, old, work)
    work.replaced.append((old.rid,))
    work.gone.append((old.rid,))
    work.updates.append((old.rid, shelf.seq, None, old.ts, emitted_at, 1, None, None, b"", None))


def _forget_text(database: Database, stream: StreamTable, old: _Stored, work: _Work) -> None:
    if stream.slots and old.body is not None:
        values = values_of(database, stream, old.rid, old.long, old.body)
        work.old_texts.append(derive.text_row(stream, old.rid, old.ts, values))


def _changed_fields(old: _Stored, keep: long_texts.SplitBody) -> list[str]:
    """Say which fields have another value; white space and spelling of numbers do not count."""
    if old.body is None:
        return []
    before, after = _RAW.decode(old.body), _RAW.decode(keep.body)
    names = before.keys() | after.keys()
    changed = [name for name in names if _differ(before.get(name), after.get(name))]
    old_notes, notes = long_notes(old.long), long_notes(keep.long)
    return changed + [
        name for name in old_notes.keys() | notes.keys() if old_notes.get(name) != notes.get(name)
    ]


def _differ(before: msgspec.Raw | None, after: msgspec.Raw | None) -> bool:
    if before is None or after is None:
        return before is not after
    return bytes(before) != bytes(after) and _canonical(before) != _canonical(after)


def _canonical(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")


def _change_numbers(old: _Stored, changed: Sequence[str], seq: int) -> bytes | None:
    """Note when each field last changed; a record that came back changed in every field."""
    if old.is_deleted:
        return msgspec.msgpack.encode({derive.ALL_FIELDS: seq})
    numbers: dict[str, int] = msgspec.msgpack.decode(old.changed) if old.changed else {}
    numbers.update(dict.fromkeys(changed, seq))
    return msgspec.msgpack.encode(numbers)


def _beside(
    stream: StreamTable, rid: int, ts: int | None, item: Incoming, keep: long_texts.SplitBody, work: _Work
) -> None:
    values: Mapping[str, Any] = item.values
    work.typed.append(derive.typed_row(stream, rid, values))
    if stream.slots:
        work.texts.append(derive.text_row(stream, rid, ts, values))
    for name, text in keep.texts.items():
        work.chunks.extend(long_texts.chunks(rid, stream.fids[name], text))
    if item.has_objects:
        work.blobs.extend(derive.blob_uses(stream, rid, values))


def _flush(database: Database, stream: StreamTable, work: _Work) -> None:
    """Write everything, each table in its own order: an index that is filled in order stays small and quick."""
    database.many(SQL["insert_record"], sorted(work.records))
    database.many(SQL["update_record"], work.updates)
    database.many(SQL["delete_chunks"], work.replaced)
    database.many(SQL["delete_blob_uses"], work.replaced)
    database.many(f"DELETE FROM {stream.table} WHERE rid=?", work.gone)
    database.many(derive.typed_insert(stream), sorted(work.typed, key=_first))
    if stream.slots:
        database.texts.take_out(tuple(stream.slots.values()), work.old_texts)
        database.texts.put(tuple(stream.slots.values()), work.texts)
    database.many(SQL["insert_chunk"], work.chunks)
    database.many(SQL["insert_blob_use"], work.blobs)
    database.many(SQL["insert_life"], work.lives)


def _first(row: tuple[Any, ...]) -> Any:
    return row[0]
