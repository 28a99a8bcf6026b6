"""Stats: what a store holds, measured without reading it all.

The tables are queried directly: loading the catalog, and the code that parses declarations, would take longer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NamedTuple

import msgspec

from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.maintenance import ConnectionStats, StoreStats, StreamStats
from headgate.store.format.records import RID_SHIFT, long_notes
from headgate.store.sql.database import Database

_SAMPLES = 32


class _StreamDocument(msgspec.Struct):
    name: str
    cursor_field: str | None = None


class _DeclarationDocument(msgspec.Struct):
    streams: list[_StreamDocument]


class _StreamKey(NamedTuple):
    connector_key: str
    name: str


class _DeclaredStream(NamedTuple):
    #: In the newest declaration, and not only in an older one.
    is_declared: bool
    cursor_field: str | None


class _ConnectionRow(NamedTuple):
    connection_id: ConnectionId
    connector_key: ConnectorKey
    display_name: str


class _ShelfRow(NamedTuple):
    sid: int
    stid: int
    name: StreamName
    live: int
    next_n: int
    updated_at: int | None


_Declared = Mapping[_StreamKey, _DeclaredStream]
_read_declaration = msgspec.json.Decoder(_DeclarationDocument).decode


class TakenSpace(NamedTuple):
    """The version of a store's schema, and how much space it takes."""

    schema: int
    database_bytes: int
    log_bytes: int
    #: Other homes have their share of it.
    is_shared: bool


def stats(database: Database, measure: Callable[[], TakenSpace]) -> StoreStats:
    """Measure what the store holds, in one read transaction."""
    with database.reading():
        ((blob_count, blob_bytes),) = database.all(database.sql["blob_totals"])
        declared = _declared(database)
        rows = [_ConnectionRow(*row) for row in database.all(database.sql["connections_by_age"])]
        space = measure()
        return StoreStats(
            schema=space.schema,
            change_number=database.value(database.sql["change_number"]),
            connections=tuple(_connection(database, declared, row) for row in rows),
            database_bytes=space.database_bytes,
            log_bytes=space.log_bytes,
            blob_count=blob_count,
            blob_bytes=blob_bytes,
            is_shared=space.is_shared,
        )


def _declared(database: Database) -> _Declared:
    """Find the newest declaration of every stream that was ever declared."""
    streams_by_key: dict[_StreamKey, _StreamDocument] = {}
    newest: dict[str, set[str]] = {}
    for key, document, _, _ in database.all(database.sql["all_declarations"]):
        streams = _read_declaration(document).streams
        newest[key] = {stream.name for stream in streams}
        streams_by_key.update({_StreamKey(key, stream.name): stream for stream in streams})
    return {
        key: _DeclaredStream(key.name in newest[key.connector_key], stream.cursor_field)
        for key, stream in streams_by_key.items()
    }


def _connection(database: Database, declared: _Declared, row: _ConnectionRow) -> ConnectionStats:
    shelves = [
        _ShelfRow(*shelf_row)
        for shelf_row in database.all(database.sql["shelves_of_connection"], (row.connection_id,))
    ]
    streams: dict[str, StreamStats] = {}
    for shelf in shelves:
        stream = _stream(database, shelf, declared[_StreamKey(row.connector_key, shelf.name)])
        known = streams.get(shelf.name)
        # What rules hide is on another shelf than the rest.
        streams[shelf.name] = stream if known is None else _together(known, stream)
    return ConnectionStats(row.connection_id, row.connector_key, row.display_name, tuple(streams.values()))


def _together(first: StreamStats, other: StreamStats) -> StreamStats:
    def of_both(choose: Callable[[list[int]], int], *values: int | None) -> int | None:
        known = [value for value in values if value is not None]
        return choose(known) if known else None

    return replace(
        first,
        record_count=first.record_count + other.record_count,
        about_bytes=first.about_bytes + other.about_bytes,
        oldest=of_both(min, first.oldest, other.oldest),
        newest=of_both(max, first.newest, other.newest),
        last_updated=of_both(max, first.last_updated, other.last_updated),
    )


def _stream(database: Database, shelf: _ShelfRow, declared: _DeclaredStream) -> StreamStats:
    kinds = database.all(database.sql["field_kind"], (shelf.stid, declared.cursor_field))
    is_timed = kinds == [("time",)]
    return StreamStats(
        shelf.name,
        shelf.live,
        _about_bytes(database, shelf),
        oldest=_sort(database, database.sql["oldest_sort"], shelf) if is_timed else None,
        newest=_sort(database, database.sql["newest_sort"], shelf) if is_timed else None,
        last_updated=shelf.updated_at,
        is_declared=declared.is_declared,
    )


def _sort(database: Database, sql: str, shelf: _ShelfRow) -> int | None:
    row = database.one(sql, (shelf.sid,))
    return None if row is None else database.dialect.shown_sort(row[0])


def _about_bytes(database: Database, shelf: _ShelfRow) -> int:
    """Estimate the size of all records from some that are spread evenly over the shelf."""
    step = max(1, (shelf.next_n - 1) // _SAMPLES)
    sizes: list[int] = []
    for n in range(1, shelf.next_n, step):
        row = database.one(database.sql["stored_size"], (shelf.sid << RID_SHIFT | n,))
        if row is not None:
            body_bytes, long = row
            sizes.append(body_bytes + sum(chars for chars, _ in long_notes(long).values()))
    return round(sum(sizes) / len(sizes) * shelf.live) if sizes else 0
