"""The statements of PostgreSQL: they fit its schema, and keep to what a database that is spread over machines allows."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from headgate.store.postgres.database import PostgresDatabase, connect
from headgate.store.postgres.dialect import SQL, numbered
from headgate.store.postgres.migrate import open_place
from headgate.store.sql.statements import read_statements
from headgate.store.sqlite.database import SQL as SQLITE
from tests import postgres

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")

#: What statements that depend on a plan are filled with here, to see whether they fit.
_PARTS = {
    "columns": "r.rid, r.sid, r.record_id, r.sort",
    "sids": "1",
    "shelves": "= 1",
    "where": "",
    "join": "",
    "start": "",
    "direction": "ASC",
    "beyond": ">",
    "table": "record",
    "tables": "record",
    "condition": "",
    "conditions": "",
    "order": "r.rid",
    "marks": "?",
    "gone": "",
    "most": "1",
    "select": "",
    "target": "seq",
    "value": "1",
    "held": "1",
    "finest": "1",
    "column": "t.ints[1]",
    "names": "rid",
    "key": "rid",
    "last": "rid DESC",
    "statement": "SELECT 1",
    "keys": "SELECT 1::bigint AS rid",
}
#: Not statements, but parts of some; and one that no database prepares.
_NO_STATEMENTS = {
    "aggregate", "by_key", "exact_sum", "exact_value", "is_unreadable", "page_of_filtered", "records_of_shelves",
    "records_of_typed", "typed_of_shelves", "start_by_key", "start_by_sort", "typed_join", "key_in_list", "row_in_list", "text_of_field", "one_mark", "is_live",
    "rows_of_range", "row_of_number", "is_in_order", "children", "vacuum", "gather_statistics",
}  # fmt: skip
#: What one engine alone needs.
_ONLY_HERE = {
    "blob_part", "put_blob_part", "delete_blob_parts", "delete_child_keys", "put_child_keys", "end_lease", "take_lease",
    "raise_version", "space_of_tables", "state_numbers", "typed_values", "vacuum",
    "with_state", "page_with_rows", "begin_budget", "count_budget", "counted_budget", "epoch", "gather_statistics", "lock_chain", "raise_ledger_version", "table_size",
    "latest_time", "raise_latest_time", "keep_cursor", "kept_cursor", "drop_cursors", "drop_old_cursors",
}  # fmt: skip
_ONLY_IN_SQLITE = {
    "add_typed_column", "forget_given_number", "given_numbers", "index_typed_column", "last_stream", "make_typed_table",
    "put_given_number",
}  # fmt: skip
_FORBIDDEN = re.compile(
    r"\b(serial|bigserial|sequence|nextval|generated|trigger|extension|advisory|listen|notify|temp|temporary|"
    r"set_config|current_setting|prepare)\b",
    re.IGNORECASE,
)


@pytest.fixture
def database(tmp_path: Path) -> Any:
    made = PostgresDatabase(open_place(postgres.database_url(), str(tmp_path)))
    yield made
    made.finish()


def _without_comments(text: str) -> str:
    return re.sub(r"--.*", "", text)


def test_every_statement_fits_the_schema(database: PostgresDatabase):
    for name in sorted(SQL.keys() - _NO_STATEMENTS):
        statement = SQL[name].format(**_PARTS) if "{" in SQL[name] else SQL[name]
        with database.connected().transaction(force_rollback=True):
            home = "(int)" if "$" in numbered(statement) else ""
            database.connected().execute(f"PREPARE tried{home} AS {numbered(statement)}")
            database.connected().execute("DEALLOCATE tried")


def test_what_both_engines_write_alike_is_written_once():
    own = [
        read_statements(file.read_text(encoding="utf-8") for file in files(package).joinpath("sql").iterdir())
        for package in ("headgate.store.sqlite", "headgate.store.postgres")
    ]
    alike = {
        name
        for name in own[0].keys() & own[1].keys()
        if own[0][name].replace("r.deleted=0", "NOT r.deleted") == own[1][name].replace("home=:home AND ", "")
    }
    assert alike == set()


def test_both_engines_have_the_same_statements_but_for_a_few():
    assert SQL.keys() - SQLITE.keys() == _ONLY_HERE
    assert SQLITE.keys() - SQL.keys() == _ONLY_IN_SQLITE


def test_every_key_and_unique_index_begins_with_the_home(database: PostgresDatabase):
    rows = database.all(
        "SELECT i.indexrelid::regclass::text, a.attname::text FROM pg_index i "
        "JOIN pg_class c ON c.oid = i.indrelid AND c.relnamespace = current_schema()::regnamespace "
        "LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
    )
    assert len(rows) > 30
    assert {name for name, first in rows if first != "home"} == set()


def test_nothing_is_used_that_a_database_spread_over_machines_lacks():
    steps = files("headgate.store.postgres").joinpath("migrations")
    texts = [file.read_text(encoding="utf-8") for file in steps.iterdir() if file.name.endswith(".sql")]
    assert len(texts) > 0
    for text in (*texts, *SQL.values()):
        assert _FORBIDDEN.search(_without_comments(text)) is None, text


def test_every_statement_is_about_one_home():
    about_all = {
        "columns_of_table",
        "space_of_tables",
        "table_size",
        "gather_statistics",
        "vacuum",
        "one_mark",
        "is_live",
        "is_in_order",
    }
    parts = {
        "start_by_key", "start_by_sort", "typed_join", "key_in_list", "row_in_list", "text_of_field", "stored_rows", "aggregate", "by_key",
        "exact_sum", "exact_value",
    }  # fmt: skip
    assert {name for name, text in SQL.items() if ":home" not in text} == about_all | parts


def test_no_table_has_a_trigger_a_sequence_or_an_extension(database: PostgresDatabase):
    with connect(postgres.database_url()) as connection:
        for sql in (
            "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal",
            "SELECT count(*) FROM pg_class WHERE relkind = 'S'",
            "SELECT count(*) FROM pg_extension WHERE extname <> 'plpgsql'",
        ):
            assert connection.execute(sql).fetchone() == (0,)
