"""Make records of rows: check the digest, cut the body down to granted fields, put long texts back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple, cast

import msgspec

from headgate.errors import IntegrityBroken
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import Reach
from headgate.model.record import Preview, Record, Tombstone
from headgate.model.rows import MarkedRecord, MarkedRecords, RecordProblem
from headgate.store.format.records import (
    CHUNK_CHARS,
    RID_SHIFT,
    Projector,
    change_marks,
    chunk_sum,
    digest_of,
    emitted_at_of,
    long_notes,
    projector,
    shelf_rows,
)
from headgate.store.format.streams import Shelf
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

_MOST_AT_ONCE = 500
#: How much of records one page may hold; a single larger record is a page too.
MAX_PAGE_BYTES = 8 * 1024 * 1024
#: What a row of a page takes beside its values and its ids.
_ROW_BYTES = 80
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


def row_bytes(entry: Record | Tombstone) -> int:
    """Estimate what a record takes as a row of a page, with the records it is expanded with."""
    beside = _ROW_BYTES + 2 * len(entry.id.encode())
    if isinstance(entry, Tombstone):
        return beside
    children = [child for several in entry.expanded.values() for child in several.records]
    return beside + len(entry.body) + sum(map(row_bytes, children))


class TooLargeHere(Exception):
    """A read would load more than the connection may."""


class FoundRow(NamedTuple):
    """What a statement selects of the table ``record r`` to make a record of."""

    rid: int
    sid: int
    record_id: RecordId
    emitted_at: int
    ts: int | None
    long: bytes | None
    digest: bytes
    body: bytes | None
    #: When fields last changed, as `change_marks` reads it; None: none changed since the record came in.
    changed: bytes | None

    def intact_body(self) -> bytes:
        body = self.body
        if body is None or digest_of(self.record_id, self.long, body) != self.digest:
            raise _damaged(self.record_id)
        return body


#: The same without names. Every record of every page is one, and most are only made into a record, in one place.
FoundColumns = tuple[int, int, RecordId, int, int | None, bytes | None, bytes, bytes | None, bytes | None]
#: The columns of a FoundRow, for a statement.
COLUMNS = ", ".join(f"r.{name}" for name in FoundRow._fields)


def read_rows(database: Database, rids: Sequence[int]) -> dict[int, FoundColumns]:
    """Read the rows of many records, as many with one statement as its variables allow."""
    by_rid: dict[int, FoundColumns] = {}
    for start in range(0, len(rids), _MOST_AT_ONCE):
        some = rids[start : start + _MOST_AT_ONCE]
        sql = _rows_sql(database.sql["rows_by_number"], database.sql["one_mark"], len(some))
        rows = cast("list[FoundColumns]", database.all(sql, some))
        by_rid.update({row[0]: row for row in rows})
    return by_rid


@lru_cache(maxsize=_MOST_AT_ONCE)
def _rows_sql(statement: str, mark: str, count: int) -> str:
    return statement.format(columns=COLUMNS, marks=",".join([mark] * count))


def _damaged(record_id: str) -> IntegrityBroken:
    return IntegrityBroken(f"Record '{record_id}' does not match its digest.")


class RecordMaker:
    """Makes records out of rows, with the fields that one reach allows."""

    __slots__ = (
        "_database",
        "_most_bytes",
        "_preview_chars",
        "_project",
        "_projector",
        "_shelves",
        "_visible",
        "damaged",
    )

    def __init__(
        self, database: Database, catalog: Catalog, reach: Reach, *, preview_chars: int | None
    ) -> None:
        self._database = database
        self._shelves = catalog.by_sid
        self._projector: Projector = projector(reach.fields)
        self._project = self._projector.project
        self._visible = reach.visible
        self._preview_chars = preview_chars
        self._most_bytes = database.most_bytes
        #: The records that `make_intact` left out.
        self.damaged: list[RecordId] = []

    def make_intact(self, row: FoundColumns) -> Record | None:
        """Make one record; None for a damaged one, which is noted: it costs itself and not the answer."""
        try:
            return self.make(row)
        except IntegrityBroken:
            self.damaged.append(row[2])
            return None

    def make(self, row: FoundColumns) -> Record:
        """Make one record.

        Raises:
            IntegrityBroken: the row is not what was stored.
        """
        # The same check as `intact_body`, written out: it runs for every record that is read.
        rid, sid, record_id, emitted_at, _, long, digest, body, changed = row
        if body is not None and len(body) > self._most_bytes:
            raise TooLargeHere
        if body is None or digest_of(record_id, long, body) != digest:
            raise _damaged(record_id)
        if changed is not None:
            emitted_at = emitted_at_of(change_marks(changed), self._visible, emitted_at)
        shelf = self._shelves[sid]
        if long is None and (self._preview_chars is None or len(body) <= self._preview_chars):
            # Nothing in it can be longer than it is itself.
            return Record(shelf.connection_id, shelf.name, record_id, self._project(body), emitted_at)
        previews: dict[str, Preview] = {}
        texts = self._long_texts(shelf, rid, long, previews) if long is not None else None
        projected = self._project(body, texts)
        if self._preview_chars is not None and len(projected) > self._preview_chars:
            projected = _cut_texts(projected, self._preview_chars, previews)
        return Record(shelf.connection_id, shelf.name, record_id, projected, emitted_at, previews)

    def _long_texts(
        self, shelf: Shelf, rid: int, long: bytes, previews: dict[str, Preview]
    ) -> dict[FieldName, str]:
        most = sys.maxsize if self._preview_chars is None else self._preview_chars
        notes = {name: note for name, note in long_notes(long).items() if name in self._projector.fields}
        if sum(min(chars, most) for chars, _ in notes.values()) > self._most_bytes:
            raise TooLargeHere
        texts: dict[FieldName, str] = {}
        for name, (chars, digest) in notes.items():
            texts[name] = read_chunks(self._database, rid, shelf.stream.fids[name], 0, min(chars, most))
            if most < chars:
                previews[name] = Preview(chars, digest.hex())
        return texts


def read_chunks(database: Database, rid: int, fid: int, start: int, end: int) -> str:
    """Read the characters from start to end of a long text, touching only the chunks they lie in."""
    if end <= start:
        return ""
    first, last = chunks_of(start, end)
    try:
        rows = database.all(database.sql["long_text_part"], (rid, fid, first, last))
    except database.damage as damage:
        raise IntegrityBroken("A long text lies on a damaged page.") from damage
    return text_of_chunks(rows, start, end)


def chunks_of(start: int, end: int) -> tuple[int, int]:
    """Return the first and the last of the chunks in which the characters from start to end lie."""
    return start // CHUNK_CHARS, (end - 1) // CHUNK_CHARS


def text_of_chunks(rows: Sequence[tuple[Any, ...]], start: int, end: int) -> str:
    """Return the characters from start to end out of the chunks in which they lie, each a checksum and a text."""
    first, last = chunks_of(start, end)
    if len(rows) != last - first + 1 or any(chunk_sum(text) != stored for stored, text in rows):
        raise IntegrityBroken("A long text does not match its digest.")
    text = "".join(text for _, text in rows)
    return text[start - first * CHUNK_CHARS : end - first * CHUNK_CHARS]


def _cut_texts(body: bytes, most: int, previews: dict[str, Preview]) -> bytes:
    members = _RAW.decode(body)
    for name, raw in members.items():
        piece = bytes(raw)
        if len(piece) > most and piece.startswith(b'"') and name not in previews:
            text = _TEXT.decode(piece)
            if len(text) > most:
                members[name] = msgspec.Raw(msgspec.json.encode(text[:most]))
                previews[name] = Preview(len(text), sha256(text.encode()).hexdigest())
    return msgspec.json.encode(members)


def marked_records(
    database: Database,
    catalog: Catalog,
    connection_id: ConnectionId,
    stream: StreamName,
    *,
    after: int,
    limit: int,
) -> MarkedRecords:
    """List some marked records of one stream of one connection."""
    catalog.stream_of(connection_id, stream)
    shelves = catalog.shelves_at(connection_id, stream)
    if not shelves:
        return MarkedRecords((), None)
    # Counted on from the first record of the first shelf.
    first = shelves[0].sid << RID_SHIFT
    rows: list[tuple[int, str]] = []
    for shelf in shelves:
        start, end = shelf_rows(shelf.sid)
        values = (max(first + after, start), end, limit + 1)
        rows += database.all(database.sql["marked_records"], values)
    records = tuple(MarkedRecord(RecordId(key), _problems(database, rid)) for rid, key in rows[:limit])
    return MarkedRecords(records, rows[limit - 1][0] - first if len(rows) > limit else None)


def _problems(database: Database, rid: int) -> tuple[RecordProblem, ...]:
    return tuple(
        RecordProblem(pointer, message) for pointer, message in database.all(database.sql["marks"], (rid,))
    )


class LostRow(NamedTuple):
    """What the index of a stream's order holds of a live record."""

    record_id: RecordId
    sort: Any


