"""Long texts: cut out of a body and stored in chunks, and put back when a whole record is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.model.ids import FieldName
from headgate.store.relational.database import Database
from headgate.store.relational.row_numbers import RID_SHIFT

if TYPE_CHECKING:
    # Importing the catalog takes longer than all that 'headgate store stats' does.
    from headgate.store.relational.catalog import StreamTable

LONG_CHARS = 32_768
CHUNK_CHARS = 8192
_SUM_BYTES = 8
_AT_ONCE = 1000
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_VALUES = msgspec.json.Decoder(dict[str, Any])
_encode = msgspec.json.encode


@dataclass(frozen=True, slots=True)
class SplitBody:
    """A body as it is stored: without its long texts, which lie in chunks."""

    body: bytes
    long: bytes | None
    texts: Mapping[FieldName, str]


def split_body(stream: StreamTable, body: bytes, values: Mapping[str, Any]) -> SplitBody:
    """Take long texts of declared fields out of a body."""
    if len(body) <= LONG_CHARS:
        return SplitBody(body, None, {})
    texts = {
        FieldName(name): value
        for name, value in values.items()
        if isinstance(value, str) and len(value) > LONG_CHARS and name in stream.fids
    }
    if not texts:
        return SplitBody(body, None, {})
    rest = {name: raw for name, raw in _RAW.decode(body).items() if name not in texts}
    notes = {name: (len(text), hashlib.sha256(text.encode()).digest()) for name, text in texts.items()}
    return SplitBody(_encode(rest), msgspec.msgpack.encode(notes), texts)


def chunks(rid: int, fid: int, text: str) -> Iterable[tuple[int, int, int, bytes, str]]:
    """Cut a long text into rows of the chunk table."""
    for n, start in enumerate(range(0, len(text), CHUNK_CHARS)):
        piece = text[start : start + CHUNK_CHARS]
        yield rid, fid, n, chunk_sum(piece), piece


def chunk_sum(piece: str) -> bytes:
    """Return the checksum that a chunk is checked against whenever it is read."""
    return hashlib.blake2b(piece.encode(), digest_size=_SUM_BYTES).digest()


def stored_rows(
    database: Database, stream: StreamTable, sid: int
) -> Iterator[list[tuple[int, int | None, Mapping[str, Any] | None]]]:
    """Return the live records of a shelf in portions: row number, time, and what `values_of` reads."""
    after = sid << RID_SHIFT
    while rows := database.all(
        database.sql["live_records"],
        (after, (sid + 1) << RID_SHIFT, _AT_ONCE),
    ):
        yield [(rid, ts, values_of(database, stream, rid, long, body)) for rid, ts, long, body in rows]
        after = rows[-1][0]


def values_of(
    database: Database, stream: StreamTable, rid: int, long: bytes | None, body: bytes | None
) -> Mapping[str, Any] | None:
    """Return the values of a stored record, its long texts put back in; None: it is damaged, and is never shown.

    Work over many records goes around a damaged one: it costs itself, and not the others.
    """
    if body is None:
        return None
    try:
        values = _VALUES.decode(body)
        for name in long_notes(long):
            values[name] = whole_text(database, rid, stream.fids[name])
    except (msgspec.MsgspecError, UnicodeDecodeError, KeyError, *database.damage):
        return None
    return values


def long_notes(long: bytes | None) -> dict[FieldName, tuple[int, bytes]]:
    """Read which texts of a record lie in chunks: their length in characters, and their digest."""
    return {} if long is None else msgspec.msgpack.decode(long, type=dict[FieldName, tuple[int, bytes]])


def whole_text(database: Database, rid: int, fid: int) -> str:
    """Put a long text together again."""
    pieces = database.all(database.sql["long_text"], (rid, fid))
    return "".join(piece for (piece,) in pieces)
