"""Many homes in one database: one is filled by real ingest, the others are copies of its rows under other numbers.

What is asked is whether a read of one home depends on how many others share its tables.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, LiteralString, cast

import psycopg

from bench.homes import NOW, SEARCHED, ingest, settled
from bench.records import HOME, Household, declaration
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import PagePlan, Reach, RecordPlan, SearchPlan, SearchReach, parse_terms
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.database import HomePlace
from headgate.store.postgres.migrate import open_place

MESSAGES = StreamName("messages")
_CONNECTIONS = 4
#: So many homes are read in turns; each has two connections to the database then.
_READ_AT_ONCE = 16
_ROUNDS = 25
_TURNS = 5
_TABLES = (
    "SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c"
    " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace GROUP BY c.relname"
    " HAVING bool_or(a.attname = 'home') ORDER BY c.relname"
)


@dataclass(frozen=True, slots=True)
class Read:
    """What a kind of read takes: milliseconds, and how many blocks of 8 kB the server touches."""

    ms: float
    blocks: float


@dataclass(frozen=True, slots=True)
class HomeReads:
    """What reads of random homes take when so many homes share the tables."""

    homes: int
    #: The first page of a process in milliseconds: it connects, reads the catalog and has its statements planned.
    first: float
    record: Read
    page: Read
    search: Read


@dataclass(frozen=True, slots=True)
class Making:
    """What it takes to make homes."""

    #: The tables of a database, made once for all homes.
    tables_ms: float
    home_ms: float
    #: A home with its declaration and its connections, by the store.
    ready_ms: float


async def first_home(url: str, records: int) -> Making:
    """Make the tables and the first home, and fill it."""
    started = time.perf_counter()
    place = await asyncio.to_thread(open_place, url, name_of(1))
    tables_ms = (time.perf_counter() - started) * 1e3
    home_ms = median([await asyncio.to_thread(_make, url, number) for number in range(2, 7)])
    store = PostgresStore(place, lambda: NOW)
    started = time.perf_counter()
    await store.declare(HOME, declaration())
    ids = [(await store.create_connection(HOME, f"Person {n}")).id for n in range(_CONNECTIONS)]
    ready_ms = home_ms + (time.perf_counter() - started) * 1e3
    await ingest(store, ids, Household(connections=_CONNECTIONS).make(records))
    await settled(store)
    await store.close()
    return Making(tables_ms, home_ms, ready_ms)


def name_of(number: int) -> str:
    """Name a home."""
    return f"home-{number}"


def _make(url: str, number: int) -> float:
    started = time.perf_counter()
    place = open_place(url, name_of(number))
    assert place.home == number
    return (time.perf_counter() - started) * 1e3


def copy_homes(url: str, first: int, last: int) -> None:
    """Copy the rows of the first home under the numbers from one to another, and let the server count them."""
    with psycopg.connect(url, autocommit=True) as connection, connection.transaction():
        for table, columns in connection.execute(_TABLES).fetchall():
            _copy_rows(connection, table, columns, first, last)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM (ANALYZE)")


def _copy_rows(connection: Any, table: str, columns: Sequence[str], first: int, last: int) -> None:
    if table == "home":
        statement = "INSERT INTO home SELECT number, 'home-' || number FROM generate_series({0}, {1}) number ON CONFLICT DO NOTHING"
    else:
        others = ", ".join(name for name in columns if name != "home")
        names = f"home, {others}"
        statement = (
            f"INSERT INTO {table}({names}) SELECT home_number, {others} FROM generate_series({{0}}, {{1}}) home_number, {table}"  # noqa: S608
            " WHERE home = 1 ORDER BY home_number"
        )
    if table == "meta":
        statement += " ON CONFLICT(home, k) DO UPDATE SET v = excluded.v"
    connection.execute(cast("LiteralString", statement.format(first, last)))


async def read_homes(url: str, homes: int) -> HomeReads:
    """Read random homes in turns: after each read another home is next."""
    chosen = random.Random(homes).sample(range(1, homes + 1), min(homes, _READ_AT_ONCE))
    places = [HomePlace(url, number) for number in chosen]
    async with _opened(places[:1]) as (store,):
        ids, fields, keys = await _known(store)
    reach = Reach(MESSAGES, ids, fields)
    page, word = PagePlan(reach, 25), SearchPlan((_searched(reach),), parse_terms("meeting"), 25)
    async with _opened(places) as stores:
        first = median([await _timed(store.page(page)) for store in stores])
    plans = [RecordPlan(reach, RecordId(key)) for key in keys]
    return HomeReads(
        homes,
        first,
        await _in_turns(places, lambda store, number: store.record(plans[number % len(plans)])),
        await _in_turns(places, lambda store, _: store.page(page)),
        await _in_turns(places, lambda store, _: store.search(word)),
    )


@asynccontextmanager
async def _opened(places: Sequence[HomePlace]) -> AsyncGenerator[list[PostgresStore]]:
    stores = [PostgresStore(place, lambda: NOW, connections=1) for place in places]
    try:
        yield stores
    finally:
        for store in stores:
            await store.close()


async def _in_turns(places: Sequence[HomePlace], ask: Callable[[PostgresStore, int], Awaitable[Any]]) -> Read:
    """Time a kind of read, and count the blocks that the server touches for it, which no other program disturbs."""
    before = _blocks(places[0].url)
    async with _opened(places) as stores:
        for store in stores:
            assert await ask(store, 0)
        turns = [
            [await _timed(ask(store, number)) for number in range(_ROUNDS) for store in stores]
            for _ in range(_TURNS)
        ]
    # A connection that ends hands in its counts.
    touched = _blocks(places[0].url) - before
    return Read(min(map(median, turns)), touched / sum(map(len, turns)))


def _blocks(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute(
            "SELECT blks_hit + blks_read FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return row[0]


async def _known(store: PostgresStore) -> tuple[tuple[ConnectionId, ...], tuple[FieldName, ...], list[str]]:
    """Give what is the same in all homes: connections, fields, keys of some records."""
    ids = tuple(one.id for one in await store.connections())
    fields = tuple((await store.declarations())[HOME].streams[MESSAGES].fields)
    page = await store.page(PagePlan(Reach(MESSAGES, ids, fields), 100))
    return ids, fields, [record.id for record in page.records]


def _searched(reach: Reach) -> SearchReach:
    return SearchReach(reach, tuple(map(FieldName, SEARCHED[reach.stream])))


async def _timed(read: Awaitable[Any]) -> float:
    started = time.perf_counter()
    await read
    return (time.perf_counter() - started) * 1e3
