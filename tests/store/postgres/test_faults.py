"""What happens when the database server goes away, and when several processes share a home."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import tempfile
from collections.abc import Coroutine, Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headgate.errors import QueryTimeout, StorageFull, StorageUnusable
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import AggregatePlan, ChangesPlan, RecordPlan, SearchPlan, SearchReach, parse_terms
from headgate.model.query import Metric
from headgate.model.rows import Batch
from headgate.store.changes import writer
from headgate.store.engines import postgres_readers as readers
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.postgres_readers import PostgresReader
from headgate.store.postgres import database
from headgate.store.postgres.database import PostgresDatabase
from headgate.store.postgres.migrate import open_place
from tests import postgres
from tests.store.declared import NOTES
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")


@pytest.fixture
def server() -> Generator[postgres.Server]:
    """A server that keeps what it acknowledged through a power cut."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-pg-"))
    made = postgres.Server(folder, ("fsync=on", "shared_buffers=16MB", "max_connections=40"))
    made.make()
    made.start()
    try:
        yield made
    finally:
        made.kill()
        shutil.rmtree(folder, ignore_errors=True)


def driven(url: str, name: str = "one") -> Driven:
    """Open a store as one more process would."""
    store = PostgresStore(open_place(url, name), itertools.count(NOW).__next__, connections=2)
    return Driven("postgres", Path(), store)


def batch(ledger: Ledger, *records: dict[str, Any]) -> Batch:
    """Make a batch of records."""
    lines = [json.dumps({"data": record}).encode() for record in records]
    return Batch(ledger.ids[0], NOTES, lines, NOW)


def everything(ledger: Ledger) -> set[str]:
    """Give the keys of all records; they fit on a page."""
    return set(ledger.keys(limit=1000))


def test_a_server_that_is_killed_loses_nothing_acknowledged_and_is_found_again_without_a_restart(
    server: postgres.Server,
):
    store = driven(server.url)
    ledger = Ledger(store, connections=1)
    acknowledged: set[str] = set()
    for turn in range(3):
        for n in range(20):
            ledger.put({"id": f"{turn}-{n}", "title": "canal"})
            acknowledged.add(f"{turn}-{n}")
        server.kill()
        with pytest.raises(StorageUnusable):
            store.record(RecordPlan(ledger.reach(), RecordId("0-0")))
        with pytest.raises(StorageUnusable):
            store.ingest(batch(ledger, {"id": f"lost-{turn}"}))
        server.start()
        ledger.put({"id": f"after-{turn}"})
        acknowledged.add(f"after-{turn}")
    assert everything(ledger) == acknowledged
    store.close()


def test_a_connection_that_is_cut_while_it_writes_leaves_a_whole_batch_or_none(server: postgres.Server):
    store = driven(server.url)
    ledger = Ledger(store, connections=1)
    stored: set[str] = set()
    outcomes: set[bool] = set()
    for n in range(25):
        keys = {f"{n}-{place}" for place in range(50)}
        records = [{"id": key, "title": "canal", "body": "gloves"} for key in sorted(keys)]
        try:
            store.run(_cut_while(server.url, store.bare.ingest(batch(ledger, *records)), n))
        except StorageUnusable:
            outcomes.add(False)
            # Whether it was stored is for the next read to say: whole or not at all.
            found = everything_of(ledger, n)
            assert found in (set(), keys)
            stored |= found
        else:
            outcomes.add(True)
            stored |= keys
    assert outcomes == {True, False}
    assert sum(len(everything_of(ledger, n)) for n in range(25)) == len(stored)
    store.close()


def everything_of(ledger: Ledger, n: int) -> set[str]:
    """Give the keys that are stored of one batch."""
    asked = ledger.reach(resources=[f"{n}-{place}" for place in range(50)])
    return set(ledger.keys(asked, limit=100))


async def _cut_while(url: str, call: Coroutine[Any, Any, Any], pieces: int) -> None:
    """Cut every connection of the store some steps after a call has begun."""
    running = asyncio.ensure_future(call)
    with psycopg.connect(url, autocommit=True) as other:
        for _ in range(pieces):
            other.execute("SELECT 1")
            await asyncio.sleep(0)
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'headgate' AND pid <> pg_backend_pid()"
        )
    await running


