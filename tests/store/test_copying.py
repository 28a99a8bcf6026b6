"""A copy answers as its source does, whatever is asked; one that is not whole answers nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from headgate.errors import Conflict, IntegrityBroken, StorageUnusable
from headgate.home import open_home
from headgate.model.declaration import Cardinality
from headgate.model.ids import BlobId, FieldName, RecordId
from headgate.model.plan import BlobPlan, ChangesPlan, ExpandPlan, OffsetWindow, RecordPlan, WindowPlan
from headgate.model.rows import OnInvalid
from headgate.store.engines import commands
from headgate.store.maintenance import copying
from headgate.store.maintenance.copied_tables import TABLES
from headgate.store.maintenance.postgres_side import PostgresSide
from headgate.store.maintenance.sqlite_side import side_to_fill
from headgate.store.postgres.database import PostgresDatabase
from headgate.store.postgres.migrate import place_to_fill
from tests import postgres
from tests.store.copies import copied, home_of, quiet
from tests.store.declared import DESK, MARKS, document
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger
from tests.store.plans import aggregate_plans, batches, changes_plans, page_plans, search_plans
from tests.store.test_rules import RED

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_OTHER = {"sqlite": "postgres", "postgres": "sqlite"}
_CONTENT = bytes(range(256)) * 9000
_METHODS = ("page", "aggregate", "changes", "search")
_TABLES = "SELECT relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE attname='home' AND relkind='r'"
#: Tables of PostgreSQL that are copied by other means than row by row, or that belong to no copy.
_OTHER_TABLES = {"home", "meta", "typed", "child_key", "blob_part", "budget", "kept_cursor", "lease"}


class _Stopped(BaseException):
    """As when the process is killed: nothing goes on after it."""


def _stopping_at(rows: int) -> Callable[[int, int], None]:
    def stop(done: int, _total: int) -> None:
        if done >= rows:
            raise _Stopped

    return stop


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(content), 100_000):
        yield content[at : at + 100_000]


async def _bytes_of(store: Driven, blob_id: BlobId) -> bytes:
    return b"".join([piece async for piece in store.bare.read_blob(blob_id)])


@pytest.fixture
def ledger(engine: str, tmp_path: Path) -> Ledger:
    """A store of each engine that its test closes: it is copied after that."""
    return Ledger(Driven(engine, tmp_path / "home"), connections=2)


def _notes(count: int) -> list[dict[str, Any]]:
    return [
        {"id": f"k{n}", "title": f"title {n}", "size": n, "at": "2026-01-02T03:04:05Z"} for n in range(count)
    ]


def _number(ledger: Ledger) -> int:
    return ledger.store.changes(ChangesPlan(ledger.reach(), 1, 0)).horizon


def _send(ledger: Ledger, batch: tuple[Any, ...]) -> None:
    connection, stream, lines = batch
    encoded = [json.dumps(line).encode() for line in lines]
    ledger.send(*encoded, stream=stream, connection=connection, on_invalid=OnInvalid.KEEP)


def _plans(data: st.DataObject, ids: Sequence[Any], since: int) -> list[tuple[str, Any]]:
    strategies = (page_plans(ids), aggregate_plans(ids), changes_plans(ids, since), search_plans(ids))
    return [
        (method, plan)
        for method, strategy in zip(_METHODS, strategies, strict=True)
        for plan in data.draw(st.lists(strategy, min_size=6, max_size=6))
    ]


def _answers(store: Driven, plans: Sequence[tuple[str, Any]]) -> list[Any]:
    return [getattr(store, method)(plan) for method, plan in plans]


@settings(
    max_examples=6,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_a_copy_to_the_other_engine_and_back_gives_the_same_answers(engine: str, data: st.DataObject):
    with tempfile.TemporaryDirectory() as directory:
        store = Driven(engine, Path(directory) / "first")
        ledger = Ledger(store, connections=3)
        drawn = data.draw(st.lists(batches(3), min_size=3, max_size=8))
        _send(ledger, drawn[0])
        since = _number(ledger)
        for batch in drawn[1:]:
            _send(ledger, batch)
        plans = _plans(data, ledger.ids, since)
        expected = _answers(store, plans)
        for name, other in (("second", _OTHER[engine]), ("third", engine)):
            store = copied(store, other, name)
            assert _answers(store, plans) == expected
        store.close()


def test_everything_beside_the_records_comes_along(ledger: Ledger):
    long = "".join(f"{n:05}é🎉" for n in range(600_000))
    blob_id, _ = ledger.store.put_blob(_pieces(_CONTENT), "image/png")
    empty, _ = ledger.store.put_blob(_pieces(b""), "text/plain")
    records = ({"id": "a", "body": long, "file": {"blob_id": blob_id}}, {"id": "red", "label": "red"})
    ledger.put(*records, key="once")
    ledger.put({"note": "a", "n": 1, "text": "one"}, stream=MARKS)
    ledger.store.add_rule(RED, at=NOW)
    ledger.store.put_state(ledger.ids[0], b'{"at": 7}')
    ledger.store.delete_connection(ledger.store.create_connection(DESK, "gone").id)
    reach = ledger.reach()
    marks = ExpandPlan("marks", ledger.reach(MARKS), FieldName("note"), Cardinality.HAS_MANY, 5)

    def everything(store: Driven) -> list[Any]:
        return [
            [
                store.window(WindowPlan(reach, RecordId("a"), FieldName("body"), OffsetWindow(at, 50)))
                for at in (0, 8_190, 4_000_000, len(long) - 20)
            ],
            store.record(RecordPlan(reach, RecordId("a"), (marks,), preview_chars=100)),
            store.rules(),
            store.hidden_counts(),
            store.state(ledger.ids[0]),
            store.connections(),
            store.declarations(),
            store.blobs(BlobPlan((reach,), blob_id)),
            [store.run(_bytes_of(store, one)) for one in (blob_id, empty)],
            store.summaries((reach,)),
        ]

    expected = everything(ledger.store)
    for name in ("second", "third"):
        ledger.store = copied(ledger.store, _OTHER[ledger.store.engine], name)
        assert everything(ledger.store) == expected
        assert _damages(ledger.store) == ()
    # A batch that was taken before the copy is known after it, and new numbers follow the old ones.
    before = _number(ledger)
    ledger.put(*records, key="once")
    assert _number(ledger) == before
    ledger.put({"id": "new"})
    assert _number(ledger) == before + 1
    ledger.store.declare(DESK, document("2"))
    ledger.store.create_connection(DESK, "later")
    assert _damages(ledger.store) == ()
    ledger.store.close()


def _damages(store: Driven) -> tuple[Any, ...]:
    return commands.commands_of(home_of(store.engine, store.directory)).check(quiet).damages


class _Arrivals:
    """Counts the records that arrive."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self._put = copying._put
        monkeypatch.setattr(copying, "_put", self)

    def __call__(self, target: Any, table: Any, columns: Any, rows: Any) -> int:
        put = self._put(target, table, columns, rows)
        self.count += put if table.name == "record" else 0
        return put


