"""Stats: what is in a store, told without reading it all.

Asks the tables directly: reading the declarations whole, and what can do so, would take longer than the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.maintenance import ConnectionStats, StoreStats, StreamStats
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.migrate import version_of
from headgate.store.sqlite.row_numbers import RID_SHIFT

_SAMPLES = 32


class _Stream(msgspec.Struct):
    name: str
    cursor_field: str | None = None


class _Declaration(msgspec.Struct):
    streams: list[_Stream]


_long = msgspec.msgpack.Decoder(dict[str, tuple[int, bytes]]).decode
_declaration = msgspec.json.Decoder(_Declaration).decode
#: For each stream of a connector: whether the newest declaration has it, and the field it is ordered by.
_Declared = Mapping[tuple[str, str], tuple[bool, str | None]]


def stats(database: Database) -> StoreStats:
    """Tell what the store holds, in one state of it."""
    with database.reading():
        blob_count, blob_bytes = database.all("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blob")[0]
        declared = _declared(database)
        connections = database.all(
            "SELECT id, connector_key, display_name FROM connection ORDER BY created_at, id"
        )
        return StoreStats(
            version_of(database),
            database.value("SELECT v FROM meta WHERE k='seq'"),
            tuple(_connection(database, declared, *row) for row in connections),
            _size(database.path),
            _size(Path(f"{database.path}-wal")),
            blob_count,
            blob_bytes,
        )


def _declared(database: Database) -> _Declared:
    found: dict[tuple[str, str], tuple[bool, str | None]] = {}
    newest: dict[str, set[str]] = {}
    for key, document in database.all("SELECT connector_key, document FROM declaration ORDER BY position"):
        streams = _declaration(document).streams
        newest[key] = {stream.name for stream in streams}
        found.update({(key, stream.name): (True, stream.cursor_field) for stream in streams})
    return {(key, name): (name in newest[key], cursor) for (key, name), (_, cursor) in found.items()}


def _connection(database: Database, declared: _Declared, *row: str) -> ConnectionStats:
    connection_id, key, display_name = row
    shelves = database.all(
        "SELECT sid, stid, name FROM shelf JOIN stream USING (stid) WHERE connection_id=? ORDER BY sid",
        (connection_id,),
    )
    return ConnectionStats(
        ConnectionId(connection_id),
        ConnectorKey(key),
        display_name,
        tuple(_stream(database, shelf, *declared[key, shelf[2]]) for shelf in shelves),
    )


def _stream(
    database: Database,
    shelf: tuple[Any, ...],
    is_declared: bool,  # noqa: FBT001 - what was found out about it, handed on
    cursor: str | None,
) -> StreamStats:
    sid, stid, name = shelf
    ((live, next_n, updated_at),) = database.all(
        "SELECT live, next_n, updated_at FROM shelf WHERE sid=?", (sid,)
    )
    is_timed = database.all("SELECT kind FROM field WHERE stid=? AND name=?", (stid, cursor)) == [("time",)]
    return StreamStats(
        StreamName(name),
        live,
        _about_bytes(database, sid, next_n, live),
        _end(database, sid, "ASC") if is_timed else None,
        _end(database, sid, "DESC") if is_timed else None,
        updated_at,
        is_declared,
    )


def _end(database: Database, sid: int, direction: str) -> int | None:
    row = database.one(
        "SELECT sort FROM record INDEXED BY record_sort WHERE sid=? AND deleted=0 AND sort IS NOT NULL "
        f"ORDER BY sort {direction} LIMIT 1",
        (sid,),
    )
    return None if row is None else row[0]


def _about_bytes(database: Database, sid: int, next_n: int, live: int) -> int:
    """Look at records spread evenly over the shelf, and take them for all."""
    step = max(1, (next_n - 1) // _SAMPLES)
    sizes: list[int] = []
    for n in range(1, next_n, step):
        row = database.one(
            "SELECT length(body), long FROM record WHERE rid=? AND deleted=0", (sid << RID_SHIFT | n,)
        )
        if row is not None:
            notes = {} if row[1] is None else _long(row[1])
            sizes.append(row[0] + sum(chars for chars, _ in notes.values()))
    return round(sum(sizes) / len(sizes) * live) if sizes else 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
