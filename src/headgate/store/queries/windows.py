"""Windows: a part of one field's text, without reading the rest of it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

import msgspec

from headgate.errors import FieldNotFound, FieldNotText, HeadgateError, QueryNotFound
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import BlobPlan, MatchWindow, OffsetWindow, WindowPlan
from headgate.model.rows import FieldWindow, FoundBlob
from headgate.store.format.records import CHUNK_CHARS, long_notes
from headgate.store.format.streams import Shelf
from headgate.store.queries.rows import (
    COLUMNS,
    FoundRow,
    TooLargeHere,
    chunks_of,
    read_chunks,
    text_of_chunks,
)
from headgate.store.queries.scope import SqlScope, scope_of
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

_NO_CHUNKS = (0, -1)
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


#: The checksum and the text of chunks that follow each other.
Chunks = Sequence[tuple[bytes, str]]


class _FieldText:
    """A field's text, which lies in the body or in chunks; those that a window needs were read with the record."""

    __slots__ = ("_chunks", "_database", "_inline", "_place", "chars", "digest", "is_json")

    def __init__(
        self,
        database: Database,
        chars: int,
        digest: str,
        *,
        inline: str | None,
        place: tuple[int, int] = (0, 0),
        chunks: Chunks = (),
        is_json: bool = False,
    ) -> None:
        self._database = database
        self._chunks = chunks
        self._inline = inline
        self._place = place
        self.chars = chars
        self.digest = digest
        self.is_json = is_json

    def part(self, start: int, end: int) -> str:
        if self._inline is not None:
            return self._inline[start:end]
        if self._chunks and start < end:
            return text_of_chunks(self._chunks, start, end)
        return read_chunks(self._database, *self._place, start, end)

    def pieces(self) -> Iterator[str]:
        if self._inline is not None:
            yield self._inline
            return
        for start in range(0, self.chars, CHUNK_CHARS):
            yield read_chunks(self._database, *self._place, start, min(start + CHUNK_CHARS, self.chars))


def windows(database: Database, catalog: Catalog, plan: WindowPlan) -> tuple[FieldWindow, ...]:
    """Read the window from each shelf of the reach that has the record."""
    scope = scope_of(catalog, plan.reach)
    if scope is None:
        return ()
    rows = _rows(database, scope, plan)
    if len(rows) == 1:
        return (_window(database, catalog, plan, *rows[0]),)
    # Several connections have it and the caller has to choose one: a window that fails must not hide the others.
    return tuple(_window_or_nothing(database, catalog, plan, *row) for row in rows)


def _rows(database: Database, scope: SqlScope, plan: WindowPlan) -> list[tuple[FoundRow, Chunks]]:
    """Find the records, each with the chunks of the window if it is known where they lie."""
    fid = scope.stream.fids.get(plan.field, 0)
    first, last = _NO_CHUNKS
    if isinstance(plan.window, OffsetWindow) and plan.window.limit_chars:
        start = plan.window.offset_chars
        first, last = chunks_of(start, start + plan.window.limit_chars)
    with_chunks = database.all(
        database.sql["records_for_window"].format(columns=COLUMNS, sids=scope.sids, where=scope.where),
        (fid, first, last, plan.record_id, *scope.values),
    )
    by_rid = groupby(with_chunks, key=itemgetter(0))
    return [_row_and_chunks(list(rows)) for _, rows in by_rid]


def _row_and_chunks(rows: Sequence[tuple[Any, ...]]) -> tuple[FoundRow, Chunks]:
    chunks = [(row[-2], row[-1]) for row in rows if row[-1] is not None]
    return FoundRow(*rows[0][:-2]), chunks


def _window_or_nothing(
    database: Database, catalog: Catalog, plan: WindowPlan, row: FoundRow, chunks: Chunks
) -> FieldWindow:
    try:
        return _window(database, catalog, plan, row, chunks)
    except HeadgateError:
        return FieldWindow(catalog.by_sid[row.sid].connection_id, "", 0, 0, "")


def _window(
    database: Database, catalog: Catalog, plan: WindowPlan, row: FoundRow, chunks: Chunks
) -> FieldWindow:
    shelf = catalog.by_sid[row.sid]
    text = _text(database, shelf, plan, row, chunks)
    if isinstance(plan.window, OffsetWindow):
        start = min(plan.window.offset_chars, text.chars)
        part = text.part(start, min(start + plan.window.limit_chars, text.chars))
        return FieldWindow(shelf.connection_id, part, start, text.chars, text.digest, is_json=text.is_json)
    return _match(shelf, text, plan.window)


