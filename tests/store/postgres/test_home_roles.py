"""A role that was made for one home sees and changes nothing of another, whatever statement it gives."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest

from headgate.model.hiding import HidingRule
from headgate.model.plan import AggregatePlan, ChangesPlan
from headgate.model.query import Metric
from headgate.store.engines.postgres import PostgresStore
from headgate.store.postgres.database import HomePlace, connect
from headgate.store.postgres.migrate import make_role, migrate, open_place
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
_RELATIONS = (
    "SELECT relname::text, relkind::text FROM pg_class"
    " WHERE relnamespace = current_schema()::regnamespace AND relkind NOT IN ('i', 't')"
)
_FUNCTIONS = "SELECT proname::text FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"


@pytest.fixture
def other(tmp_path: Path) -> Ledger:
    """A home with something in it."""
    store = Driven("postgres", tmp_path / "other")
    ledger = Ledger(store, connections=1)
    ledger.put({"id": "a", "title": "secret", "body": "long " * 20_000, "label": "red"}, {"id": "b"})
    ledger.put({"note": "a", "n": 1, "text": "secret"}, stream=MARKS)
    ledger.store.add_rule(RED, at=NOW)
    # So that nothing changes by itself.
    store.close()
    home = open_place(postgres.database_url(), str(store.directory)).home
    with connect(postgres.database_url()) as owner:
        owner.execute("INSERT INTO audit VALUES($1, 2, 'secret', 'seal')", (home,))
        owner.execute("INSERT INTO audit_pruned VALUES($1, 1, 1, 'secret', 'end', 'seal')", (home,))
    return ledger


@pytest.fixture
def place(tmp_path: Path) -> HomePlace:
    """Another home, through the role that was made for it."""
    url = postgres.database_url()
    found = open_place(url, str(tmp_path / "home"))
    role = make_role(url, found, "a password")
    return HomePlace(postgres.server().url_of("headgate", role), found.home)


def _rows(connection: Any, table: str, condition: str) -> list[Any]:
    return connection.execute(f"SELECT * FROM {table} WHERE {condition}").fetchall()


def test_a_role_may_use_the_tables_of_a_later_version(place: HomePlace):
    role = f"headgate_home_{place.home}"
    rights = "unnest(ARRAY['SELECT', 'INSERT', 'DELETE']) AS r"
    allowed = f"SELECT bool_and(has_table_privilege('{role}', 'word_gone', r)) FROM {rights}"
    with connect(postgres.database_url()) as owner, owner.transaction(force_rollback=True):
        # As it was before that table.
        owner.execute(
            "DELETE FROM headgate_schema WHERE version > (SELECT max(version) - 2 FROM headgate_schema)"
        )
        owner.execute("DROP TABLE word_gone")
        owner.execute("ALTER TABLE vector_shelf DROP COLUMN gaps")
        migrate(owner)
        assert owner.execute(allowed).fetchone() == (True,)


def test_no_statement_of_a_role_reaches_another_home(other: Ledger, place: HomePlace):
    theirs = open_place(postgres.database_url(), str(other.store.directory)).home
    with connect(postgres.database_url()) as owner, connect(place.url) as role:
        tables = [name for (name,) in owner.execute(_TABLES).fetchall()]
        before = {table: sorted(map(str, _rows(owner, table, f"home={theirs}"))) for table in tables}
        assert sum(map(bool, before.values())) > 15
        for table in tables:
            assert _rows(role, table, f"home <> {place.home}") == []
            for change in (
                f"UPDATE {table} SET home = home WHERE home = {theirs}",
                f"DELETE FROM {table} WHERE home = {theirs}",
            ):
                with suppress(psycopg.errors.InsufficientPrivilege):
                    assert role.execute(change).rowcount == 0
            if before[table]:
                found = owner.execute(f"SELECT * FROM {table} WHERE home={theirs} LIMIT 1")
                names, row = [column.name for column in found.description], found.fetchone()
                marks = ", ".join(f"${number}" for number, _ in enumerate(names, 1))
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    role.execute(f"INSERT INTO {table}({', '.join(names)}) VALUES({marks})", row)
        assert {table: sorted(map(str, _rows(owner, table, f"home={theirs}"))) for table in tables} == before


def test_nothing_that_the_schema_holds_shows_a_role_another_home(other: Ledger, place: HomePlace):
    """Tables, views, sequences and functions, whatever a later version adds: each is refused, or shows one home."""
    with connect(postgres.database_url()) as owner, connect(place.url) as role:
        relations = owner.execute(_RELATIONS).fetchall()
        assert {kind for _, kind in relations} == {"r", "v"}
        for name, _ in relations:
            shown = [row for (row,) in _permitted(role, f"SELECT to_jsonb(t) FROM {name} t")]
            assert not any(secret in str(shown) for secret in ("secret", b"secret".hex())), name
            if name != "headgate_schema":
                assert {row["home"] for row in shown} <= {place.home}, name
        assert owner.execute(_FUNCTIONS).fetchall() == []
        # What the server has noted of the values in tables.
        owner.execute("ANALYZE")
        noted = role.execute("SELECT tablename::text FROM pg_stats WHERE schemaname = current_schema()")
        assert noted.fetchall() == [("headgate_schema",)]


def test_a_function_of_a_role_is_given_no_row_of_another_home(other: Ledger, place: HomePlace):
    with connect(place.url) as role:
        noticed: list[str] = []
        role.add_notice_handler(lambda notice: noticed.append(notice.message_primary))
        role.execute(
            "CREATE FUNCTION pg_temp.spy(value text) RETURNS bool COST 0.0001 LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE NOTICE '%', value; RETURN true; END $$"
        )
        role.execute("SELECT count(*) FROM meta WHERE pg_temp.spy(home::text)")
        assert set(noticed) == {str(place.home)}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE record DISABLE ROW LEVEL SECURITY",
        "ALTER TABLE record NO FORCE ROW LEVEL SECURITY",
        "DROP POLICY home_of_role ON record",
        "ALTER POLICY home_of_role ON record USING (true)",
        "CREATE POLICY mine ON record USING (true)",
        "SET row_security = off; SELECT count(*) FROM record",
        "SET ROLE postgres",
        "SET SESSION AUTHORIZATION postgres",
        "TRUNCATE record",
        "CREATE TABLE mine(home int)",
        "CREATE VIEW mine AS SELECT * FROM record",
        "ALTER ROLE <role> BYPASSRLS",
        "CREATE ROLE another",
        "UPDATE audit SET seal = ''",
        "UPDATE audit_pruned SET seal = ''",
        "DELETE FROM audit_pruned",
        "TRUNCATE audit",
        "INSERT INTO headgate_schema VALUES(99)",
    ],
)
def test_a_role_cannot_lift_what_restricts_it_or_change_the_log(place: HomePlace, statement: str):
    named = statement.replace("<role>", f"headgate_home_{place.home}")
    with connect(place.url) as role, pytest.raises(psycopg.errors.InsufficientPrivilege):
        # Without values, so that it may hold several statements.
        role.execute(named.encode())


def test_a_role_removes_blocks_of_the_log_only_where_a_fold_stands_for_them(place: HomePlace):
    with connect(place.url) as role:
        for number in range(1, 5):
            role.execute("INSERT INTO audit VALUES($1, $2, 'event', 'seal')", (place.home, number))
        assert role.execute("DELETE FROM audit").rowcount == 0
        role.execute("INSERT INTO audit_pruned VALUES($1, 2, 1, 'sums', 'end', 'seal')", (place.home,))
        assert role.execute("DELETE FROM audit").rowcount == 2
        assert role.execute("SELECT seq FROM audit ORDER BY seq").fetchall() == [(3,), (4,)]


def _permitted(role: Any, statement: str) -> list[Any]:
    """Give what a statement shows; nothing if it is refused."""
    try:
        return role.execute(statement).fetchall()
    except psycopg.errors.InsufficientPrivilege:
        return []


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
