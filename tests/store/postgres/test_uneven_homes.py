"""A large home, or a large stream, among many small ones: what is asked for by number or key is found by it.

Plans are made once, from what the server counted over all homes. One that reads every row of a home, because most homes
have few, would read a large home whole for a few of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headgate.store.postgres.database import connect
from headgate.store.postgres.dialect import SQL, numbered
from headgate.store.postgres.migrate import open_place
from tests import postgres

pytestmark = pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed")
_SMALL_HOMES = 150
_RECORDS = """
INSERT INTO record SELECT n, r, 1, sha256(int8send(r)), r::text, r, r, NULL, 0, 0, false, NULL, NULL, '\\x00',
  repeat('x', 200)::bytea FROM generate_series(1, %(homes)s) n, generate_series(1, 40) r"""
_SEGMENTS = """
INSERT INTO word_segment SELECT n, r, r, 1, 1, 1, 1, NULL, NULL, '', '', '', '', ''
  FROM generate_series(1, %(homes)s) n, generate_series(1, 30) r"""
_BLOCKS = """
INSERT INTO vector_block SELECT n, r, r, 1, 1, 1, '', '', '', '', ''
  FROM generate_series(1, %(homes)s) n, generate_series(1, 30) r"""
_LEAVES = """
INSERT INTO word_leaf SELECT n, r, repeat('word', 100)::bytea, 0, '\\x00', '\\x00'
  FROM generate_series(1, %(homes)s) n, generate_series(1, 300) r"""
#: Statements that name rows, with the types of their values, and the column that must be looked up by.
_NAMED = {
    "leaf_words": ("text, bytea", "lid"),
    "leaf_occurrences": ("text", "lid"),
    "passing_rows": ("text", "rid"),
    "born_until": ("text, bigint", "rid"),
    "keys_by_number": ("text", "rid"),
    "records_to_move": ("text", "rid"),
    "stored_records": ("int, text", "key"),
    "numbers_by_key": ("int, text", "key"),
    "visible_segments": ("text", "sid"),
    "visible_vector_blocks": ("text", "sid"),
}


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    """A database with many small homes, whose rows the server has counted."""
    with psycopg.connect(postgres.server().url, autocommit=True) as first:
        first.execute("CREATE DATABASE uneven")
    url = postgres.server().url_of("uneven")
    open_place(url, "main")
    made = connect(url)
    for statement in (_RECORDS, _SEGMENTS, _BLOCKS, _LEAVES, "ANALYZE"):
        made.execute(statement % {"homes": _SMALL_HOMES} if "%" in statement else statement)
    yield made
    made.close()


@pytest.mark.parametrize("name", _NAMED)
def test_rows_that_a_statement_names_are_looked_up_one_by_one(connection: Any, name: str):
    types, column = _NAMED[name]
    connection.execute(
        f"PREPARE asked(int, {types}) AS {numbered(SQL[name].format(join='', where='', select=''))}"
    )
    values = ", ".join("'1'" if kind != "text" else "'[1, 2]'" for kind in types.split(", "))
    try:
        rows = connection.execute(f"EXPLAIN EXECUTE asked(1, {values})").fetchall()
    finally:
        connection.execute("DEALLOCATE asked")
    plan = "\n".join(line for (line,) in rows)
    assert re.search(rf"Index Cond: .*\b{column} = ", plan), plan
