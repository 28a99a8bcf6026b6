"""A role that was made for one home sees and changes nothing of another, whatever statement it gives."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headgate.model.hiding import HidingRule
from headgate.model.plan import AggregatePlan, ChangesPlan
from headgate.model.query import Metric
from headgate.store.postgres.database import HomePlace, connect
from headgate.store.postgres.engine import PostgresStore
from headgate.store.postgres.migrate import make_role, open_place
from tests import postgres
from tests.store.declared import MARKS
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger
from tests.store.test_rules import RED

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_TABLES = (
    "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'home'"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace"
)


@pytest.fixture
def other(tmp_path: Path) -> Generator[Ledger]:
    """A home with something in it."""
    store = Driven("postgres", tmp_path / "other")
    ledger = Ledger(store, connections=1)
    ledger.put({"id": "a", "title": "secret", "body": "long " * 20_000, "label": "red"}, {"id": "b"})
    ledger.put({"note": "a", "n": 1, "text": "secret"}, stream=MARKS)
    ledger.store.add_rule(RED, at=NOW)
    yield ledger
    store.close()


@pytest.fixture
def place(tmp_path: Path) -> HomePlace:
    """Another home, through the role that was made for it."""
    url = postgres.database_url()
    found = open_place(url, str(tmp_path / "home"))
    role = make_role(url, found, "a password")
    return HomePlace(postgres.server().url_of("headgate", role), found.home)


def _rows(connection: Any, table: str, condition: str) -> list[Any]:
    return connection.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall()


def test_no_statement_of_a_role_reaches_another_home(other: Ledger, place: HomePlace):
    theirs = open_place(postgres.database_url(), str(other.store.directory)).home
    with connect(postgres.database_url()) as owner, connect(place.url) as role:
        tables = [name for (name,) in owner.execute(_TABLES).fetchall()]
        before = {table: sorted(map(str, _rows(owner, table, f"home={theirs}"))) for table in tables}
        assert sum(map(bool, before.values())) > 15
        for table in tables:
            assert _rows(role, table, f"home <> {place.home}") == []
            change = f"UPDATE {table} SET home = home WHERE home = {theirs}"
            if table in {"audit", "audit_fold"}:
                # What is in the log may not be changed at all, in any home.
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    role.execute(change)
            else:
                assert role.execute(change).rowcount == 0
            assert role.execute(f"DELETE FROM {table} WHERE home = {theirs}").rowcount == 0
            if before[table]:
                found = owner.execute(f"SELECT * FROM {table} WHERE home={theirs} LIMIT 1")
                names, row = [column.name for column in found.description], found.fetchone()
                marks = ", ".join(f"${number}" for number, _ in enumerate(names, 1))
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    role.execute(f"INSERT INTO {table}({', '.join(names)}) VALUES({marks})", row)
        assert {table: sorted(map(str, _rows(owner, table, f"home={theirs}"))) for table in tables} == before


def test_a_role_cannot_move_its_rows_into_another_home(other: Ledger, place: HomePlace):
    theirs = open_place(postgres.database_url(), str(other.store.directory)).home
    with connect(place.url) as role, pytest.raises(psycopg.errors.InsufficientPrivilege):
        role.execute(f"UPDATE meta SET home = {theirs}, k = 'mine' WHERE k = 'seq'")


def test_a_store_works_under_the_role_of_its_home(other: Ledger, place: HomePlace, tmp_path: Path):
    store = Driven("postgres", tmp_path / "home", PostgresStore(place, lambda: NOW, connections=1))
    ledger = Ledger(store, connections=2)
    ledger.put({"id": "a", "title": "mine", "body": "long " * 20_000, "size": 2}, {"id": "b", "size": 3})
    ledger.put({"id": "c", "title": "mine", "size": 4}, connection=1)
    assert sorted(ledger.keys()) == ["a", "b", "c"]
    assert store.aggregate(AggregatePlan(ledger.reach(), Metric.COUNT)).value == 3
    ledger.remove("b")
    assert {entry.id for entry in store.changes(ChangesPlan(ledger.reach(), 10, 0)).entries} == {"a", "c"}
    rule: HidingRule = RED
    assert store.add_rule(rule, at=NOW) == 0
    store.delete_connection(ledger.ids[1])
    assert ledger.keys() == ["a"]
    assert len(store.connections()) == 1
    store.close()
