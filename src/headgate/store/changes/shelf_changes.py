"""What a batch does to one shelf: the rows of all tables are collected first and then written table by table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from headgate.errors import IntegrityBroken, ResourceLimit
from headgate.model.ids import ConnectionId, FieldName, RecordId
from headgate.model.record import Op
from headgate.store.changes.accounts import make_hidden_shelf, make_shelves
from headgate.store.changes.record_check import invalid_rows
from headgate.store.changes.stored_rows import put_typed_rows
from headgate.store.format import records
from headgate.store.format.lines import Incoming
from headgate.store.format.records import (
    ALL_FIELDS,
    ANY_FIELD,
    MAX_N,
    MAX_SID,
    RID_SHIFT,
    ChangeMark,
    SplitBody,
    long_notes,
    with_change,
)
from headgate.store.format.streams import StreamTable
from headgate.store.sql.database import Database

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_Rows = list[tuple[Any, ...]]


class StoredRecord(NamedTuple):
    """A record as it stands before the batch: the columns of ``stored_records``."""

    record_id: str
    rid: int
    born_seq: int
    ts: int | None
    emitted_at: int
    is_deleted: bool
    changed: bytes | None
    long: bytes | None
    digest: bytes
    body: bytes | None


class _NewRecord(NamedTuple):
    """The values of ``insert_record``."""

    rid: int
    sid: int
    record_id: str
    seq: int
    born_seq: int
    sort: Any
    ts: int | None
    emitted_at: int
    long: bytes | None
    digest: bytes
    body: bytes


class _ChangedRecord(NamedTuple):
    """The values of ``update_record``."""

    rid: int
    seq: int
    sort: Any
    ts: int | None
    emitted_at: int
    deleted: bool
    changed: bytes | None
    long: bytes | None
    digest: bytes
    body: bytes | None


class _NewLife(NamedTuple):
    """The values of ``insert_life``."""

    rid: int
    seq: int
    was_live: bool
    was_ts: int | None
    at: int


def stored_records(database: Database, sid: int, keys: Iterable[str]) -> dict[str, StoredRecord]:
    """Find the records of a shelf that have one of the keys, tombstones among them."""
    values = (sid, msgspec.json.encode(list(keys)).decode())
    return {row.record_id: row for row in database.rows(StoredRecord, database.sql["stored_records"], values)}


@dataclass(slots=True)
class ShelfChanges:
    """The changes of one batch to one shelf."""

    database: Database
    stream: StreamTable
    sid: int
    #: The number of the next new record, and of the last change.
    next_n: int
    seq: int
    received_at: int
    #: How many live records the shelf has gained.
    live: int = 0
    _new: list[_NewRecord] = field(default_factory=list[_NewRecord])
    _changed: list[_ChangedRecord] = field(default_factory=list[_ChangedRecord])
    _lives: list[_NewLife] = field(default_factory=list[_NewLife])
    _typed: _Rows = field(default_factory=_Rows)
    _texts: _Rows = field(default_factory=_Rows)
    #: Records whose texts leave the word index.
    _left: list[tuple[int, list[int]]] = field(default_factory=list[tuple[int, list[int]]])
    #: Texts whose vectors are no longer true, by record and field.
    _stale: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    _chunks: _Rows = field(default_factory=_Rows)
    _blob_uses: _Rows = field(default_factory=_Rows)
    _invalid: _Rows = field(default_factory=_Rows)
    #: Records whose chunks and file uses are replaced, and records that are gone.
    _replaced: list[tuple[int]] = field(default_factory=list[tuple[int]])
    _gone: list[tuple[int]] = field(default_factory=list[tuple[int]])
    #: The fields that changed, by number.
    _dated: set[int] = field(default_factory=set[int])

    def add(self, item: Incoming) -> None:
        """Add a record whose key the shelf does not know."""
        if self.next_n > MAX_N:
            raise ResourceLimit(f"One stream of one connection holds at most {MAX_N} records.")
        self.seq += 1
        self.live += 1
        self._dated.add(ANY_FIELD)
        rid = self.sid << RID_SHIFT | self.next_n
        self.next_n += 1
        split = records.split_body(self.stream, item.body, item.values)
        ts = records.ts_of(self.stream, item.values)
        self._new.append(
            _NewRecord(
                rid,
                self.sid,
                item.id,
                self.seq,
                self.seq,
                self._sort(item),
                ts,
                item.emitted_at,
                split.long,
                records.digest_of(item.id, split.long, split.body),
                split.body,
            )
        )
        self._derive(rid, ts, item, split)

    def change(self, item: Incoming, old: StoredRecord) -> None:
        """Change, remove or bring back a record; a line that says what is stored already changes nothing."""
        if item.op is Op.DELETE:
            if not old.is_deleted:
                self._remove(item, old)
            return
        split = records.split_body(self.stream, item.body, item.values)
        digest = records.digest_of(item.id, split.long, split.body)
        if (old.digest, old.long, old.body) == (digest, split.long, split.body):
            return
        changed = _changed_fields(old, split, self.stream.fids)
        if not old.is_deleted and not changed:
            return
        self.seq += 1
        self.live += old.is_deleted
        self._date(old, changed)
        ts = records.ts_of(self.stream, item.values)
        if old.is_deleted or ts != old.ts:
            self._lives.append(_NewLife(old.rid, self.seq, not old.is_deleted, old.ts, self.received_at))
        # Another time moves every text in the index; else only those that changed are written there.
        texts_changed = None if old.is_deleted or ts != old.ts else changed
        if not old.is_deleted:
            self._take_texts_out(old.rid, texts_changed)
        self._mark_stale(old.rid, texts_changed)
        self._replaced.append((old.rid,))
        self._changed.append(
            _ChangedRecord(
                old.rid,
                self.seq,
                sort=self._sort(item),
                ts=ts,
                # Of its first state, or of its return: each later change is noted with its time.
                emitted_at=item.emitted_at if old.is_deleted else old.emitted_at,
                deleted=False,
                changed=_changed(old, changed, ChangeMark(self.seq, item.emitted_at)),
                long=split.long,
                digest=digest,
                body=split.body,
            )
        )
        self._derive(old.rid, ts, item, split, texts_changed)

    def _sort(self, item: Incoming) -> Any:
        return self.database.dialect.sort_value(records.sort_of(self.stream, item.values))

    def _remove(self, item: Incoming, old: StoredRecord) -> None:
        self.seq += 1
        self.live -= 1
        self._dated.add(ANY_FIELD)
        self._lives.append(_NewLife(old.rid, self.seq, was_live=True, was_ts=old.ts, at=self.received_at))
        self._take_texts_out(old.rid, None)
        self._mark_stale(old.rid, None)
        self._replaced.append((old.rid,))
        self._gone.append((old.rid,))
        self._changed.append(
            _ChangedRecord(
                old.rid,
                self.seq,
                sort=None,
                ts=old.ts,
                emitted_at=item.emitted_at,
                deleted=True,
                changed=None,
                long=None,
                digest=b"",
                body=None,
            )
        )

    def _date(self, old: StoredRecord, changed: Iterable[str]) -> None:
        """Note which fields of the shelf have another time: a reader sees the time of those that it may see."""
        if old.is_deleted:
            self._dated.add(ANY_FIELD)
        self._dated.update(fid for name in changed if (fid := self.stream.fids.get(FieldName(name))))

    def _take_texts_out(self, rid: int, changed: Collection[str] | None) -> None:
        searched = self.stream.searched
        self._left.append((rid, [searched[name] for name in searched if changed is None or name in changed]))

    def _mark_stale(self, rid: int, changed: Collection[str] | None) -> None:
        fields = self.stream.with_vectors.items()
        self._stale += [(rid, fid) for name, fid in fields if changed is None or name in changed]

    def _derive(
        self,
        rid: int,
        ts: int | None,
        item: Incoming,
        split: SplitBody,
        changed: Collection[str] | None = None,
    ) -> None:
        """Collect the rows that are stored beside a record; of its texts only those that changed, if known."""
        stream, values = self.stream, item.values
        self._typed.append(records.typed_row(stream, rid, values))
        if stream.searched:
            self._texts.append((rid, ts, records.search_texts(stream, values, changed)))
        for name, text in split.texts.items():
            self._chunks.extend(records.chunks(rid, stream.fids[name], text))
        if item.has_objects:
            self._blob_uses.extend(records.blob_uses(stream, rid, values))
        if item.problems:
            self._invalid.extend(invalid_rows(stream, rid, item.problems))

    def flush(self) -> None:
        """Write everything, each table in its own order: an index that is filled in order stays small and quick."""
        database, stream = self.database, self.stream
        database.many(database.sql["insert_record"], sorted(self._new))
        database.many(database.sql["update_record"], self._changed)
        database.many(database.sql["delete_chunks"], self._replaced)
        database.many(database.sql["delete_blob_uses"], self._replaced)
        database.many(database.sql["unmark_record"], self._replaced)
        for table in database.dialect.typed_tables(stream.stid):
            database.many(database.sql["delete_rows_of_record"].format(table=table), self._gone)
        put_typed_rows(database, stream, sorted(self._typed, key=itemgetter(0)))
        database.many(database.sql["mark_stale_text"], self._stale)
        for rid, fids in self._left:
            database.texts.take_out(rid, fids)
        for rid, ts, texts in self._texts:
            database.texts.put(rid, ts, texts)
        database.many(database.sql["insert_chunk"], self._chunks)
        database.many(database.sql["insert_blob_use"], self._blob_uses)
        database.many(database.sql["mark_record"], self._invalid)
        database.many(database.sql["insert_life"], self._lives)
        database.many(database.sql["date_shelf"], [(self.sid, fid, self.received_at) for fid in self._dated])
        database.run(
            database.sql["update_shelf"], (self.next_n, self.live, self.seq, self.received_at, self.sid)
        )
        database.run(database.sql["set_change_number"], (self.seq,))


def _changed_fields(old: StoredRecord, split: SplitBody, declared: Iterable[str]) -> list[str]:
    """Return which fields have another value; white space and spelling of numbers do not count.

    What a damaged record held is not known: each of its fields may have another value now.
    """
    if old.is_deleted:
        return []
    after, notes = _RAW.decode(split.body), long_notes(split.long)
    if old.body is None or records.digest_of(old.record_id, old.long, old.body) != old.digest:
        return list({*declared, *after, *notes})
    before, old_notes = _RAW.decode(old.body), long_notes(old.long)
    names = before.keys() | after.keys()
    changed = [name for name in names if _differ(before.get(name), after.get(name))]
    return changed + [
        name for name in old_notes.keys() | notes.keys() if old_notes.get(name) != notes.get(name)
    ]


def _differ(before: msgspec.Raw | None, after: msgspec.Raw | None) -> bool:
    if before is None or after is None:
        return before is not after
    return bytes(before) != bytes(after) and _canonical(before) != _canonical(after)


def _canonical(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")


def _changed(old: StoredRecord, names: Sequence[str], mark: ChangeMark) -> bytes:
    """Note when each field last changed; a record that came back, or whose notes are damaged, changed in every field."""
    with suppress(IntegrityBroken):
        if not old.is_deleted:
            return with_change(old.changed, names, mark)
    return with_change(None, [ALL_FIELDS], mark)


#: By whether it is the shelf of what is hidden, and by key: the records that are stored.
StoredPair = Mapping[bool, Mapping[str, StoredRecord]]


@dataclass(frozen=True, slots=True)
class ShelfPair:
    """Where the records of one stream of one connection are written."""

    database: Database
    stream: StreamTable
    connection_id: ConnectionId
    received_at: int

    def stored(self, keys: Iterable[str]) -> StoredPair:
        """Find the records with one of the keys on both shelves, tombstones among them."""
        wanted = list(keys)
        rows = {is_hidden: self._row(is_hidden=is_hidden) for is_hidden in (False, True)}
        return {
            is_hidden: {} if row is None else stored_records(self.database, row[0], wanted)
            for is_hidden, row in rows.items()
        }

    def put(self, items: Mapping[RecordId, Incoming], stored: StoredPair) -> None:
        """Write each record on the shelf where it belongs, and remove it from the other."""
        for is_hidden, known in stored.items():
            here = {
                key: item
                for key, item in items.items()
                if (item.op is Op.UPSERT and item.is_hidden is is_hidden) or key in known
            }
            if here:
                self._put_on(here, known, is_hidden=is_hidden)

    def _put_on(
        self, items: Mapping[RecordId, Incoming], known: Mapping[str, StoredRecord], *, is_hidden: bool
    ) -> None:
        changes = self._changes(is_hidden=is_hidden)
        before = changes.seq
        for key, item in items.items():
            old = known.get(key)
            if item.op is Op.UPSERT and item.is_hidden is is_hidden:
                if old is None:
                    changes.add(item)
                else:
                    changes.change(item, old)
            elif old is not None:
                # Of a record that moves, the time of its new state is not to be seen here.
                gone_at = item.emitted_at if item.op is Op.DELETE else self.received_at
                changes.change(Incoming(key, Op.DELETE, gone_at, b"", {}), old)
        if changes.seq != before:
            changes.flush()

    def _changes(self, *, is_hidden: bool) -> ShelfChanges:
        """Begin to change a shelf; one that is not there yet is made."""
        row = self._row(is_hidden=is_hidden)
        if row is None:
            if is_hidden:
                make_hidden_shelf(self.database, self.connection_id, self.stream.stid)
            else:
                make_shelves(self.database, self.stream.connector_key)
            row = self._row(is_hidden=is_hidden)
        assert row is not None
        sid, next_n = row
        if sid > MAX_SID:
            raise ResourceLimit(f"A store holds at most {MAX_SID} streams of connections.")
        seq: int = self.database.value(self.database.sql["change_number"])
        return ShelfChanges(self.database, self.stream, sid, next_n, seq, self.received_at)

    def _row(self, *, is_hidden: bool) -> tuple[int, int] | None:
        """Return the number of a shelf, and of its next record."""
        row = self.database.one(
            self.database.sql["shelf_to_fill"], (self.connection_id, self.stream.stid, int(is_hidden))
        )
        return None if row is None else (row[0], row[1])