def readable_rows(database: Database, rids: Sequence[int]) -> dict[int, FoundColumns]:
    """Read the rows of records; if a page of the file is damaged one by one, without those on it."""
    try:
        return read_rows(database, rids)
    except database.damage:
        return {rid: row for rid in rids if (row := _row(database, rid)) is not None}


def _row(database: Database, rid: int) -> FoundColumns | None:
    try:
        return read_rows(database, [rid]).get(rid)
    except database.damage:
        return None


def readable_keys(database: Database, rids: Sequence[int]) -> dict[int, RecordId]:
    """Read the keys of records. Those of damaged rows come from an index."""
    try:
        return dict(database.all(database.sql["keys_by_number"], (msgspec.json.encode(rids).decode(),)))
    except database.damage:
        return {rid: key for rid in rids if (key := _key(database, rid)) is not None}


def _key(database: Database, rid: int) -> RecordId | None:
    try:
        key: RecordId | None = database.value(database.sql["record_key"], (rid,))
    except database.damage:
        lost = lost_row(database, rid)
        return None if lost is None else lost.record_id
    return key


def born_until(database: Database, rids: Sequence[int], horizon: int) -> set[int]:
    """Return which records came in until a change; those of damaged rows count among them, for a warning to name them."""
    numbers = msgspec.json.encode(rids).decode()
    try:
        return {rid for (rid,) in database.all(database.sql["born_until"], (numbers, horizon))}
    except database.damage:
        if len(rids) == 1:
            return set(rids)
        return {rid for single in rids for rid in born_until(database, [single], horizon)}


def lost_row(database: Database, rid: int) -> LostRow | None:
    """Find a live record whose row cannot be read; None: it is not live, or the index is damaged as well."""
    try:
        rows: Iterable[LostRow] = database.rows(LostRow, database.sql["lost_record"], (rid >> RID_SHIFT, rid))
    except database.damage:
        return None
    return next(iter(rows), None)
