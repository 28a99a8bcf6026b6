"""How a record lies in the store: its row number, its digest, its long texts, its change marks, and what is derived from it.

A record's row number (rid) begins with its shelf, so the records of a shelf lie together::

    rid = sid << 40 | n                  n: the record's number in its shelf, from 1
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import IO, Any, NamedTuple, cast

import msgspec

from headgate.errors import IntegrityBroken, ResourceLimit
from headgate.model.ids import BlobId, FieldName, blob_id_from
from headgate.model.instants import instant
from headgate.store.format.columns import ColumnKind, column_value
from headgate.store.format.streams import StreamTable

RID_SHIFT = 40
#: The largest numbers that there is room for: the word index holds a record's number in 32 bits.
MAX_N, MAX_SID = (1 << 27) - 1, (1 << 14) - 1
#: The bits of a row number that are the record's number in its shelf.
N_MASK = (1 << RID_SHIFT) - 1


def shelf_rows(sid: int) -> tuple[int, int]:
    """Return the row numbers between which those of a shelf lie; neither is one of them."""
    return sid << RID_SHIFT, (sid + 1) << RID_SHIFT


def digest_of(record_id: str, long: bytes | None, body: bytes) -> bytes:
    """Return the digest that a record is checked against whenever it is read."""
    return hashlib.sha256(b"%b\0%b\0%b" % (record_id.encode(), long or b"", body)).digest()


def sort_of(stream: StreamTable, values: Mapping[str, Any]) -> int | float | str | None:
    """Return the value that places a record in its stream's order."""
    name = stream.declaration.cursor_field
    if name is None:
        return None
    column = stream.columns[name]
    value = values.get(name)
    if column.kind in {ColumnKind.WORD, ColumnKind.HASH}:
        return value if isinstance(value, str) else None
    return column_value(column.kind, value)


def ts_of(stream: StreamTable, values: Mapping[str, Any]) -> int | None:
    """Return a record's place in time, if it has one."""
    name = stream.time_field
    value = None if name is None else values.get(name)
    return instant(value) if isinstance(value, str) else None


