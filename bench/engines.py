"""Both engines beside each other: the same homes, the same reads, in turns, on a database server on this machine.

`python -m bench store --engine postgres --records 100000 --records 1000000` copies the homes of `bench store` into
PostgreSQL once, which also compares every row, and asks all stores in turns, on the event loop that
serves; `python -m bench engines` is the same.
Figures are the lowest of the medians of several turns, in milliseconds, and records a second for ingest.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random
import shutil
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Any

import apsw
import uvloop
from msgspec.structs import replace

from bench.database import copied, fresh_database, running
from bench.homes import BIG, CACHE, NOW, SEARCHED, build_home, read_built, settled
from bench.records import HOME, Household, declaration
from headgate.home import Home, home_in, open_home
from headgate.model.ids import FieldName, RecordId, StreamName
from headgate.model.plan import (
    AggregatePlan,
    OffsetWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    WindowPlan,
    parse_terms,
)
from headgate.model.query import Metric
from headgate.model.rows import Batch
from headgate.store.engines.opening import open_engine
from headgate.store.engines.store import Store
from headgate.store.sqlite import FILE
from tests.postgres import Server

MESSAGES = StreamName("messages")
#: A read may take so many times as long among the most records as among the fewest.
MOST_GROWTH = 1.5
LEAST_INGESTED = 3000
_KEYS = 500
_WORDS = 200
_INGEST_TURNS = 3
_AT_ONCE = 1000
_WINDOW = 4096
#: Asks a store for the answer number n; the same number gives the same answer from every engine.
Ask = Callable[[Store, int], Awaitable[Any]]


def best_median(turns: Sequence[Sequence[float]]) -> float:
    """Give the lowest of the medians of several turns: what a shared host takes away is not counted."""
    return min(map(median, turns))


def p95_of_best(turns: Sequence[Sequence[float]]) -> float:
    """Give what 19 of 20 questions stay below, each in the turn in which it was answered soonest."""
    return quantiles([min(times) for times in zip(*turns, strict=True)], n=20)[-1]


@dataclass(frozen=True, slots=True)
class Read:
    """A kind of read, how often it is timed in a turn, and the most milliseconds it may take in PostgreSQL."""

    ask: Ask
    rounds: int
    most: float
    #: Whether the limit is what SQLite takes and this much more.
    is_beyond_sqlite: bool = False
    #: Whether it may not take much longer among more records. What looks at every record has its limit alone.
    is_level: bool = False
    figure_of: Callable[[Sequence[Sequence[float]]], float] = best_median


@dataclass(frozen=True, slots=True)
class Line:
    """What one kind of read takes with so many records, in milliseconds."""

    name: str
    sqlite: float
    postgres: float
    limit: float
    #: How many times as long PostgreSQL takes as with the fewest records; None where these are the fewest.
    growth: float | None = None
    most_growth: float | None = None

    @property
    def is_good(self) -> bool:
        """Whether PostgreSQL keeps its limits."""
        has_grown = None not in (self.growth, self.most_growth) and self.growth > self.most_growth  # pyright: ignore[reportOperatorIssue]
        return self.postgres <= self.limit and not has_grown


@dataclass(frozen=True, slots=True)
class Size:
    """One home in both engines, and what is asked of them."""

    records: int
    #: SQLite and PostgreSQL.
    stores: tuple[Store, Store]
    reads: Mapping[str, Read]


def main(arguments: Sequence[str] = ()) -> None:
    """Compare the engines with 100 000 records, or with as many as are asked for."""
    parser = argparse.ArgumentParser(prog="bench engines")
    parser.add_argument("--records", type=int, action="append")
    add_options(parser)
    compare(parser.parse_args(arguments))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what says how long this measures."""
    parser.add_argument("--turns", type=int, default=5, help="how often each store is asked in turn")
    parser.add_argument("--ingested", type=int, default=10_000, help="records that are stored in a turn")


def compare(asked: argparse.Namespace) -> None:
    """Make and copy the homes that are missing, and print a table for each size."""
    with running() as server:
        for lines in uvloop.run(_bench(server, asked)):
            print(lines)


async def _bench(server: Server, asked: argparse.Namespace) -> list[str]:
    async with AsyncExitStack() as stack:
        opened = [
            await stack.enter_async_context(_opened(server, records))
            for records in sorted(asked.records or [100_000])
        ]
        figures = {name: await _in_turns(opened, name, asked.turns) for name in opened[0].reads}
    tables = [
        f"\n{size.records} records over 20 connections, ms\n{shown(lines_of(opened, figures, at))}"
        for at, size in enumerate(opened)
    ]
    return [*tables, await _ingest(server, min(asked.turns, _INGEST_TURNS), asked.ingested)]


