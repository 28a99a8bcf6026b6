"""Bring a database to the schema of this version, and give homes their numbers in it."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Any

from psycopg import sql

from headgate.errors import ConfigInvalid, StorageUnusable
from headgate.store.format import analyser
from headgate.store.postgres.database import HomePlace, PostgresDatabase, connect, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.sql.database import refuse_unfinished_copy

_NAME = re.compile(r"(\d{4})_\w+\.sql")
#: What a new home starts from. Its word index is of this version from the beginning.
_START = {
    "seq": 0,
    "pruned_seq": 0,
    "catalog": 1,
    "version": 1,
    "words": analyser.VERSION,
    "words_filled": 0,
    "sid": 0,
    "stid": 0,
    "gid": 0,
    "bid": 0,
    "ledger": 1,
    "chain": 0,
}
_IS_OWN_HOME = "home = (SELECT substring(current_user FROM '^headgate_home_([0-9]+)$')::int)"
#: What is in the log is never changed. Blocks leave it only when a line stands for them, which a policy holds.
_USUAL_RIGHTS = "SELECT, INSERT, UPDATE, DELETE"
_RIGHTS = {"audit": "SELECT, INSERT, DELETE", "audit_pruned": "SELECT, INSERT"}
_IS_PRUNED = "seq <= (SELECT max(last) FROM audit_pruned WHERE audit_pruned.home = audit.home)"
_TABLES = (
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'home'"
    " WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
)
_ROLES = (
    "SELECT rolname::text FROM pg_roles"
    " WHERE rolname ~ '^headgate_home_[0-9]+$' AND has_table_privilege(rolname, 'record', 'SELECT')"
)


def open_place(url: str, name: str, *, makes: bool = True) -> HomePlace:
    """Bring the database up to date and find a home in it by its name; one that is not there is made."""
    place = place_to_fill(url, name, makes=makes)
    database = PostgresDatabase(place)
    try:
        with translated():
            refuse_unfinished_copy(database)
            for (latest_time,) in database.all(SQL["latest_time"]):
                place.latest_time.note(latest_time)
    finally:
        database.finish()
    return place


def place_to_fill(url: str, name: str, *, makes: bool = True) -> HomePlace:
    """Do the same for a copy into that home, which may have been stopped before it was complete."""
    with translated(), connect(url) as connection:
        if makes:
            migrate(connection)
        row = connection.execute("SELECT home FROM home WHERE name=$1", (name,)).fetchone()
        if row is not None:
            return HomePlace(url, row[0])
        if not makes:
            raise ConfigInvalid(
                f"There is no home '{name}' in the database.",
                hint="Set store_home to the name of a home that is there.",
            )
        return HomePlace(url, _make_home(connection, name))


def _make_home(connection: Any, name: str) -> int:
    with connection.transaction():
        connection.execute("LOCK TABLE home IN SHARE ROW EXCLUSIVE MODE")
        known = connection.execute("SELECT home FROM home WHERE name=$1", (name,)).fetchone()
        if known is not None:
            return known[0]
        row = connection.execute("SELECT coalesce(max(home), 0) + 1 FROM home").fetchone()
        assert row is not None
        connection.execute("INSERT INTO home VALUES($1, $2)", (row[0], name))
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO meta VALUES($1, $2, $3)", [(row[0], k, v) for k, v in _START.items()])
        return row[0]


def migrate(connection: Any) -> None:
    """Take the steps that the database has not taken, each whole or not at all."""
    steps = _steps()
    at = _version(connection)
    if at == len(steps):
        return
    if at > len(steps):
        raise StorageUnusable(
            f"The database was made by a newer version (schema {at}, this program knows {len(steps)}).",
            hint="Use that version.",
        )
    with connection.transaction():
        connection.execute("CREATE TABLE IF NOT EXISTS headgate_schema(version int NOT NULL)")
        # Another process may have taken the steps while this one waited for its turn.
        connection.execute("LOCK TABLE headgate_schema IN ACCESS EXCLUSIVE MODE")
        for number in range(_version(connection) + 1, len(steps) + 1):
            connection.execute(steps[number - 1])
            connection.execute("INSERT INTO headgate_schema VALUES($1)", (number,))
        _restrict(connection)
        # New tables are for the roles that serve a home of this database; others of the server may be named alike.
        for (role,) in connection.execute(_ROLES).fetchall():
            _give_rights(connection, role)


def _version(connection: Any) -> int:
    known = connection.execute("SELECT to_regclass('headgate_schema') IS NOT NULL").fetchone()
    if known is None or not known[0]:
        return 0
    row = connection.execute("SELECT coalesce(max(version), 0) FROM headgate_schema").fetchone()
    return 0 if row is None else row[0]


def _steps() -> list[str]:
    folder = files("headgate.store.postgres").joinpath("migrations")
    named = sorted((file.name, file) for file in folder.iterdir() if _NAME.fullmatch(file.name))
    return [file.read_text(encoding="utf-8") for _, file in named]


def _restrict(connection: Any) -> None:
    """Let a role that is made for one home see that home alone, whatever a statement asks for.

    The role's name ends with the number of its home. The owner of the tables is not restricted: it makes homes.
    """
    for (table,) in connection.execute(_TABLES).fetchall():
        connection.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        connection.execute(f"DROP POLICY IF EXISTS home_of_role ON {table}")
        connection.execute(f"CREATE POLICY home_of_role ON {table} USING ({_IS_OWN_HOME})")
    for name in ("only_folded", "only_pruned"):
        connection.execute(f"DROP POLICY IF EXISTS {name} ON audit")
    connection.execute(f"CREATE POLICY only_pruned ON audit AS RESTRICTIVE FOR DELETE USING ({_IS_PRUNED})")


def make_role(url: str, place: HomePlace, password: str) -> str:
    """Make the role that serves one home, or give it another password; returns its name."""
    name = f"headgate_home_{place.home}"
    with translated(), connect(url) as connection, connection.transaction():
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname=$1", (name,)).fetchone()
        verb = "ALTER" if known else "CREATE"
        quoted = sql.Literal(password).as_string(connection)
        connection.execute(f"{verb} ROLE {name} LOGIN PASSWORD {quoted}")
        _give_rights(connection, name)
    return name


def _give_rights(connection: Any, role: str) -> None:
    connection.execute(f"GRANT SELECT ON headgate_schema TO {role}")
    connection.execute(f"GRANT SELECT ON audit_chain TO {role}")
    for (table,) in connection.execute(_TABLES).fetchall():
        connection.execute(f"REVOKE ALL ON {table} FROM {role}")
        connection.execute(f"GRANT {_RIGHTS.get(table, _USUAL_RIGHTS)} ON {table} TO {role}")
