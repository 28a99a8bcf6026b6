"""What is stored beside a record's body, derived from it: order, time, typed values, words, digest."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from typing import Any, cast

from headgate.model.ids import FieldName
from headgate.model.instants import instant
from headgate.store.format.columns import ColumnKind, column_value
from headgate.store.format.projection import searched_text
from headgate.store.format.streams import StreamTable


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