def _match(shelf: Shelf, text: _FieldText, window: MatchWindow) -> FieldWindow:
    span = find_folded(text.pieces(), window.q)
    if span is None:
        raise QueryNotFound
    match_start, match_end = span
    start = max(0, match_start - window.before_chars)
    part = text.part(start, min(start + window.limit_chars, text.chars))
    return FieldWindow(
        shelf.connection_id, part, start, text.chars, text.digest, match_start, match_end, text.is_json
    )


def _text(database: Database, shelf: Shelf, plan: WindowPlan, row: FoundRow, chunks: Chunks) -> _FieldText:
    if row.body is not None and len(row.body) > database.most_bytes:
        raise TooLargeHere
    body = row.intact_body()
    note = long_notes(row.long).get(plan.field)
    if note is not None:
        place = (row.rid, shelf.stream.fids[plan.field])
        return _FieldText(database, note[0], note[1].hex(), inline=None, place=place, chunks=chunks)
    raw = _RAW.decode(body).get(plan.field)
    value = None if raw is None else msgspec.json.decode(raw)
    if value is None:
        raise FieldNotFound
    is_json = plan.as_json and isinstance(value, dict | list)
    if is_json:
        value = msgspec.json.encode(value).decode()
    if not isinstance(value, str):
        raise FieldNotText
    digest = hashlib.sha256(value.encode()).hexdigest()
    return _FieldText(database, len(value), digest, inline=value, is_json=is_json)


def find_folded(pieces: Iterable[str], sought: str) -> tuple[int, int] | None:
    """Return the first match as (start, end) in characters of the original text, whatever its case.

    A letter may fold to several ('ß' to 'ss') and a match may begin in one piece and end in the next.
    """
    folded = sought.casefold()
    if not folded:
        return None
    # No character folds to nothing, so a match that starts before these has ended before the next piece.
    keep = len(folded) - 1
    at, tail = 0, ""
    for piece in pieces:
        text = tail + piece
        span = _find(text, folded)
        if span is not None:
            return at + span[0], at + span[1]
        tail = text[max(0, len(text) - keep) :] if keep else ""
        at += len(text) - len(tail)
    return None


def _find(text: str, folded: str) -> tuple[int, int] | None:
    whole = text.casefold()
    if len(whole) == len(text):
        start = whole.find(folded)
        return None if start < 0 else (start, start + len(folded))
    return _find_uneven(text, whole, folded)


def _find_uneven(text: str, whole: str, folded: str) -> tuple[int, int] | None:
    """Find in a text that grew by folding; a match counts only from the start of a character to the end of one."""
    places: dict[int, int] = {}
    at = 0
    for index, character in enumerate(text):
        places[at] = index
        at += len(character.casefold())
    places[at] = len(text)
    start = whole.find(folded)
    while start >= 0:
        if start in places and start + len(folded) in places:
            return places[start], places[start + len(folded)]
        start = whole.find(folded, start + 1)
    return None


def find_blobs(database: Database, catalog: Catalog, plan: BlobPlan) -> tuple[FoundBlob, ...]:
    """Find a file through visible records: for each connection, the first that refers to it."""
    blobs: dict[str, FoundBlob] = {}
    size = database.one(database.sql["blob"], (plan.blob_id,))
    for reach in plan.reaches if size is not None else ():
        scope = scope_of(catalog, reach)
        if scope is None:
            continue
        names = {scope.stream.fids[name]: name for name in reach.fields if name in scope.stream.fids}
        rows = database.all(
            database.sql["blob_users"].format(sids=scope.sids, where=scope.where),
            (plan.blob_id, *scope.values),
        )
        for fid, mime, sid, record_id in rows:
            shelf = catalog.by_sid[sid]
            if fid in names and shelf.connection_id not in blobs and size is not None:
                blobs[shelf.connection_id] = FoundBlob(
                    plan.blob_id,
                    shelf.connection_id,
                    reach.stream,
                    RecordId(record_id),
                    FieldName(names[fid]),
                    mime or size[0],
                    size[1],
                )
    return tuple(blobs.values())
