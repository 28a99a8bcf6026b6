"""Make records of rows: check the digest, cut the body down to granted fields, put long texts back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple, cast

import msgspec

from headgate.errors import IntegrityBroken
from headgate.model.ids import FieldName, RecordId
from headgate.model.record import Preview, Record
from headgate.store.projection import Projector, projector
from headgate.store.sqlite.catalog import Catalog, Shelf
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.derive import digest_of
from headgate.store.sqlite.write.long_texts import CHUNK_CHARS, chunk_sum, long_notes

_MOST_AT_ONCE = 500
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_TEXT = msgspec.json.Decoder(str)


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

    def intact_body(self) -> bytes:
        """Give the body.

        Raises:
            IntegrityBroken: the row is not what was stored.
        """
        body = self.body
        if body is None or digest_of(self.record_id, self.long, body) != self.digest:
            raise _damaged(self.record_id)
        return body


#: The same without names. Every record of every page is one, and most are only made into a record, in one place.
FoundColumns = tuple[int, int, RecordId, int, int | None, bytes | None, bytes, bytes | None]
#: The columns of a FoundRow, for a statement.
COLUMNS = ", ".join(f"r.{name}" for name in FoundRow._fields)


def read_rows(database: Database, rids: Sequence[int]) -> dict[int, FoundColumns]:
    """Read the rows of many records, as many with one statement as its variables allow."""
    found: dict[int, FoundColumns] = {}
    for start in range(0, len(rids), _MOST_AT_ONCE):
        some = rids[start : start + _MOST_AT_ONCE]
        rows = cast("list[FoundColumns]", database.all(_rows_sql(len(some)), some))
        found.update({row[0]: row for row in rows})
    return found


@lru_cache(maxsize=_MOST_AT_ONCE)
def _rows_sql(count: int) -> str:
    return f"SELECT {COLUMNS} FROM record r WHERE r.rid IN ({','.join('?' * count)})"


def _damaged(record_id: str) -> IntegrityBroken:
    return IntegrityBroken(f"Record '{record_id}' does not match its digest.")


class RecordMaker:
    """Makes records out of rows, with the fields that one reach allows."""

    __slots__ = ("_database", "_preview_chars", "_project", "_projector", "_shelves")

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        fields: Sequence[FieldName],
        *,
        preview_chars: int | None,
    ) -> None:
        self._database = database
        self._shelves = catalog.by_sid
        self._projector: Projector = projector(tuple(fields))
        self._project = self._projector.project
        self._preview_chars = preview_chars

    def make(self, row: FoundColumns) -> Record:
        """Make one record.

        Raises:
            IntegrityBroken: the row is not what was stored.
        """
        # The same check as `intact_body`, written out: it runs for every record that is read.
        rid, sid, record_id, emitted_at, _, long, digest, body = row
        if body is None or digest_of(record_id, long, body) != digest:
            raise _damaged(record_id)
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
        texts: dict[FieldName, str] = {}
        for name, (chars, digest) in long_notes(long).items():
            if name in self._projector.fields:
                wanted = chars if self._preview_chars is None else min(chars, self._preview_chars)
                texts[name] = read_chunks(self._database, rid, shelf.stream.fids[name], 0, wanted)
                if wanted < chars:
                    previews[name] = Preview(chars, digest.hex())
        return texts


def read_chunks(database: Database, rid: int, fid: int, start: int, end: int) -> str:
    """Read the characters from start to end of a long text, touching only the chunks they lie in.

    Raises:
        IntegrityBroken: a chunk is missing, or is not what was stored.
    """
    if end <= start:
        return ""
    first, last = start // CHUNK_CHARS, (end - 1) // CHUNK_CHARS
    rows = database.all(
        SQL["long_text_part"],
        (rid, fid, first, last),
    )
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