def typed_row(stream: StreamTable, rid: int, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a record's row of the typed table, in the order of the stream's columns."""
    get = values.get
    return rid, *[
        None if (value := get(name)) is None else convert(value) for name, convert in stream.converters
    ]


def search_texts(
    stream: StreamTable, values: Mapping[str, Any], changed: Collection[str] | None = None
) -> list[tuple[int, str]]:
    """Return the texts of a record that are searched, by number of field; only of those that changed, if they are known.

    One that is missing is empty: so every live record is in the index for every searched field, and a check of the
    store can compare them.
    """
    return [
        (fid, searched_text(values.get(name)))
        for name, fid in stream.searched.items()
        if changed is None or name in changed
    ]


def blob_uses(
    stream: StreamTable, rid: int, values: Mapping[str, Any]
) -> Iterable[tuple[str, int, int, str | None]]:
    """Return the files that a record refers to, field by field."""
    for name, value in values.items():
        fid = stream.fids.get(FieldName(name))
        if fid is not None and type(value) is dict:
            reference = cast("dict[str, Any]", value)
            blob_id, mime = reference.get("blob_id"), reference.get("mime_type")
            if isinstance(blob_id, str):
                yield blob_id, rid, fid, mime if isinstance(mime, str) else None


#: Stands for every field; no field can have this name, as none may hold NUL.
ALL_FIELDS = "\0"
#: The same in place of a field's number: records came or went.
ANY_FIELD = 0


class ChangeMark(NamedTuple):
    """The number of a change, and its ``emitted_at``; None: it is the record's own."""

    seq: int
    emitted_at: int | None


_DECODER = msgspec.msgpack.Decoder(dict[str, int | ChangeMark])


def change_marks(changed: bytes | None) -> dict[str, ChangeMark]:
    """Read the column ``changed``; marks that were written before schema 7 are numbers alone."""
    if changed is None:
        return {}
    try:
        marks = _DECODER.decode(changed)
    except (msgspec.MsgspecError, ValueError) as error:
        raise IntegrityBroken("The change numbers of a record are damaged.") from error
    return {name: ChangeMark(mark, None) if isinstance(mark, int) else mark for name, mark in marks.items()}


def with_change(changed: bytes | None, names: Iterable[str], mark: ChangeMark) -> bytes:
    """Note that some fields changed, beside what was noted before."""
    return msgspec.msgpack.encode(change_marks(changed) | dict.fromkeys(names, mark))


def emitted_at_of(marks: Mapping[str, ChangeMark], visible: Iterable[str] | None, otherwise: int) -> int:
    """Return the time of the last change of a visible field; None: of any field."""
    names = marks if visible is None else (ALL_FIELDS, *visible)
    visible_marks = [marks[name] for name in names if name in marks]
    if not visible_marks:
        return otherwise
    last = max(visible_marks, key=lambda mark: mark.seq).emitted_at
    return otherwise if last is None else last


LONG_CHARS = 32_768
CHUNK_CHARS = 8192
_SUM_BYTES = 8
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


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
    return SplitBody(_ENCODE(rest), msgspec.msgpack.encode(notes), texts)


def chunks(rid: int, fid: int, text: str) -> Iterable[tuple[int, int, int, bytes, str]]:
    """Cut a long text into rows of the chunk table."""
    for n, start in enumerate(range(0, len(text), CHUNK_CHARS)):
        piece = text[start : start + CHUNK_CHARS]
        yield rid, fid, n, chunk_sum(piece), piece


def chunk_sum(piece: str) -> bytes:
    """Return the checksum that a chunk is checked against whenever it is read."""
    return hashlib.blake2b(piece.encode(), digest_size=_SUM_BYTES).digest()


def long_notes(long: bytes | None) -> dict[FieldName, tuple[int, bytes]]:
    """Read which texts of a record lie in chunks: their length in characters, and their digest."""
    return {} if long is None else msgspec.msgpack.decode(long, type=dict[FieldName, tuple[int, bytes]])


MAX_BLOB_BYTES = 1024 * 1024 * 1024


async def receive(content: AsyncIterator[bytes], file: IO[bytes]) -> tuple[BlobId, int]:
    """Write what arrives to a file; return the id that its digest makes, and its size."""
    hashed, size = hashlib.sha256(), 0
    async for piece in content:
        size += len(piece)
        if size > MAX_BLOB_BYTES:
            raise ResourceLimit(f"A file may have at most {MAX_BLOB_BYTES} bytes.")
        hashed.update(piece)
        file.write(piece)
    return blob_id_from(hashed.hexdigest()), size


_ENCODE = msgspec.json.Encoder().encode
#: How many reads ask for the same fields before a type is made for them.
_READS_BEFORE_TYPE = 8
#: What no name of a msgspec type's member may hold.
_UNSPELLABLE = re.compile(r'["\\\x00-\x1f]')


def is_spellable(name: FieldName) -> bool:
    """Return whether a msgspec type can have a member of this name."""
    return _UNSPELLABLE.search(name) is None


class Projector:
    """Cuts bodies down to a fixed set of fields."""

    __slots__ = ("_decode", "_reads_left", "fields")

    def __init__(self, fields: Sequence[FieldName]) -> None:
        self.fields = tuple(fields)
        self._decode: Callable[[bytes], Any] | None = None
        self._reads_left = _READS_BEFORE_TYPE if all(map(is_spellable, self.fields)) else sys.maxsize

    def count_read(self) -> None:
        """Note that one more read projects to these fields; of many reads a type is made, which halves the work.

        Callers choose the fields. Types of all choices that were made once would take megabytes, until the
        collector of garbage finds them.
        """
        self._reads_left -= 1
        if self._reads_left == 0:
            self._decode = _shape_decoder(self.fields)

    def project(self, body: bytes, added: Mapping[FieldName, str] | None = None) -> bytes:
        """Return the body with only the chosen fields, and put texts back in that are stored apart."""
        decode = self._decode
        if decode is None:
            return _ENCODE(_chosen(_RAW.decode(body), self.fields, added or {}))
        shape: Any = decode(body)
        if added is not None:
            for index, field in enumerate(self.fields):
                if field in added:
                    setattr(shape, f"f{index}", msgspec.Raw(_ENCODE(added[field])))
        return _ENCODE(shape)


def _shape_decoder(fields: tuple[FieldName, ...]) -> Callable[[bytes], Any]:
    names = {f"f{index}": field for index, field in enumerate(fields)}
    shape = msgspec.defstruct(
        "Projection",
        [(name, msgspec.Raw | msgspec.UnsetType, msgspec.UNSET) for name in names],
        rename=names,
        gc=False,
    )
    return msgspec.json.Decoder(shape).decode


def _chosen(
    members: Mapping[str, msgspec.Raw], fields: tuple[FieldName, ...], added: Mapping[FieldName, str]
) -> dict[str, Any]:
    values: dict[str, Any] = {**members, **added}
    return {field: values[field] for field in fields if field in values}


def text_in(body: bytes, field: FieldName) -> str | None:
    """Return one field's text out of a body, if it holds a text."""
    raw = _one_decoder(field)(body)
    value = None if raw is None else msgspec.json.decode(raw)
    return value if isinstance(value, str) else None


def searched_text_in(body: bytes, field: FieldName) -> str:
    """Return what is searched of one field of a body."""
    raw = _one_decoder(field)(body)
    return "" if raw is None else searched_text(msgspec.json.decode(raw))


def searched_text(value: Any) -> str:
    """Return the text of a value that is searched: its own, or the texts in a list or object, one to a line."""
    return value if isinstance(value, str) else "\n".join(_texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _texts(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            yield from _texts(item)


@lru_cache(maxsize=512)
def _one_decoder(field: FieldName) -> Callable[[bytes], msgspec.Raw | None]:
    if not is_spellable(field):
        return lambda body: _RAW.decode(body).get(field)
    decode = _shape_decoder((field,))

    def one(body: bytes) -> msgspec.Raw | None:
        raw = decode(body).f0
        return None if raw is msgspec.UNSET else raw

    return one


def projector(fields: tuple[FieldName, ...]) -> Projector:
    """Return the projector for these fields, for one read."""
    known = _projector(fields)
    known.count_read()
    return known


_projector = lru_cache(maxsize=512)(Projector)