def test_two_processes_that_write_one_home_lose_and_double_nothing(server: postgres.Server):
    first, second = driven(server.url), driven(server.url)
    ledger = Ledger(first, connections=1)
    stores = itertools.cycle((first.bare, second.bare))
    # The stores run in one loop here; each has its own connections and threads.
    calls = [next(stores).ingest(batch(ledger, {"id": f"{n}", "title": "canal"})) for n in range(40)]
    assert [outcome.accepted for outcome in first.together(*calls)] == [1] * 40
    assert everything(ledger) == {f"{n}" for n in range(40)}
    changed = second.changes(ChangesPlan(ledger.reach(), 100, since=0)).entries
    assert sorted(one.id for one in changed) == sorted(f"{n}" for n in range(40))
    first.close()
    second.close()


def test_what_one_process_writes_the_next_read_of_another_sees(server: postgres.Server):
    first, second = driven(server.url), driven(server.url)
    ledger = Ledger(first, connections=1)
    count = AggregatePlan(ledger.reach(), Metric.COUNT)
    for n in range(12):
        ledger.put({"id": f"{n}", "title": f"canal number{n}", "size": n})
        assert [one.id for one in second.record(RecordPlan(ledger.reach(), RecordId(f"{n}")))] == [f"{n}"]
        assert second.aggregate(count).value == n + 1
        reach = SearchReach(ledger.reach(), (FieldName("title"),))
        found = second.search(SearchPlan((reach,), parse_terms(f"number{n}"), 10))
        assert [hit.record.id for hit in found.hits] == [f"{n}"]
    first.close()
    second.close()


def test_a_statement_that_takes_too_long_ends_with_its_read_and_the_connection_goes_on(
    server: postgres.Server,
):
    reader = PostgresReader(open_place(server.url, "one"))
    with pytest.raises(QueryTimeout):
        reader.read(lambda database, _: database.all("SELECT pg_sleep(60)"), 0.05)
    assert reader.read(lambda database, _: database.all("SELECT 1::int")) == [(1,)]
    reader.database.finish()


def test_a_write_that_waits_too_long_for_another_is_refused_and_nothing_is_stored(
    server: postgres.Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(database, "_OPTIONS", "-c lock_timeout=100ms")
    store = driven(server.url)
    ledger = Ledger(store, connections=1)
    other = PostgresDatabase(open_place(server.url, "one"))
    with other.writing(), pytest.raises(StorageUnusable, match="busy"):
        store.ingest(batch(ledger, {"id": "a"}))
    assert everything(ledger) == set()
    ledger.put({"id": "b"})
    assert everything(ledger) == {"b"}
    other.finish()
    store.close()


def test_a_store_without_room_counts_as_full_for_a_while_or_until_something_is_stored(
    server: postgres.Server, monkeypatch: pytest.MonkeyPatch
):
    store = driven(server.url)
    ledger = Ledger(store, connections=1)

    def fill(_database: Any) -> None:
        raise psycopg.errors.DiskFull

    def fails_for_want_of_room() -> bool:
        (outcome,) = store.together(store.bare._writer.run(fill))
        return isinstance(outcome, StorageFull)

    assert store.bare.is_writable
    assert fails_for_want_of_room()
    assert not store.bare.is_writable
    ledger.put({"id": "a"})
    assert store.bare.is_writable
    assert fails_for_want_of_room()
    monkeypatch.setattr(writer, "FULL_SECONDS", 0.0)
    assert store.bare.is_writable
    store.close()


def test_more_reads_than_may_wait_are_refused_at_once_and_the_others_are_answered(
    server: postgres.Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(readers, "WAITING_MOST", 8)
    store = driven(server.url)
    ledger = Ledger(store, connections=1)
    ledger.put({"id": "a"})
    asked = [store.bare.record(RecordPlan(ledger.reach(), RecordId("a"))) for _ in range(30)]
    outcomes = store.together(*asked)
    refused = [one for one in outcomes if isinstance(one, StorageUnusable)]
    assert len(refused) == 22
    assert [[record.id for record in one] for one in outcomes if one not in refused] == [["a"]] * 8
    assert len(store.record(RecordPlan(ledger.reach(), RecordId("a")))) == 1
    store.close()


def test_a_server_that_allows_no_more_connections_is_a_typed_refusal_and_not_for_ever(
    server: postgres.Server,
):
    place = open_place(server.url, "one")
    taken = _every_connection(server.url)
    store = Driven("postgres", Path(), PostgresStore(place, itertools.count(NOW).__next__, connections=1))
    with pytest.raises(StorageUnusable):
        store.connections()
    for one in taken:
        one.close()
    assert store.connections() == ()
    store.close()


def _every_connection(url: str) -> list[Any]:
    """Take connections until the server gives no more."""
    taken: list[Any] = []
    try:
        while True:
            taken.append(psycopg.connect(url))
    except psycopg.OperationalError:
        return taken