@asynccontextmanager
async def _opened(server: Server, records: int) -> AsyncGenerator[Size]:
    directory = CACHE / f"store-{records}"
    if read_built(directory) is None:
        await build_home(directory, records)
    home = open_home(directory / "home")
    async with AsyncExitStack() as stack:
        sqlite = await stack.enter_async_context(opened_store(home))
        there = await asyncio.to_thread(copied, server, home, change_number(home), f"bench_{records}")
        postgres = await stack.enter_async_context(opened_store(there))
        yield Size(records, (sqlite, postgres), await _reads(home, sqlite))


@asynccontextmanager
async def opened_store(home: Home) -> AsyncGenerator[Store]:
    """Open the store of a home for the length of a block, once its idle tasks are done."""
    opened = open_engine(home, lambda: NOW)
    try:
        await settled(opened.store)
        yield opened.store
    finally:
        await opened.ledger.close()
        await opened.store.close()


def _rows(home: Home, statement: str, values: Sequence[str] = ()) -> list[tuple[Any, ...]]:
    bare = apsw.Connection(str(home.path / FILE), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return bare.execute(statement, values).fetchall()
    finally:
        bare.close()


def change_number(home: Home) -> int:
    """Return the number of the last change of a home."""
    return _rows(home, "SELECT v FROM meta WHERE k='seq'")[0][0]


# Measuring


async def _in_turns(sizes: Sequence[Size], name: str, turns: int) -> list[list[float]]:
    """Time one kind of read in every store in turns; gives the figure of each engine for each size."""
    found: list[list[list[list[float]]]] = [[[] for _ in size.stores] for size in sizes]
    for size in sizes:
        await agree(size, size.reads[name])
    for _ in range(turns):
        for size, of_engines in zip(sizes, found, strict=True):
            for store, spent in zip(size.stores, of_engines, strict=True):
                spent.append(await _turn(store, size.reads[name]))
    return [
        [size.reads[name].figure_of(spent) for spent in of_engines]
        for size, of_engines in zip(sizes, found, strict=True)
    ]


async def agree(size: Size, read: Read) -> None:
    """Ask both once for each answer: they are warm then, and none is quick because its answer is empty or wrong."""
    for number in range(read.rounds):
        first, second = [await read.ask(store, number) for store in size.stores]
        assert first, "an empty answer"
        assert first == second, f"the engines differ: {first!r:.300} {second!r:.300}"


async def _turn(store: Store, read: Read) -> list[float]:
    spent: list[float] = []
    for number in range(read.rounds):
        start = time.perf_counter()
        await read.ask(store, number)
        spent.append((time.perf_counter() - start) * 1e3)
    return spent


# What is asked


async def _reads(home: Home, store: Store) -> Mapping[str, Read]:
    people = sorted(await store.connections(), key=lambda one: int(one.display_name.removeprefix("Person ")))
    ids = tuple(one.id for one in people)
    streams = (await store.declarations())[HOME].streams

    def reach(stream: StreamName, count: int) -> Reach:
        return Reach(stream, ids[:count], tuple(streams[stream].fields))

    one, every = reach(MESSAGES, 1), reach(MESSAGES, len(ids))
    return {
        "single record": Read(_record(one, _keys(home, ids[0])), _KEYS, 0.2, is_level=True),
        "page of 25": Read(_page(one), 100, 0.4, is_level=True),
        "page of 25, merged over 20": Read(_page(every), 100, 1.0, is_level=True),
        "window of 4 096 in 5 MB": Read(_window(reach(StreamName("files"), 1)), 200, 0.3, is_level=True),
        "count": Read(_aggregate(AggregatePlan(every, Metric.COUNT)), 100, 0.5, is_beyond_sqlite=True),
        "search, 200 words, p95": Read(
            _search([reach(StreamName(name), len(ids)) for name in SEARCHED]),
            _WORDS,
            10.0,
            figure_of=p95_of_best,
        ),
    }


def _keys(home: Home, connection_id: str) -> list[str]:
    """Choose records of one connection in no order."""
    rows = _rows(
        home,
        "SELECT record_id FROM record JOIN shelf USING(sid) JOIN stream USING(stid)"
        " WHERE deleted=0 AND stream.name='messages' AND connection_id=? ORDER BY record_id",
        (connection_id,),
    )
    return random.Random(1).choices([key for (key,) in rows], k=_KEYS)


def _record(reach: Reach, keys: Sequence[str]) -> Ask:
    plans = [RecordPlan(reach, RecordId(key)) for key in keys]
    return lambda store, number: store.record(plans[number])


def _page(reach: Reach) -> Ask:
    plan = PagePlan(reach, 25)
    return lambda store, _: store.page(plan)


def _aggregate(plan: AggregatePlan) -> Ask:
    return lambda store, _: store.aggregate(plan)


def _window(reach: Reach) -> Ask:
    dice = random.Random(1)
    plans = [
        WindowPlan(
            reach,
            RecordId(f"big_{dice.randrange(BIG):04}"),
            FieldName("content"),
            OffsetWindow(dice.randrange(4_990_000), _WINDOW),
        )
        for _ in range(200)
    ]
    return lambda store, number: store.window(plans[number])


def _search(reaches: Sequence[Reach]) -> Ask:
    """Search everything for words of all frequencies; each of a hundred times as many words is as likely."""
    words, dice = Household().words, random.Random(1)
    searched = tuple(
        SearchReach(
            replace(reach, fields=(FieldName("id"), FieldName(SEARCHED[reach.stream][0]))),
            tuple(map(FieldName, SEARCHED[reach.stream])),
        )
        for reach in reaches
    )
    chosen = [words[int(60_000 ** dice.random()) - 1] for _ in range(_WORDS)]
    plans = [SearchPlan(searched, parse_terms(word), 25, preview_chars=200) for word in chosen]
    return lambda store, number: store.search(plans[number])


# Ingest


async def _ingest(server: Server, turns: int, records: int) -> str:
    """Store records in one stream of batches, in both engines in turns, each in a home that is new."""
    directory = CACHE / "ingest"
    shutil.rmtree(directory, ignore_errors=True)
    home = open_home(directory)
    there = home_in(home, fresh_database(server, "bench_ingest"), "main")
    rates: list[list[float]] = [[], []]
    async with AsyncExitStack() as stack:
        stores = [await stack.enter_async_context(opened_store(one)) for one in (home, there)]
        for store in stores:
            await store.declare(HOME, declaration())
        for number in range(turns):
            for store, found in zip(stores, rates, strict=True):
                found.append(await _ingest_rate(store, number, records))
    shutil.rmtree(directory)
    sqlite, postgres = map(max, rates)
    verdict = "ok" if postgres >= LEAST_INGESTED else "MISS"
    return f"{'ingest in one stream, records a second':40}{sqlite:>10.0f}{postgres:>10.0f}{LEAST_INGESTED:>10}  {verdict}"


async def _ingest_rate(store: Store, number: int, records: int) -> float:
    connection = await store.create_connection(HOME, f"Person {number}")
    lines = list(itertools.islice(_messages(number, 10 * records), records))
    started = time.perf_counter()
    for start in range(0, len(lines), _AT_ONCE):
        report = await store.ingest(Batch(connection.id, MESSAGES, lines[start : start + _AT_ONCE], NOW))
        assert not report.errors
    return len(lines) / (time.perf_counter() - started)


def _messages(seed: int, made_of: int) -> Iterator[bytes]:
    made = Household(connections=1, seed=seed).make(made_of)
    return (one.line for one in made if one.stream == MESSAGES)


# Showing


def lines_of(sizes: Sequence[Size], figures: Mapping[str, list[list[float]]], at: int) -> list[Line]:
    """Put the figures of one size beside their limits, and beside those of the fewest records."""
    found: list[Line] = []
    for name, of_sizes in figures.items():
        read, (sqlite, postgres) = sizes[at].reads[name], of_sizes[at]
        limit = sqlite + read.most if read.is_beyond_sqlite else read.most
        growth = None if at == 0 else postgres / of_sizes[0][1]
        found.append(Line(name, sqlite, postgres, limit, growth, MOST_GROWTH if read.is_level else None))
    return found


def shown(lines: Sequence[Line]) -> str:
    """Write the lines of a table."""
    head = f"{'':40}{'sqlite':>10}{'postgres':>10}{'at most':>10}{'growth':>10}"
    return "\n".join([head, *map(_shown, lines)])


def _shown(line: Line) -> str:
    growth = "" if line.growth is None else f"{line.growth:.2f}x"
    verdict = "ok" if line.is_good else "MISS"
    figures = f"{line.sqlite:>10.3f}{line.postgres:>10.3f}{line.limit:>10.2f}{growth:>10}"
    return f"{line.name:40}{figures}  {verdict}"
