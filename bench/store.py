"""The store at 100 000 and 1 000 000 records over 20 connections: figure, floor and ratio for every kind of read.

Floors are measured in the same run: the same statement run bare in the driver, a scan of a covering index, a
bare read of the file. `python -m bench store --records 1000000`; a home is made once and kept in .cache/bench. With
`--engine postgres` both engines are compared instead, see `bench.engines`.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import os
import random
import time
import tracemalloc
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import apsw
from msgspec.structs import replace

from bench import engines
from bench.homes import (
    BIG,
    CACHE,
    CONNECTIONS,
    NOW,
    SEARCHED,
    Built,
    build_home,
    read_built,
    settled,
    write_built,
)
from bench.records import FARAWAY, HOME, Household
from headgate.home import open_home
from headgate.model.ids import ConnectionId, FieldName, RecordId, StreamName
from headgate.model.plan import (
    AggregatePlan,
    OffsetWindow,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    TimeGroups,
    WindowPlan,
    parse_terms,
)
from headgate.model.query import Granularity, Metric
from headgate.model.rows import Aggregate, Page, SearchPage
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.sqlite import FILE

MESSAGES = StreamName("messages")
_WINDOW = 4096
_TURNS = 5
_AGGREGATE_MOST_US = 0.4


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table, in milliseconds unless it says otherwise."""

    name: str
    figure: float
    floor_name: str
    floor: float
    #: The most (or, for a rate, the least) it may be; None where only the ratio counts.
    limit: float | None
    most_ratio: float | None = None
    unit: str = "ms"
    is_rate: bool = False

    @property
    def ratio(self) -> float:
        """How many times the floor it is."""
        return self.floor / self.figure if self.is_rate else self.figure / self.floor

    @property
    def is_good(self) -> bool:
        """Whether it keeps its limits."""
        if self.limit is not None and (
            self.figure < self.limit if self.is_rate else self.figure > self.limit
        ):
            return False
        return self.most_ratio is None or self.ratio <= self.most_ratio


def main(arguments: Sequence[str] = ()) -> None:
    """Make the homes that are missing and print their tables."""
    parser = argparse.ArgumentParser(prog="bench store")
    parser.add_argument("--records", type=int, action="append")
    parser.add_argument("--engine", choices=("sqlite", "postgres"), default="sqlite")
    engines.add_options(parser)
    asked = parser.parse_args(arguments)
    if asked.engine == "postgres":
        engines.compare(asked)
        return
    for records in asked.records or [100_000]:
        asyncio.run(_bench(records))


async def _bench(records: int) -> None:
    directory = CACHE / f"store-{records}"
    built = read_built(directory) or await build_home(directory, records)
    store = SqliteStore(open_home(directory / "home"), lambda: NOW)
    await settled(store)
    try:
        lines = await _measure(store, directory, built)
    finally:
        await store.close()
    built.figures = {line.name: line.figure for line in lines}
    write_built(directory, built)
    _print(records, lines, read_built(CACHE / "store-100000"))


# Measuring


async def _measure(store: SqliteStore, directory: Path, built: Built) -> list[Line]:
    people = sorted(await store.connections(), key=lambda one: int(one.display_name.removeprefix("Person ")))
    ids = [connection.id for connection in people]
    bare = apsw.Connection(str(directory / "home" / FILE), flags=apsw.SQLITE_OPEN_READONLY)
    bare.execute("PRAGMA cache_size=-65536").fetchall()
    fields = {
        name: tuple(stream.fields) for name, stream in (await store.declarations())[HOME].streams.items()
    }
    scene = _Scene(store, bare, ids, fields, random.Random(1))
    try:
        lines = [
            *await _pages(scene),
            *await _aggregates(scene),
            *await _searches(scene),
            *await _windows(scene, directory),
        ]
    finally:
        bare.close()
    return [
        *lines,
        Line(
            "ingest, first 100 000", built.first_rate, "bare insert", built.bare_rate, 8000, None, "1/s", True
        ),
        Line("ingest, last 100 000", built.last_rate, "first", built.first_rate, None, 1 / 0.6, "1/s", True),
        Line("disk", built.file_bytes / 1e6, "JSON", built.json_bytes / 1e6, None, 2.6, "MB"),
    ]


