"""What the database server spends on records: bytes in tables and indexes, write-ahead log, vacuum, new indexes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import LiteralString, cast

import psycopg

from bench.homes import NOW
from bench.records import HOME, Household, declaration
from headgate.model.ids import StreamName
from headgate.model.rows import Batch
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.migrate import open_place

_SIZES = (
    "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
    " WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace ORDER BY pg_total_relation_size(oid) DESC"
)
_CATALOG = (
    "SELECT count(*) FILTER (WHERE relkind = 'r'), count(*) FILTER (WHERE relkind = 'i') FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace"
)
_INGESTED = 4000
_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class TableBytes:
    """How many bytes one table and its indexes take."""

    name: str
    table: int
    indexes: int


@dataclass(frozen=True, slots=True)
class Costs:
    """What the server takes for each record."""

    wal_of_ingest: float
    #: Seconds for each million of records: to vacuum all tables, and to make one more index of records.
    vacuum_seconds: float
    index_seconds: float


def sizes(url: str) -> list[TableBytes]:
    """Measure every table, the largest first."""
    with psycopg.connect(url) as connection:
        return [TableBytes(*row) for row in connection.execute(_SIZES).fetchall()]


def catalog_counts(url: str) -> tuple[int, int]:
    """Count the tables and indexes of the database, which are the same for any number of homes."""
    with psycopg.connect(url) as connection:
        row = connection.execute(_CATALOG).fetchone()
    assert row is not None
    return row[0], row[1]


async def costs(url: str, records: int) -> Costs:
    """Measure what the server does for records, in a database that has so many of them."""
    vacuum, index = (_seconds(url, statement) / records * 1e6 for statement in _LONG)
    return Costs(await _wal_of_ingest(url), vacuum, index)


#: Every page is looked at, as after a large change; the index is undone.
_LONG = (
    "VACUUM (DISABLE_PAGE_SKIPPING)",
    "BEGIN; CREATE INDEX bench_index ON record(home, sid, emitted_at); ROLLBACK",
)


def _seconds(url: str, statements: str) -> float:
    with psycopg.connect(url, autocommit=True) as connection:
        started = time.perf_counter()
        connection.execute(cast("LiteralString", statements))
        return time.perf_counter() - started


def wal_position(url: str) -> int:
    """Give how much has been written into the write-ahead log."""
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert row is not None
    return int(row[0])


async def _wal_of_ingest(url: str) -> float:
    """Give the bytes of write-ahead log for each record of a stream of batches into a new home."""
    store = PostgresStore(open_place(url, "ingest"), lambda: NOW)
    try:
        await store.declare(HOME, declaration())
        connection = await store.create_connection(HOME, "Person 0")
        lines = _messages()
        # The first write to a page after a checkpoint puts the whole page into the log, as it does in use.
        _seconds(url, "CHECKPOINT")
        before = wal_position(url)
        for start in range(0, len(lines), _AT_ONCE):
            batch = Batch(connection.id, StreamName("messages"), lines[start : start + _AT_ONCE], NOW)
            assert not (await store.ingest(batch)).errors
        return (wal_position(url) - before) / len(lines)
    finally:
        await store.close()


def _messages() -> Sequence[bytes]:
    made = Household(connections=1).make(2 * _INGESTED)
    return [one.line for one in made if one.stream == "messages"][:_INGESTED]