@pytest.mark.parametrize("rows", [1, 75, 90, 130, 200])
def test_a_copy_that_was_stopped_cannot_be_opened_and_goes_on(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, rows: int
):
    monkeypatch.setattr(copying, "_ROWS_AT_ONCE", 7)
    ledger.put(*_notes(60))
    store, other, directory = (
        ledger.store,
        _OTHER[ledger.store.engine],
        ledger.store.directory.with_name("copy"),
    )
    expected = ledger.keys()
    with pytest.raises(_Stopped):
        copied(store, other, "copy", _stopping_at(rows))
    with pytest.raises(StorageUnusable):
        Driven(other, directory)
    with pytest.raises(StorageUnusable):
        commands.commands_of(home_of(other, directory)).stats()
    # The portion that was under way when it stopped has not arrived; those before it do not come again.
    arrived = _record_count(other, directory)
    arrivals = _Arrivals(monkeypatch)
    commands.copy_store(home_of(store.engine, store.directory), home_of(other, directory), quiet)
    assert arrivals.count == 60 - arrived
    ledger.store = Driven(other, directory)
    assert ledger.keys() == expected
    ledger.store.close()


def _side(engine: str, directory: Path) -> Any:
    if engine == "sqlite":
        return side_to_fill(open_home(directory))
    return PostgresSide(PostgresDatabase(place_to_fill(postgres.database_url(), str(directory))))


def _record_count(engine: str, directory: Path) -> int:
    database = _side(engine, directory).database
    try:
        return database.value(database.sql["count_rows"].format(table="record"))
    finally:
        database.finish()


_KILLED = """
import os, signal, sys
from pathlib import Path
from headgate.home import Home, home_in
from headgate.store.engines import commands
from headgate.store.maintenance import copying

copying._ROWS_AT_ONCE = 7
homes = [home_in(Home(Path(path)), url, path) for path, url in zip(sys.argv[1::2], sys.argv[2::2])]
commands.copy_store(*homes, lambda done, _: os.kill(os.getpid(), signal.SIGKILL) if done >= 90 else None)
"""


