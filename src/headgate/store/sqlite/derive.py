"""What is kept beside a record's text: order, time, typed values, index text, long texts, digest. Pure."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import msgspec

from headgate.model.ids import FieldName
from headgate.model.instants import instant
from headgate.store.sqlite.catalog import ColumnKind, StreamTable
from headgate.store.sqlite.places import RID_SHIFT
from headgate.store.words import cut

LONG_CHARS = 32_768
CHUNK_CHARS = 8192
#: Stands for every field in a record's change numbers; no field can have this name, as none may hold NUL.
ALL_FIELDS = "\0"
#: Limits of the index's row numbers: 22 bits of time, 14 of shelf, 27 of record.
N_BITS, SID_BITS, TIME_SHIFT = 27, 14, 41
MAX_N, MAX_SID = (1 << N_BITS) - 1, (1 << SID_BITS) - 1
_BUCKET = 4096 * 1_000_000
_BUCKET_ZERO, _BUCKET_MOST = 1 << 21, (1 << 22) - 1
_SUM_BYTES = 8
_FLOAT_EXACT = 2.0**53
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.encode


def bucket(ts: int | None) -> int:
    """Give the step of 68 minutes that a time falls into; 0 for none."""
    if ts is None:
        return 0
    return min(max(ts // _BUCKET + _BUCKET_ZERO, 1), _BUCKET_MOST)


def tid_of(ts: int | None, rid: int) -> int:
    """Give a record's row in the index: rows are in order of time, so the newest are found first."""
    return bucket(ts) << TIME_SHIFT | (rid >> RID_SHIFT) << N_BITS | (rid & MAX_N)


def rid_of(tid: int) -> int:
    """Give the record that a row of the index belongs to."""
    return (tid >> N_BITS & MAX_SID) << RID_SHIFT | (tid & MAX_N)


@dataclass(frozen=True, slots=True)
class Kept:
    """A body as it is kept: without its long texts, which lie in chunks."""

    body: bytes
    long: bytes | None
    texts: Mapping[FieldName, str]


def kept(stream: StreamTable, body: bytes, values: Mapping[str, Any]) -> Kept:
    """Take long texts of declared fields out of a body."""
    if len(body) <= LONG_CHARS:
        return Kept(body, None, {})
    texts = {
        FieldName(name): value
        for name, value in values.items()
        if isinstance(value, str) and len(value) > LONG_CHARS and name in stream.fids
    }
    if not texts:
        return Kept(body, None, {})
    rest = {name: raw for name, raw in _RAW.decode(body).items() if name not in texts}
    notes = {name: (len(text), hashlib.sha256(text.encode()).digest()) for name, text in texts.items()}
    return Kept(_encode(rest), msgspec.msgpack.encode(notes), texts)


def digest_of(record_id: str, long: bytes | None, body: bytes) -> bytes:
    """Give the digest that a record is checked against whenever it is read."""
    return hashlib.sha256(b"%b\0%b\0%b" % (record_id.encode(), long or b"", body)).digest()


def chunks(rid: int, fid: int, text: str) -> Iterable[tuple[int, int, int, bytes, str]]:
    """Cut a long text into rows of the chunk table."""
    for n, start in enumerate(range(0, len(text), CHUNK_CHARS)):
        piece = text[start : start + CHUNK_CHARS]
        yield rid, fid, n, chunk_sum(piece), piece


def chunk_sum(piece: str) -> bytes:
    """Give the checksum that a chunk is checked against whenever it is read."""
    return hashlib.blake2b(piece.encode(), digest_size=_SUM_BYTES).digest()


def sort_of(stream: StreamTable, values: Mapping[str, Any]) -> int | float | str | None:
    """Give the value that places a record in its stream's order."""
    name = stream.declaration.cursor_field
    if name is None:
        return None
    column = stream.columns[name]
    value = values.get(name)
    if column.kind in {ColumnKind.WORD, ColumnKind.HASH}:
        return value if isinstance(value, str) else None
    return column_value(column.kind, value)


def ts_of(stream: StreamTable, values: Mapping[str, Any]) -> int | None:
    """Give a record's place in time, if it has one."""
    name = stream.time_field
    value = None if name is None else values.get(name)
    return instant(value) if isinstance(value, str) else None


def column_value(kind: ColumnKind, value: Any) -> Any:
    """Give what a typed column holds for a value; None for one of another type."""
    return None if value is None else _HOLDERS[kind](value)


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _hash(value: Any) -> int | None:
    return text_hash(value) if isinstance(value, str) else None


def _time(value: Any) -> int | None:
    return instant(value) if isinstance(value, str) else None


def _boolean(value: Any) -> int | None:
    return int(value) if isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # JSON does not tell 3.0 from 3.
    return (
        int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _FLOAT_EXACT else None
    )


_HOLDERS: Mapping[ColumnKind, Callable[[Any], Any]] = {
    ColumnKind.WORD: _word,
    ColumnKind.HASH: _hash,
    ColumnKind.TIME: _time,
    ColumnKind.BOOLEAN: _boolean,
    ColumnKind.NUMBER: _number,
    ColumnKind.INTEGER: _integer,
}


def text_hash(text: str) -> int:
    """Give the checksum of a text, by which an exact filter finds candidates."""
    return zlib.crc32(text.encode())


def typed_row(stream: StreamTable, rid: int, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give a record's row of the typed table, in the order of the stream's columns."""
    holders = stream.kept.get("holders")
    if holders is None:
        pairs = stream.columns.items()
        holders = stream.kept["holders"] = [(name, _HOLDERS[column.kind]) for name, column in pairs]
    get = values.get
    return rid, *[None if (value := get(name)) is None else hold(value) for name, hold in holders]


def typed_insert(stream: StreamTable) -> str:
    """Give the statement that takes such rows."""
    names = "".join(f", {column.name}" for column in stream.columns.values())
    return f"INSERT OR REPLACE INTO {stream.table}(rid{names}) VALUES(?{', ?' * len(stream.columns)})"


def text_row(stream: StreamTable, rid: int, ts: int | None, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Give a record's row of the index, in the order of the stream's slots."""
    texts = (values.get(name) for name in stream.slots)
    cuts = (cut(text) if isinstance(text, str) else None for text in texts)
    return tid_of(ts, rid), *cuts, f"s{rid >> RID_SHIFT} t{stream.stid}"


def blob_uses(
    stream: StreamTable, rid: int, values: Mapping[str, Any]
) -> Iterable[tuple[str, int, int, str | None]]:
    """Give the files that a record refers to, field by field."""
    for name, value in values.items():
        fid = stream.fids.get(FieldName(name))
        if fid is not None and type(value) is dict:
            reference = cast("dict[str, Any]", value)
            blob_id, mime = reference.get("blob_id"), reference.get("mime_type")
            if isinstance(blob_id, str):
                yield blob_id, rid, fid, mime if isinstance(mime, str) else None
