"""What a batch does to one shelf: the rows of all tables are collected first and then written table by table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from headgate.errors import ResourceLimit
from headgate.model.record import Op
from headgate.store.lines import Incoming
from headgate.store.sqlite.catalog import StreamTable
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import MAX_N, RID_SHIFT
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write import derive, long_texts
from headgate.store.sqlite.write.long_texts import SplitBody, long_notes, values_of

_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_Rows = list[tuple[Any, ...]]


class StoredRecord(NamedTuple):
    """A record as it stands before the batch: the columns of ``stored_records``."""

    record_id: str
    rid: int
    born_seq: int
    ts: int | None
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
    return {row.record_id: row for row in database.rows(StoredRecord, SQL["stored_records"], values)}


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
    _old_texts: _Rows = field(default_factory=_Rows)
    _chunks: _Rows = field(default_factory=_Rows)
    _blob_uses: _Rows = field(default_factory=_Rows)
    #: Records whose chunks and file uses are replaced, and records that are gone.
    _replaced: list[tuple[int]] = field(default_factory=list[tuple[int]])
    _gone: list[tuple[int]] = field(default_factory=list[tuple[int]])

    def add(self, item: Incoming) -> None:
        """Add a record whose key the shelf does not know.

        Raises:
            ResourceLimit: the shelf has no number left for it.
        """
        if self.next_n > MAX_N:
            raise ResourceLimit(f"One stream of one connection holds at most {MAX_N} records.")
        self.seq += 1
        self.live += 1
        rid = self.sid << RID_SHIFT | self.next_n
        self.next_n += 1
        split = long_texts.split_body(self.stream, item.body, item.values)
        ts = derive.ts_of(self.stream, item.values)
        self._new.append(
            _NewRecord(
                rid,
                self.sid,
                item.id,
                self.seq,
                self.seq,
                derive.sort_of(self.stream, item.values),
                ts,
                item.emitted_at,
                split.long,
                derive.digest_of(item.id, split.long, split.body),
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
        split = long_texts.split_body(self.stream, item.body, item.values)
        digest = derive.digest_of(item.id, split.long, split.body)
        if not old.is_deleted and digest == old.digest:
            return
        changed = _changed_fields(old, split)
        if not old.is_deleted and not changed:
            return
        self.seq += 1
        self.live += old.is_deleted
        ts = derive.ts_of(self.stream, item.values)
        if old.is_deleted or ts != old.ts:
            self._lives.append(_NewLife(old.rid, self.seq, not old.is_deleted, old.ts, self.received_at))
        if not old.is_deleted:
            self._take_text_out(old)
        self._replaced.append((old.rid,))
        self._changed.append(
            _ChangedRecord(
                old.rid,
                self.seq,
                sort=derive.sort_of(self.stream, item.values),
                ts=ts,
                emitted_at=item.emitted_at,
                deleted=False,
                changed=_change_numbers(old, changed, self.seq),
                long=split.long,
                digest=digest,
                body=split.body,
            )
        )
        self._derive(old.rid, ts, item, split)

    def _remove(self, item: Incoming, old: StoredRecord) -> None:
        self.seq += 1
        self.live -= 1
        self._lives.append(_NewLife(old.rid, self.seq, was_live=True, was_ts=old.ts, at=self.received_at))
        self._take_text_out(old)
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

    def _take_text_out(self, old: StoredRecord) -> None:
        if self.stream.slots and old.body is not None:
            values = values_of(self.database, self.stream, old.rid, old.long, old.body)
            self._old_texts.append(derive.text_row(self.stream, old.rid, old.ts, values))

    def _derive(self, rid: int, ts: int | None, item: Incoming, split: SplitBody) -> None:
        """Collect the rows that are stored beside a record."""
        stream, values = self.stream, item.values
        self._typed.append(derive.typed_row(stream, rid, values))
        if stream.slots:
            self._texts.append(derive.text_row(stream, rid, ts, values))
        for name, text in split.texts.items():
            self._chunks.extend(long_texts.chunks(rid, stream.fids[name], text))
        if item.has_objects:
            self._blob_uses.extend(derive.blob_uses(stream, rid, values))

    def flush(self) -> None:
        """Write everything, each table in its own order: an index that is filled in order stays small and quick."""
        database, stream = self.database, self.stream
        database.many(SQL["insert_record"], sorted(self._new))
        database.many(SQL["update_record"], self._changed)
        database.many(SQL["delete_chunks"], self._replaced)
        database.many(SQL["delete_blob_uses"], self._replaced)
        database.many(f"DELETE FROM {stream.table} WHERE rid=?", self._gone)
        database.many(derive.typed_insert(stream), sorted(self._typed, key=itemgetter(0)))
        if stream.slots:
            database.texts.take_out(tuple(stream.slots.values()), self._old_texts)
            database.texts.put(tuple(stream.slots.values()), self._texts)
        database.many(SQL["insert_chunk"], self._chunks)
        database.many(SQL["insert_blob_use"], self._blob_uses)
        database.many(SQL["insert_life"], self._lives)
        database.run(SQL["update_shelf"], (self.next_n, self.live, self.seq, self.received_at, self.sid))
        database.run(SQL["set_change_number"], (self.seq,))


def _changed_fields(old: StoredRecord, split: SplitBody) -> list[str]:
    """Say which fields have another value; white space and spelling of numbers do not count."""
    if old.body is None:
        return []
    before, after = _RAW.decode(old.body), _RAW.decode(split.body)
    names = before.keys() | after.keys()
    changed = [name for name in names if _differ(before.get(name), after.get(name))]
    old_notes, notes = long_notes(old.long), long_notes(split.long)
    return changed + [
        name for name in old_notes.keys() | notes.keys() if old_notes.get(name) != notes.get(name)
    ]


def _differ(before: msgspec.Raw | None, after: msgspec.Raw | None) -> bool:
    if before is None or after is None:
        return before is not after
    return bytes(before) != bytes(after) and _canonical(before) != _canonical(after)


def _canonical(raw: msgspec.Raw) -> bytes:
    return msgspec.json.encode(msgspec.json.decode(raw), order="deterministic")


def _change_numbers(old: StoredRecord, changed: Sequence[str], seq: int) -> bytes | None:
    """Note when each field last changed; a record that came back changed in every field."""
    if old.is_deleted:
        return msgspec.msgpack.encode({derive.ALL_FIELDS: seq})
    numbers: dict[str, int] = msgspec.msgpack.decode(old.changed) if old.changed else {}
    numbers.update(dict.fromkeys(changed, seq))
    return msgspec.msgpack.encode(numbers)
