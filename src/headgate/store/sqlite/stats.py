"""Stats: what is in a store, told without reading it all."""

from __future__ import annotations

from pathlib import Path

from headgate.model.care import ConnectionStats, StoreStats, StreamStats
from headgate.model.record import Connection
from headgate.store.sqlite.catalog import Catalog, Shelf, current
from headgate.store.sqlite.connection import Database
from headgate.store.sqlite.derive import RID_SHIFT
from headgate.store.sqlite.migrate import version_of
from headgate.store.sqlite.refill import long_notes

_SAMPLES = 32


def stats(database: Database) -> StoreStats:
    """Tell what the store holds, in one state of it."""
    with database.reading():
        catalog = current(database, Catalog())
        blob_count, blob_bytes = database.all("SELECT count(*), coalesce(sum(size_bytes), 0) FROM blob")[0]
        return StoreStats(
            version_of(database),
            database.value("SELECT v FROM meta WHERE k='seq'"),
            tuple(_connection(database, catalog, one) for one in catalog.connections.values()),
            _size(database.path),
            _size(Path(f"{database.path}-wal")),
            blob_count,
            blob_bytes,
        )


def _connection(database: Database, catalog: Catalog, connection: Connection) -> ConnectionStats:
    shelves = [shelf for shelf in catalog.by_sid.values() if shelf.connection_id == connection.id]
    return ConnectionStats(
        connection.id,
        connection.connector_key,
        connection.display_name,
        tuple(_stream(database, shelf) for shelf in shelves),
    )


def _stream(database: Database, shelf: Shelf) -> StreamStats:
    ((live, next_n, updated_at),) = database.all(
        "SELECT live, next_n, updated_at FROM shelf WHERE sid=?", (shelf.sid,)
    )
    cursor = shelf.stream.declaration.cursor_field
    is_timed = cursor is not None and shelf.stream.declaration.fields[cursor].kind.is_time
    return StreamStats(
        shelf.stream.declaration.name,
        live,
        _about_bytes(database, shelf.sid, next_n, live),
        _end(database, shelf.sid, "ASC") if is_timed else None,
        _end(database, shelf.sid, "DESC") if is_timed else None,
        updated_at,
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
            sizes.append(row[0] + sum(chars for chars, _ in long_notes(row[1]).values()))
    return round(sum(sizes) / len(sizes) * live) if sizes else 0


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
