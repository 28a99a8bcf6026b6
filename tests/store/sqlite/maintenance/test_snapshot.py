from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from headgate.model.ids import ConnectionId, FieldName
from headgate.model.plan import AggregatePlan, Reach
from headgate.model.query import Metric
from headgate.store.relational import writer
from headgate.store.relational.catalog import Catalog, current
from headgate.store.relational.columns.aggregates import aggregate
from headgate.store.relational.columns.cache import ColumnCache
from headgate.store.relational.maintenance.snapshot import ENOUGH_CHANGES, Snapshot
from headgate.store.sqlite.database import SqliteDatabase, open_writer
from headgate.store.sqlite.engine import SqliteStore
from headgate.store.sqlite.maintenance.opening import reading_store
from tests.hostile.store.scene import (
    MESSAGES,
    batch,
    damages,
    deletion,
    filled,
    lay_out,
    line,
    page,
    take,
    with_store,
)


def answers(database: SqliteDatabase, connection_id: ConnectionId) -> list[Any]:
    """Ask for a sum, a count of groups and a number of distinct values with a cache that knows nothing."""
    reach = Reach(MESSAGES, (connection_id,), ())
    plans = [
        AggregatePlan(reach, Metric.SUM, FieldName("size")),
        AggregatePlan(reach, Metric.COUNT, group_by=FieldName("sender"), limit=100),
        AggregatePlan(reach, Metric.MIN, FieldName("weight")),
        AggregatePlan(reach, Metric.MAX, FieldName("sent_at")),
    ]
    with database.reading():
        catalog = current(database, Catalog())
        return [aggregate(database, catalog, ColumnCache(), plan) for plan in plans]


def without_blocks(database: SqliteDatabase, connection_id: ConnectionId) -> list[Any]:
    with database.writing():
        database.run("DELETE FROM column_block")
        database.run("UPDATE shelf SET col_seq=0")
    return answers(database, connection_id)


keys = st.integers(0, 30).map(lambda number: f"k{number}")
changes = st.lists(
    st.one_of(
        st.builds(
            line,
            keys,
            sender=st.sampled_from(["ann", "bob", "", "ß"]),
            size=st.integers(-5, 5) | st.none(),
            weight=st.floats(-1, 1) | st.none(),
        ),
        keys.map(deletion),
    ),
    max_size=20,
)


@settings(max_examples=20, deadline=None)
@given(batches=st.lists(st.tuples(changes, st.integers(0, 6)), min_size=1, max_size=5))
def test_answers_are_the_same_with_blocks_and_without_wherever_the_steps_stop(
    tmp_path_factory: Any, batches: list[tuple[list[bytes], int]]
):
    database = open_writer(tmp_path_factory.mktemp("blocks") / "records.db")
    connection_id = lay_out(database)
    snapshot = Snapshot()
    for lines, steps in batches:
        take(database, connection_id, lines)
        for _ in range(steps):
            snapshot.plan(database, enough=1)
            snapshot.step(database)
    with_blocks = answers(database, connection_id)
    assert with_blocks == without_blocks(database, connection_id)
    database.db.close()


def test_blocks_dropped_between_two_steps_are_not_noted_as_written(tmp_path: Path):
    database = open_writer(tmp_path / "records.db")
    connection_id = lay_out(database)
    take(database, connection_id, [line(f"k{n}", size=n) for n in range(50)])
    snapshot = Snapshot()
    assert snapshot.plan(database, enough=1)
    snapshot.step(database)
    with database.writing():
        database.run("DELETE FROM column_block")
        database.run("UPDATE meta SET v = v + 1 WHERE k='catalog'")
    while snapshot.step(database):
        pass
    assert database.value("SELECT col_seq FROM shelf") == 0
    assert answers(database, connection_id)[0].value == sum(range(50))
    database.db.close()


def test_a_store_that_is_closed_leaves_blocks_behind_and_they_are_true(tmp_path: Path):
    lines = [line(f"k{n}", size=n, sender=f"s{n % 7}") for n in range(ENOUGH_CHANGES + 1)]
    home, _ = filled(tmp_path, lines)
    with reading_store(home) as database:
        assert database.value("SELECT count(*) FROM column_block") > 3
        assert database.value("SELECT count(*) FROM shelf WHERE seq > col_seq") == 0
    assert damages(home) == []


def test_an_idle_writer_writes_blocks_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer, "IDLE_SECONDS", 0.0)
    home, connection_id = filled(tmp_path, [line("one")])
    written = threading.Event()
    steps = Snapshot.step

    def step(self: Snapshot, database: SqliteDatabase) -> bool:
        has_more = steps(self, database)
        if not has_more:
            written.set()
        return has_more

    monkeypatch.setattr(Snapshot, "step", step)

    async def work(store: SqliteStore) -> None:
        await store.ingest(batch(connection_id, [line(f"k{n}") for n in range(ENOUGH_CHANGES)]))
        assert await asyncio.to_thread(written.wait, 20)
        assert len(await page(store, connection_id)) == 25

    with_store(home, work)
    assert damages(home) == []
