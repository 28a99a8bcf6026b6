from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import CursorExpired
from headgate.home import Home
from headgate.model.ids import ConnectionId
from headgate.model.plan import AggregatePlan, ChangesPlan, Reach
from headgate.model.query import Metric
from headgate.model.record import Tombstone
from headgate.model.rows import Changes
from headgate.store.changes.retention import KEEP_DAYS, ChangeRetention
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import reading_store, writing_store
from tests.hostile.store.scene import (
    FIELDS,
    MESSAGES,
    NOW,
    batch,
    connect,
    damages,
    deletion,
    line,
    new_home,
    read,
)

DAY = 24 * 3600 * 1_000_000


class Scene:
    """A home that is opened for a moment on some days, and not in between."""

    def __init__(self, place: Path) -> None:
        self.home: Home = new_home(place)
        self.mine: ConnectionId = self.on(0, connect)

    def on(self, day: int, work: Callable[[SqliteStore], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            store = SqliteStore(self.home, lambda: NOW + day * DAY)
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(run())

    def take(self, day: int, *lines: bytes) -> int:
        """Store lines; returns the bookmark that a client has after them."""

        async def work(store: SqliteStore) -> int:
            await store.ingest(batch(self.mine, lines))
            return (await store.changes(self.plan(0))).horizon

        return self.on(day, work)

    def plan(self, since: int) -> ChangesPlan:
        return ChangesPlan(Reach(MESSAGES, (self.mine,), FIELDS), 100, since)

    def changes(self, day: int, since: int) -> Changes:
        return self.on(day, lambda store: store.changes(self.plan(since)))

    def rows(self, sql: str) -> Any:
        with reading_store(self.home) as database:
            return database.value(sql)

    def mentions(self, text: str) -> bool:
        return any(text.encode() in path.read_bytes() for path in self.home.path.rglob("*") if path.is_file())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_old_changes_are_removed_and_their_bookmarks_have_expired(scene: Scene):
    old = scene.take(0, line("secretkey"), line("stays"), line("changes"))
    deleted = scene.take(1, deletion("secretkey"), line("changes", sent_at="2026-05-05T00:00:00Z"))
    # A note is made on the first day after it.
    newer = scene.take(2, line("newer"))
    at_edge = scene.changes(2 + KEEP_DAYS, old)
    assert [type(entry) for entry in at_edge.entries].count(Tombstone) == 1
    scene.take(3 + KEEP_DAYS, line("newest"))
    for since in (old, deleted - 1):
        with pytest.raises(CursorExpired):
            scene.changes(3 + KEEP_DAYS, since)
    assert [entry.id for entry in scene.changes(3 + KEEP_DAYS, newer).entries] == ["newest"]
    assert scene.rows("SELECT count(*) FROM record WHERE deleted") == 0
    assert scene.rows("SELECT count(*) FROM life") == 0
    assert not scene.mentions("secretkey")
    assert {entry.id for entry in scene.changes(3 + KEEP_DAYS, 0).entries} == {
        "stays",
        "changes",
        "newer",
        "newest",
    }
    assert damages(scene.home) == []


def test_a_bookmark_of_a_store_at_rest_does_not_expire_by_itself(scene: Scene):
    mark = scene.take(0, line("one"))
    scene.on(1, lambda store: store.connections())
    assert scene.changes(10 * KEEP_DAYS, mark).entries == ()


def test_a_record_may_come_back_after_its_tombstone_is_removed(scene: Scene):
    scene.take(0, line("phoenix", size=1))
    scene.take(1, deletion("phoenix"))
    scene.take(2, line("other"))
    mark = scene.take(5 + KEEP_DAYS, line("another"))
    assert scene.rows("SELECT count(*) FROM record WHERE deleted") == 0
    scene.take(6 + KEEP_DAYS, line("phoenix", size=2))
    assert [entry.id for entry in scene.changes(6 + KEEP_DAYS, mark).entries] == ["phoenix"]
    (found,) = scene.on(7 + KEEP_DAYS, lambda store: read(store, scene.mine, "phoenix"))
    assert b'"size":2' in found.body.replace(b" ", b"")
    assert damages(scene.home) == []


def test_numbers_are_right_after_tombstones_are_removed(scene: Scene):
    count = AggregatePlan(Reach(MESSAGES, (scene.mine,), FIELDS), Metric.SUM, field=FIELDS[4])

    def prune(day: int) -> None:
        with writing_store(scene.home) as database:
            retention = ChangeRetention(lambda: NOW + day * DAY)
            while retention.plan(database):
                retention.step(database)

    async def work(store: SqliteStore) -> list[Any]:
        await store.ingest(batch(scene.mine, [line(f"k{n}", size=1) for n in range(20)]))
        seen = [(await store.aggregate(count)).value]
        # Another process deletes and removes tombstones; this one reads nothing meanwhile.
        other = SqliteStore(scene.home, lambda: NOW + DAY)
        await other.ingest(batch(scene.mine, [deletion(f"k{n}") for n in range(5)]))
        await other.close()
        await asyncio.to_thread(prune, 2)
        await asyncio.to_thread(prune, 3 + KEEP_DAYS)
        assert await asyncio.to_thread(scene.rows, "SELECT count(*) FROM record WHERE deleted") == 0
        return [*seen, (await store.aggregate(count)).value]

    assert scene.on(0, work) == [20, 15]
    assert damages(scene.home) == []
    # And a process that starts now agrees.
    assert scene.on(4 + KEEP_DAYS, lambda store: store.aggregate(count)).value == 15


def test_removal_takes_small_steps_and_goes_on_where_it_was_stopped(
    scene: Scene, record_property: Callable[[str, object], None]
):
    scene.take(0, *(line(f"k{n}") for n in range(3000)))
    scene.take(1, *(deletion(f"k{n}") for n in range(2600)))
    scene.take(2, line("note"))
    longest, steps = 0.0, 0
    for _ in range(20):
        with writing_store(scene.home) as database:
            retention = ChangeRetention(lambda: NOW + (3 + KEEP_DAYS) * DAY)
            # Only two steps, then stopped: the next process begins anew.
            for _ in range(2):
                if retention.plan(database):
                    started = time.process_time()
                    retention.step(database)
                    longest, steps = max(longest, time.process_time() - started), steps + 1
    record_property("longest_step_ms", longest * 1000)
    print(f"retention: {steps} steps, the longest took {longest * 1000:.1f} ms of the processor")  # noqa: T201
    assert scene.rows("SELECT count(*) FROM record WHERE deleted") == 0
    assert scene.rows(f"SELECT count(*) FROM change_day WHERE day < {NOW // DAY + 3}") == 0
    assert steps > 5
    assert damages(scene.home) == []


def test_a_clock_that_jumps_back_removes_nothing(scene: Scene):
    mark = scene.take(0, line("one"))
    scene.take(1, deletion("one"))
    scene.take(-3650, line("two"))
    kinds = {type(entry).__name__ for entry in scene.changes(-3650, mark).entries}
    assert kinds == {"Tombstone", "Record"}