@dataclass(frozen=True, slots=True)
class _Scene:
    store: SqliteStore
    bare: Any
    ids: Sequence[ConnectionId]
    fields: dict[StreamName, tuple[FieldName, ...]]
    random: random.Random

    def reach(self, stream: str, ids: Sequence[ConnectionId] | None = None) -> Reach:
        name = StreamName(stream)
        return Reach(name, tuple(ids or self.ids), self.fields[name])

    def sids(self, ids: Sequence[ConnectionId]) -> list[int]:
        rows = self.bare.execute(
            "SELECT sid, connection_id FROM shelf JOIN stream USING(stid) WHERE stream.name='messages'"
        )
        return [sid for sid, connection_id in rows if connection_id in ids]


async def _timed(call: Callable[[], Awaitable[Any]], rounds: int = 25) -> float:
    """Give the median time of one call in milliseconds, warm."""
    spent: list[float] = []
    # An answer that is empty would be quick for the wrong reason.
    assert _holds_something(await call())
    for _ in range(rounds * _TURNS):
        start = time.perf_counter()
        await call()
        spent.append((time.perf_counter() - start) * 1e3)
    return _best_median(spent, rounds)


def _best_median(spent: Sequence[float], rounds: int) -> float:
    """Give the lowest of the medians of several turns: what a shared host takes away is not ours to count."""
    return min(median(spent[at : at + rounds]) for at in range(0, len(spent), rounds))


def _holds_something(answer: Any) -> bool:
    if isinstance(answer, SearchPage):
        return bool(answer.hits)
    if isinstance(answer, Page):
        return bool(answer.records)
    return bool(answer.filtered_record_count if isinstance(answer, Aggregate) else answer)


def _timed_bare(call: Callable[[], object], rounds: int = 25) -> float:
    spent: list[float] = []
    call()
    for _ in range(rounds * _TURNS):
        start = time.perf_counter()
        call()
        spent.append((time.perf_counter() - start) * 1e3)
    return _best_median(spent, rounds)


async def _pages(scene: _Scene) -> list[Line]:
    one, (sid, *_) = scene.ids[:1], scene.sids(scene.ids[:1])
    keys = [
        key
        for (key,) in scene.bare.execute(
            "SELECT record_id FROM record WHERE sid=? AND deleted=0 ORDER BY random() LIMIT 500", (sid,)
        )
    ]
    wanted = itertools.cycle(keys)
    reach = scene.reach("messages", one)
    point = "SELECT body FROM record WHERE sid=? AND record_id=?"
    bare_point = _timed_bare(lambda: scene.bare.execute(point, (sid, next(wanted))).fetchall(), 500)
    single = await _timed(lambda: scene.store.record(RecordPlan(reach, RecordId(next(wanted)))), 500)
    return [
        Line("single record", single, "bare point read", bare_point, None, 3),
        await _page(scene, "page of 25, one connection", one, 0.3),
        await _page(scene, "page of 25, merged over 20", scene.ids, 1.5),
    ]


async def _page(scene: _Scene, name: str, ids: Sequence[ConnectionId], limit: float) -> Line:
    sids = scene.sids(ids)
    sql = "SELECT rid, body FROM record WHERE sid=? AND deleted=0 ORDER BY sort DESC, record_id DESC LIMIT 26"
    floor = _timed_bare(lambda: [scene.bare.execute(sql, (sid,)).fetchall() for sid in sids], 100)
    plan = PagePlan(scene.reach("messages", ids), 25)
    figure = await _timed(lambda: scene.store.page(plan), 100)
    return Line(name, figure, "same statement, bare, for each connection", floor, limit)


def _aggregate_plans(scene: _Scene) -> dict[str, tuple[AggregatePlan, float]]:
    reach = scene.reach("messages")
    # As much for each record as `bench aggregates` allows.
    most = _AGGREGATE_MOST_US * scene.bare.execute("SELECT sum(live) FROM shelf").fetchall()[0][0] / 1000
    day = TimeGroups(FieldName("sent_at"), Granularity.DAY, "Europe/Berlin")
    return {
        "count": (AggregatePlan(reach, Metric.COUNT), 2),
        "sum": (AggregatePlan(reach, Metric.SUM, FieldName("size")), most),
        "group_by with top 10": (AggregatePlan(reach, Metric.COUNT, group_by=FieldName("sender")), most),
        "group_by_time": (AggregatePlan(reach, Metric.COUNT, group_by=day, limit=100), most),
    }


async def _aggregates(scene: _Scene) -> list[Line]:
    floor = _scan(scene)
    return [
        Line(
            name,
            await _timed(lambda plan=plan: scene.store.aggregate(plan), 15),
            "covering-index scan",
            floor,
            most,
        )
        for name, (plan, most) in _aggregate_plans(scene).items()
    ]


