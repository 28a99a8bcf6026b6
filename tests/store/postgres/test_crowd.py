"""Many writers and many readers on one home, over two processes' worth of connections."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import (
    AggregatePlan,
    ChangesPlan,
    PagePlan,
    Reach,
    RecordPlan,
    SearchPlan,
    SearchReach,
    parse_terms,
)
from headgate.model.query import Metric
from headgate.model.record import Record, Tombstone
from headgate.model.rows import Batch
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.conftest import Figure
from tests.store.declared import NOTES
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_WRITERS, _READERS = 16, 200


class Crowd:
    """Writers and readers that go on until they are stopped, or have done so much."""

    def __init__(self, ledger: Ledger, stores: list[PostgresStore], rounds: int, seconds: float) -> None:
        self._ledger = ledger
        self._stores = stores
        self._rounds = rounds
        self._end = time.monotonic() + seconds
        self.acknowledged: set[str] = set()
        self.reads = 0

    def _turns(self) -> Any:
        return itertools.takewhile(lambda _: time.monotonic() < self._end, range(self._rounds))

    async def write(self, writer: int) -> None:
        """Store batches; a record counts once its batch was acknowledged."""
        store = self._stores[writer % len(self._stores)]
        for turn in self._turns():
            keys = [f"{writer}-{turn}-{n}" for n in range(5)]
            lines = [json.dumps({"data": {"id": key, "title": "canal", "size": 1}}).encode() for key in keys]
            report = await store.ingest(Batch(self._ledger.ids[0], NOTES, lines, NOW))
            assert report.accepted == len(keys)
            self.acknowledged.update(keys)

    async def read(self, reader: int) -> None:
        """Read in turns what was acknowledged: it must be there, whole and once."""
        store, reach = self._stores[reader % len(self._stores)], self._ledger.reach()
        for turn in self._turns():
            known = len(self.acknowledged)
            match (reader + turn) % 4:
                case 0:
                    key = next(iter(self.acknowledged), None)
                    found = await store.record(RecordPlan(reach, RecordId(key or "none")))
                    assert len(found) == (key is not None)
                case 1:
                    keys = [one.id for one in (await store.page(PagePlan(reach, 50))).records]
                    assert len(keys) == len(set(keys))
                case 2:
                    assert (await store.aggregate(AggregatePlan(reach, Metric.COUNT))).value >= known
                case _:
                    plan = SearchPlan((SearchReach(reach, (FieldName("title"),)),), parse_terms("canal"), 10)
                    assert len((await store.search(plan)).hits) >= min(known, 10)
            self.reads += 1

    async def run(self) -> None:
        """Do everything at once."""
        writers = [self.write(number) for number in range(_WRITERS)]
        await asyncio.gather(*writers, *(self.read(number) for number in range(_READERS)))


def _all_changes(store: Driven, reach: Reach) -> Iterator[Record | Tombstone]:
    """Read every change, page by page: a page has an end whatever its limit is."""
    page = store.changes(ChangesPlan(reach, 1_000_000, since=0))
    yield from page.entries
    while page.next is not None:
        page = store.changes(ChangesPlan(reach, 1_000_000, since=0, horizon=page.horizon, after=page.next))
        yield from page.entries


def _run(place: Path, rounds: int, seconds: float) -> Crowd:
    found = open_place(postgres.database_url(), str(place))
    first = Driven("postgres", place, PostgresStore(found, itertools.count(NOW).__next__))
    second = PostgresStore(found, itertools.count(NOW).__next__)
    ledger = Ledger(first, connections=1)
    crowd = Crowd(ledger, [first.bare, second], rounds, seconds)
    first.run(crowd.run())
    stored = list(_all_changes(first, ledger.reach()))
    assert sorted(one.id for one in stored) == sorted(crowd.acknowledged)
    assert first.aggregate(AggregatePlan(ledger.reach(), Metric.SUM, FieldName("size"))).value == len(stored)
    first.run(second.close())
    first.close()
    return crowd


def test_sixteen_writers_and_two_hundred_readers_lose_and_double_nothing(tmp_path: Path):
    crowd = _run(tmp_path, rounds=3, seconds=600)
    assert len(crowd.acknowledged) == _WRITERS * 3 * 5
    assert crowd.reads == _READERS * 3


@pytest.mark.soak
def test_sixteen_writers_and_two_hundred_readers_for_a_minute(tmp_path: Path, figure: Figure):
    crowd = _run(tmp_path, rounds=1_000_000, seconds=60)
    figure("crowd", f"{len(crowd.acknowledged)} records acknowledged, {crowd.reads} reads, 0 lost, 0 doubled")
    assert crowd.acknowledged
