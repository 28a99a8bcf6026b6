"""Both engines beside each other: the same home, the same reads, in turns, on a database server on this machine.

`python -m bench engines --records 100000` copies the home of `bench store` into PostgreSQL, which also compares every
row, then asks both stores in turns. Figures are medians in milliseconds, and records a second for ingest.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from msgspec.structs import replace

from bench.records import HOME, Household
from bench.store import CACHE, build_home, read_built
from headgate.home import Home, open_home
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import (
    AggregatePlan,
    OffsetWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    WindowPlan,
)
from headgate.model.query import Metric
from headgate.model.terms import parse_terms
from headgate.store.engines import open_engine
from headgate.store.maintenance import copy_store, home_in
from headgate.store.protocol import Batch, Store
from tests import postgres

_NOW = 1_790_000_000_000_000
_TURNS = 5
_INGESTED = 10_000
_AT_ONCE = 1000
MESSAGES = StreamName("messages")
Call = Callable[[Store], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Read:
    """A kind of read, how often it is timed in a turn, and the most milliseconds it may take in PostgreSQL."""

    call: Call
    rounds: int
    limit: float


def main(arguments: Sequence[str] = ()) -> None:
    """Copy the home, and print the table."""
    parser = argparse.ArgumentParser(prog="bench engines")
    parser.add_argument("--records", type=int, default=100_000)
    asyncio.run(_bench(parser.parse_args(arguments).records))


async def _bench(records: int) -> None:
    directory = CACHE / f"store-{records}"
    if read_built(directory) is None:
        await build_home(directory, records)
    home = open_home(directory / "home")
    there = home_in(home, postgres.database_url(), f"bench-{records}")
    print(f"copying {records} records into PostgreSQL")
    started = time.perf_counter()
    await asyncio.to_thread(copy_store, home, there, lambda _done, _total: None)
    print(f"  {records / (time.perf_counter() - started):.0f}/s, every row compared")
    await _measure(home, there)


async def _measure(home: Home, there: Home) -> None:
    opened = [open_engine(one, lambda: _NOW) for one in (home, there)]
    stores = [one.store for one in opened]
    print(f"{'':34}{'sqlite':>10}{'postgres':>10}{'at most':>10}")
    for name, read in (await _reads(stores[0])).items():
        figures = await _in_turns(stores, read)
        miss = "" if figures[1] <= read.limit else "  over the limit"
        print(f"{name:34}{figures[0]:>10.3f}{figures[1]:>10.3f}{read.limit:>10.1f}{miss}")
    rates = [await _ingest_rate(store, number) for number, store in enumerate(stores)]
    miss = "" if rates[1] >= 3000 else "  under the least"
    print(f"{'ingest, records a second':34}{rates[0]:>10.0f}{rates[1]:>10.0f}{'3000':>10}{miss}")
    for one in opened:
        await one.ledger.close()
        await one.store.close()


async def _in_turns(stores: Sequence[Store], read: Read) -> list[float]:
    """Give the lowest of the medians of several turns for each store: what a shared host takes away is not counted."""
    found: list[list[float]] = [[] for _ in stores]
    for store in stores:
        await read.call(store)
    for _ in range(_TURNS):
        for at, store in enumerate(stores):
            spent: list[float] = []
            for _ in range(read.rounds):
                start = time.perf_counter()
                await read.call(store)
                spent.append((time.perf_counter() - start) * 1e3)
            found[at].append(median(spent))
    return [min(medians) for medians in found]


async def _reads(store: Store) -> Mapping[str, Read]:
    ids = [one.id for one in await store.connections()]
    fields = tuple((await store.declarations())[HOME].streams[MESSAGES].fields)
    one, every = Reach(MESSAGES, tuple(ids[:1]), fields), Reach(MESSAGES, tuple(ids), fields)
    page = await store.page(PagePlan(one, 100))
    keys = itertools.cycle([record.id for record in page.records])
    words = Household().words
    return {
        "single record": Read(lambda store: store.record(RecordPlan(one, next(keys))), 300, 0.2),
        "page of 25": Read(lambda store: store.page(PagePlan(one, 25)), 100, 0.4),
        "page of 25, merged over 20": Read(lambda store: store.page(PagePlan(every, 25)), 100, 1.0),
        "count": Read(lambda store: store.aggregate(AggregatePlan(every, Metric.COUNT)), 100, 1.0),
        "sum": Read(_sum(every), 50, 3.0),
        "groups": Read(_groups(every), 50, 5.0),
        "search, a rare word": Read(_search(every, words[30_000]), 30, 10.0),
        "search, a common word": Read(_search(every, words[60]), 15, 10.0),
        "window of 4 096 in 5 MB": Read(await _window(store, ids), 100, 0.3),
    }


def _sum(reach: Reach) -> Call:
    return lambda store: store.aggregate(AggregatePlan(reach, Metric.SUM, FieldName("size")))


def _groups(reach: Reach) -> Call:
    return lambda store: store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=FieldName("sender")))


def _search(reach: Reach, word: str) -> Call:
    searched = tuple(map(FieldName, ("subject", "text")))
    shown = replace(reach, fields=(FieldName("id"), FieldName("subject")))
    plan = SearchPlan((SearchReach(shown, searched),), parse_terms(word), 25, preview_chars=200)
    return lambda store: store.search(plan)


async def _window(store: Store, ids: Sequence[ConnectionId]) -> Call:
    files = StreamName("files")
    fields = tuple((await store.declarations())[HOME].streams[files].fields)
    reach = Reach(files, tuple(ids), fields)
    places = itertools.cycle(range(0, 4_900_000, 97_003))
    return lambda store: store.window(
        WindowPlan(reach, RecordId("big_0000"), FieldName("content"), OffsetWindow(next(places), 4096))
    )


async def _ingest_rate(store: Store, number: int) -> float:
    """Store new records in one stream of batches, into a connection for them alone."""
    connection = await store.create_connection(HOME, f"Ingested {number} {time.time_ns()}")
    made = (
        one.line for one in Household(connections=1, seed=7).make(10 * _INGESTED) if one.stream == MESSAGES
    )
    lines = list(itertools.islice(made, _INGESTED))
    started = time.perf_counter()
    for start in range(0, len(lines), _AT_ONCE):
        report = await store.ingest(Batch(connection.id, MESSAGES, lines[start : start + _AT_ONCE], _NOW))
        assert not report.errors
    rate = len(lines) / (time.perf_counter() - started)
    await store.delete_connection(connection.id)
    return rate
