"""Fill new columns and new slots of the index for records that are there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from headgate.model.ids import FieldName
from headgate.store.sqlite.catalog import StreamTable
from headgate.store.sqlite.connection import Database
from headgate.store.sqlite.derive import (
    RID_SHIFT,
    text_row,
    typed_insert,
    typed_row,
)

_AT_ONCE = 1000


def refill(database: Database, old: StreamTable, new: StreamTable) -> None:
    """Derive a stream's rows anew, inside the writer's transaction."""
    insert = typed_insert(new)
    renew_text = old.slots != new.slots
    for (sid,) in database.all("SELECT sid FROM shelf WHERE stid=?", (new.stid,)):
        for rows in stored_rows(database, new, sid):
            database.many(insert, [typed_row(new, rid, values) for rid, _, values in rows])
            if renew_text and old.slots:
                out = [text_row(old, rid, ts, values) for rid, ts, values in rows]
                database.texts.take_out(tuple(old.slots.values()), out)
            if renew_text:
                put = [text_row(new, rid, ts, values) for rid, ts, values in rows]
                database.texts.put(tuple(new.slots.values()), put)
            # A large stream's texts must not all wait in memory.
            database.texts.flush(database.many)
    # Column blocks know nothing of the new columns: they are made anew when next asked for.
    database.all("DELETE FROM column_block WHERE sid IN (SELECT sid FROM shelf WHERE stid=?)", (new.stid,))
    database.all("UPDATE shelf SET col_seq=0 WHERE stid=?", (new.stid,))


def stored_rows(
    database: Database, stream: StreamTable, sid: int
) -> Iterator[list[tuple[int, int | None, Mapping[str, Any]]]]:
    """Give the live records of a shelf in portions: row number, time, and everything they say."""
    after = sid << RID_SHIFT
    while True:
        rows = database.all(
            "SELECT rid, ts, long, body FROM record WHERE rid > ? AND rid < ? AND deleted=0 ORDER BY rid LIMIT ?",
            (after, (sid + 1) << RID_SHIFT, _AT_ONCE),
        )
        if not rows:
            return
        yield [(rid, ts, values_of(database, stream, rid, long, body)) for rid, ts, long, body in rows]
        after = rows[-1][0]


def values_of(
    database: Database, stream: StreamTable, rid: int, long: bytes | None, body: bytes
) -> Mapping[str, Any]:
    """Give everything a stored record says, its long texts put back in."""
    values: dict[str, Any] = msgspec.json.decode(body)
    if long is not None:
        for name in long_notes(long):
            values[name] = whole_text(database, rid, stream.fids[name])
    return values


def long_notes(long: bytes | None) -> dict[FieldName, tuple[int, bytes]]:
    """Say which texts of a record lie in chunks: their length in characters, and their digest."""
    return {} if long is None else msgspec.msgpack.decode(long, type=dict[FieldName, tuple[int, bytes]])


def whole_text(database: Database, rid: int, fid: int) -> str:
    """Put a long text together again."""
    pieces = database.all("SELECT text FROM chunk WHERE rid=? AND fid=? ORDER BY n", (rid, fid))
    return "".join(piece for (piece,) in pieces)