def _scan(scene: _Scene) -> float:
    scan = "SELECT count(sort) FROM record INDEXED BY record_sort WHERE sid=? AND deleted=0"
    sids = scene.sids(scene.ids)
    return _timed_bare(lambda: [scene.bare.execute(scan, (sid,)).fetchall() for sid in sids], 5)


async def _searches(scene: _Scene) -> list[Line]:
    words = Household().words
    reaches = tuple(
        SearchReach(
            replace(scene.reach(stream), fields=(FieldName("id"), FieldName(fields[0]))),
            tuple(map(FieldName, fields)),
        )
        for stream, fields in SEARCHED.items()
    )

    def ask(word: str) -> Callable[[], Awaitable[Any]]:
        plan = SearchPlan(reaches, parse_terms(word), 25, preview_chars=200)
        return lambda: scene.store.search(plan)

    tenth = await _in_every_tenth(scene, words, ask)
    floor = _bare_rows(scene)
    lines = [
        Line(f"search, {name}", await _timed(ask(word), 15), "25 rows, bare", floor, most)
        for name, word, most in (
            ("a rare word", words[30_000], 2),
            (f"in every tenth record ({tenth})", tenth, 15),
            ("a word at the end of 4 x 5 MB", FARAWAY, 50),
        )
    ]
    chosen = [words[int(60_000 ** scene.random.random()) - 1] for _ in range(200)]
    spent = [await _timed(ask(word), 1) for word in chosen]
    return [*lines, Line("search, any word, p95", quantiles(spent, n=20)[-1], "25 rows, bare", floor, 50)]


def _bare_rows(scene: _Scene) -> float:
    rids = [
        rid for (rid,) in scene.bare.execute("SELECT rid FROM record ORDER BY random() LIMIT 25").fetchall()
    ]
    return _timed_bare(
        lambda: [
            scene.bare.execute("SELECT body FROM record WHERE rid=?", (rid,)).fetchall() for rid in rids
        ],
        50,
    )


async def _in_every_tenth(
    scene: _Scene, words: Sequence[str], ask: Callable[[str], Callable[[], Awaitable[SearchPage]]]
) -> str:
    """Find the word that stands in about a tenth of all records."""
    total = scene.bare.execute("SELECT sum(live) FROM shelf").fetchall()[0][0]
    counts = {word: (await ask(word)()).count or 0 for word in words[20:110:3]}
    return min(counts, key=lambda word: abs(counts[word] / total - 0.1))


async def _windows(scene: _Scene, directory: Path) -> list[Line]:
    plans = [
        WindowPlan(
            scene.reach("files", scene.ids[:1]),
            RecordId(f"big_{scene.random.randrange(BIG):04}"),
            FieldName("content"),
            OffsetWindow(scene.random.randrange(4_990_000), _WINDOW),
        )
        for _ in range(200)
    ]
    wanted = itertools.cycle(plans)
    figure = await _timed(lambda: scene.store.window(next(wanted)), 200)
    handle = os.open(directory / "home" / FILE, os.O_RDONLY)
    size = os.fstat(handle).st_size
    floor = _timed_bare(lambda: os.pread(handle, 2 * _WINDOW, scene.random.randrange(size - 9000)), 200)
    os.close(handle)
    tracemalloc.start()
    await scene.store.window(next(wanted))
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return [
        Line("window of 4 096 in 5 MB", figure, "pread", floor, 0.15),
        Line("window, peak memory", peak, "its text", _WINDOW / 1e6, 1, None, "MB"),
    ]


# Showing


def _print(records: int, lines: Sequence[Line], small: Built | None) -> None:
    print(f"\nStore, {records} records over {CONNECTIONS} connections")
    print(f"{'':44} {'figure':>10} {'unit':4} {'floor':>10} {'ratio':>7}  {'limit':>12}")
    for line in lines:
        limit = f"{line.limit:g} {line.unit}" if line.limit is not None else f"{line.most_ratio:.2g} x"
        verdict = "PASS" if line.is_good and not _has_grown(line, small) else "MISS"
        print(
            f"{line.name:44} {line.figure:10.3f} {line.unit:4} {line.floor:10.3f} {line.ratio:7.2f}  {limit:>12}  "
            f"{verdict}  ({line.floor_name})"
        )


def _has_grown(line: Line, small: Built | None) -> bool:
    """Say whether a page takes longer than 1.3 times what it took among 100 000 records."""
    before = small.figures.get(line.name) if small is not None and line.name.startswith("page") else None
    return before is not None and line.figure > 1.3 * before
