from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.msgpack import encode

from headgate.errors import IntegrityBroken, QueryTimeout
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.plan import AggregatePlan, Reach, TimeGroups
from headgate.model.query import Granularity, Metric
from headgate.model.rows import Aggregate
from headgate.store.relational.catalog import Catalog, current
from headgate.store.relational.columns import cache
from headgate.store.relational.columns.aggregates import aggregate
from headgate.store.relational.columns.cache import ColumnCache
from headgate.store.relational.maintenance.snapshot import Snapshot
from headgate.store.sqlite.database import SqliteDatabase, open_writer
from tests.hostile.store.scene import MESSAGES, deletion, lay_out, line, take
from tests.store.engines import Driven
from tests.store.ledger import Ledger


class Scene:
    """A store without threads, and one cache that answers every question."""

    def __init__(self, path: Path) -> None:
        self.database: SqliteDatabase = open_writer(path)
        self.connection_id: ConnectionId = lay_out(self.database)
        self.cache = ColumnCache()

    def take(self, *lines: bytes) -> None:
        take(self.database, self.connection_id, lines)

    def write_blocks(self) -> None:
        Snapshot().run(self.database, enough=1)

    def sum(self, name: str) -> Any:
        return self.ask(Metric.SUM, FieldName(name)).value

    def months(self) -> dict[Any, int]:
        groups = TimeGroups(FieldName("sent_at"), Granularity.MONTH, "UTC")
        found = self.ask(Metric.COUNT, group_by=groups).groups
        return {group.key: group.count for group in found or ()}

    def ask(self, metric: Metric, field: FieldName | None = None, **more: Any) -> Aggregate:
        plan = AggregatePlan(Reach(MESSAGES, (self.connection_id,), ()), metric, field, **more)
        with self.database.reading():
            return aggregate(self.database, current(self.database, Catalog()), self.cache, plan)


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path / "records.db")
    yield made
    made.database.db.close()


def test_a_cache_reads_only_the_records_that_changed_since(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.take(*(line(f"k{n}", size=1) for n in range(20)))
    assert scene.sum("size") == 20
    scene.take(line("k3", size=5), deletion("k4"))
    read = count_rows(monkeypatch)
    assert scene.sum("size") == 23
    assert read == [2]
    assert scene.sum("size") == 23
    assert read == [2]


def count_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Note how many records each catching-up reads."""
    read: list[int] = []
    run = SqliteDatabase.all

    def counted(self: SqliteDatabase, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        rows = run(self, sql, values)
        if "json_each" in sql:
            read.append(len(rows))
        return rows

    monkeypatch.setattr(SqliteDatabase, "all", counted)
    return read


def test_a_column_that_is_needed_later_starts_from_the_blocks(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    scene.take(*(line(f"k{n}", size=1, weight=0.5) for n in range(20)))
    assert scene.sum("size") == 20
    scene.write_blocks()
    scene.take(line("k3", size=1, weight=2.5))
    read = count_rows(monkeypatch)
    assert scene.sum("weight") == 12
    assert read == [1]


def test_times_moved_before_the_blocks_were_written_are_grouped_where_they_are_now(scene: Scene):
    scene.take(*(line(f"k{n}", sent_at="2026-01-05T00:00:00Z", size=1) for n in range(5)))
    # This loads the times, but not the quarter hours that are derived from them.
    assert scene.sum("size") == 5
    scene.take(*(line(f"k{n}", sent_at="2026-05-05T00:00:00Z", size=1) for n in range(3)))
    scene.write_blocks()
    assert scene.months() == {"2026-01-01": 2, "2026-05-01": 3}


def test_a_read_that_was_stopped_half_way_leaves_no_old_values_behind(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
):
    scene.take(*(line(f"k{n}", size=1, weight=1.0) for n in range(5)))
    scene.write_blocks()
    scene.take(*(line(f"k{n}", size=1, weight=2.0) for n in range(5)))
    assert scene.sum("size") == 5
    run = SqliteDatabase.all

    def stopped(self: SqliteDatabase, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        if "json_each" in sql:
            raise QueryTimeout
        return run(self, sql, values)

    with monkeypatch.context() as patch:
        patch.setattr(SqliteDatabase, "all", stopped)
        with pytest.raises(QueryTimeout):
            scene.sum("weight")
    assert scene.sum("weight") == 10


@pytest.mark.parametrize(
    "block",
    [
        b"\0",
        encode(("no type", None, b"")),
        encode(("int64", None, b"not a multiple of eight")),
        encode(("uint32", ["a text"], (5).to_bytes(4, "little"))),
        encode(("bool", None, bytes(100_000))),
    ],
    ids=["no block", "no type", "half a value", "a text it does not hold", "too many rows"],
)
def test_a_damaged_block_is_reported_as_damage(scene: Scene, block: bytes):
    scene.take(line("one", size=1))
    scene.write_blocks()
    with scene.database.writing():
        scene.database.run("UPDATE column_block SET data=? WHERE fid=0", (block,))
    with pytest.raises(IntegrityBroken):
        scene.sum("size")


def test_columns_of_shelves_that_were_not_used_lately_leave_when_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store = Driven("sqlite", tmp_path / "home")
    ledger = Ledger(store, connections=3)
    for number in range(3):
        ledger.put({"id": "a", "title": f"t{number}", "size": 10 + number}, connection=number)

    def total(number: int) -> Any:
        reach = ledger.reach(connections=[number])
        return store.aggregate(AggregatePlan(reach, Metric.SUM, FieldName("size"))).value

    loaded = store.bare._readers._columns._reader.columns._shelves
    assert ([total(number) for number in range(3)], len(loaded)) == ([10, 11, 12], 3)
    monkeypatch.setattr(cache, "LIMIT_BYTES", 0)
    assert ([total(number) for number in (1, 0, 2, 1)], len(loaded)) == ([11, 10, 12, 11], 1)
    store.close()
