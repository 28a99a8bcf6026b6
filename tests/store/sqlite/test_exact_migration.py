"""A store of an older version has no exact values: its sums are right at once, and quick when idle tasks are done."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw

from headgate.home import Home
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, Reach
from headgate.model.query import Metric
from headgate.store.changes.stored_rows import ExactFilling
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.sqlite_home import writing_store
from headgate.store.sqlite import FILE
from tests.hostile.store.scene import FIELDS, MESSAGES, NOW, damages, filled, line

_AMOUNTS = (0.1, 0.2, 12.34, 0.1 + 0.2, 1e300, -1e300, 7.0)
_SUM = 19.94


def _made_older(home: Home) -> None:
    database = apsw.Connection(str(home.path / FILE))
    for stid, number in list(database.execute("SELECT stid, col FROM field WHERE scale IS NOT NULL")):
        database.execute(f"ALTER TABLE t{stid} DROP COLUMN s{number}")
    for sql in (
        "ALTER TABLE field DROP COLUMN scale",
        "ALTER TABLE shelf ADD COLUMN col_seq INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE column_block(sid INTEGER, fid INTEGER, b INTEGER, data BLOB, PRIMARY KEY(sid, fid, b))",
        "DROP TABLE connection_gone",
        "DROP TABLE word_gone",
        "ALTER TABLE vector_shelf DROP COLUMN gaps",
        "PRAGMA user_version=16",
    ):
        database.execute(sql)
    database.close()


def test_a_store_of_an_older_version_gets_exact_values(tmp_path: Path):
    home, connection_id = filled(
        tmp_path, [line(f"k{n}", weight=amount) for n, amount in enumerate(_AMOUNTS)]
    )
    _made_older(home)
    plan = AggregatePlan(Reach(MESSAGES, (connection_id,), FIELDS), Metric.SUM, field=FieldName("weight"))

    async def ask() -> object:
        store = SqliteStore(home, lambda: NOW)
        try:
            return (await store.aggregate(plan)).value
        finally:
            await store.close()

    with writing_store(home) as database:
        assert ExactFilling().plan(database)
    assert asyncio.run(ask()) == _SUM
    with writing_store(home) as database:
        task = ExactFilling()
        while task.plan(database):
            task.step(database)
        ((stid, number, scale),) = database.all("SELECT stid, col, scale FROM field WHERE name='weight'")
        assert scale == 2
        held = [value for (value,) in database.all(f"SELECT s{number} FROM t{stid} ORDER BY rid")]
    assert held == [10, 20, 1234, None, None, None, 700]
    assert asyncio.run(ask()) == _SUM
    assert damages(home) == []
