"""Long texts: cut out of a body and stored in chunks, and put back when a whole record is needed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from headgate.model.ids import FieldName

if TYPE_CHECKING:
    # Importing the catalog takes longer than all that 'headgate store stats' does.
    from headgate.store.format.streams import StreamTable

LONG_CHARS = 32_768
CHUNK_CHARS = 8192
_SUM_BYTES = 8
_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
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


def long_notes(long: bytes | None) -> dict[FieldName, tuple[int, bytes]]:
    """Read which texts of a record lie in chunks: their length in characters, and their digest."""
    return {} if long is None else msgspec.msgpack.decode(long, type=dict[FieldName, tuple[int, bytes]])