def test_a_copy_whose_process_was_killed_goes_on(ledger: Ledger):
    ledger.put(*_notes(60))
    store, other, directory = (
        ledger.store,
        _OTHER[ledger.store.engine],
        ledger.store.directory.with_name("copy"),
    )
    expected = ledger.page().records
    store.close()
    home_of(other, directory)
    addresses = {"sqlite": "", "postgres": postgres.database_url()}
    places = (str(store.directory), addresses[store.engine], str(directory), addresses[other])
    done = subprocess.run([sys.executable, "-c", _KILLED, *places], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    with pytest.raises(StorageUnusable):
        Driven(other, directory)
    commands.copy_store(home_of(store.engine, store.directory), home_of(other, directory), quiet)
    ledger.store = Driven(other, directory)
    assert ledger.page().records == expected
    ledger.store.close()


def test_a_source_that_changed_since_is_copied_from_the_start(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(copying, "_ROWS_AT_ONCE", 7)
    ledger.put(*_notes(60))
    store, other = ledger.store, _OTHER[ledger.store.engine]
    with pytest.raises(_Stopped):
        copied(store, other, "copy", _stopping_at(90))
    ledger.store = Driven(store.engine, store.directory)
    ledger.put({"id": "k3", "title": "changed"}, {"id": "k99"})
    ledger.remove("k1")
    expected = ledger.page().records
    ledger.store = copied(ledger.store, other, "copy")
    assert ledger.page().records == expected
    ledger.store.close()


_HERE = "home=:home AND"


@pytest.mark.parametrize(
    "harm",
    [
        "UPDATE record SET body='' WHERE {here} record_id='k3'",
        "UPDATE record SET seq=seq+1 WHERE {here} record_id='k3'",
        "DELETE FROM record WHERE {here} record_id='k3'",
        "UPDATE shelf_time SET at=at+1 WHERE {here} fid=0",
        "UPDATE chunk SET text='x' WHERE {here} n=1",
        "DELETE FROM word_leaf WHERE {here} lid > 0",
        "DELETE FROM typed WHERE {here} rid > 0",
    ],
)
def test_a_copy_that_differs_is_refused_and_stays_closed(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, harm: str
):
    ledger.put(*_notes(20), {"id": "long", "body": "long text " * 5000})
    ledger.store.close()
    directory = ledger.store.directory.with_name("copy")
    compare = copying._compare

    def compare_harmed(source: Any, target: Any, *others: Any) -> None:
        with target.database.writing():
            target.database.run(harm.format(here=_HERE))
        compare(source, target, *others)

    monkeypatch.setattr(copying, "_compare", compare_harmed)
    homes = home_of(ledger.store.engine, ledger.store.directory), home_of("postgres", directory)
    with pytest.raises(IntegrityBroken):
        commands.copy_store(*homes, quiet)
    with pytest.raises(StorageUnusable):
        Driven("postgres", directory)


def test_a_store_that_holds_anything_is_never_copied_into(ledger: Ledger):
    ledger.put(*_notes(3))
    other = Ledger(
        Driven(_OTHER[ledger.store.engine], ledger.store.directory.with_name("other")), connections=1
    )
    other.put(*_notes(5))
    expected = other.keys()
    with pytest.raises(Conflict):
        copied(ledger.store, other.store.engine, "other")
    assert other.keys() == expected
    other.store.close()


def test_a_file_that_is_not_what_was_stored_is_not_copied(tmp_path: Path):
    ledger = Ledger(Driven("sqlite", tmp_path / "home"), connections=1)
    blob_id, _ = ledger.store.put_blob(_pieces(b"a file"), "text/plain")
    ledger.put({"id": "a", "file": {"blob_id": blob_id}})
    digest = blob_id.removeprefix("blob_")
    (tmp_path / "home" / "blobs" / digest[:2] / digest).write_bytes(b"another")
    with pytest.raises(IntegrityBroken):
        copied(ledger.store, "postgres", "copy")


def test_every_table_and_column_of_both_engines_is_copied(tmp_path: Path):
    sqlite, other = _side("sqlite", tmp_path / "home"), _side("postgres", tmp_path / "home")
    listed = {table.name for table in TABLES}
    in_file = {name for (name,) in sqlite.database.all("SELECT name FROM sqlite_schema WHERE type='table'")}
    assert {name for name in in_file if not name.startswith("sqlite_")} - {"meta"} == listed
    in_database = {name for (name,) in other.database.all(_TABLES)}
    assert in_database - _OTHER_TABLES <= listed
    for name in in_database - _OTHER_TABLES:
        both = set(sqlite.columns(name)), set(other.columns(name))
        assert both[0] <= both[1], name
        assert {(name, column) for column in both[1] - both[0]} <= {("record", "key"), ("invalid", "place")}
    for side in (sqlite, other):
        side.database.finish()
