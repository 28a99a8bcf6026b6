from __future__ import annotations

import ast
from pathlib import Path

import apsw.ext
import pytest

from headgate.store.sqlite.database import open_writer
from headgate.store.sqlite.migrate import all_migrations, migrate
from headgate.store.sqlite.statements import SQL, read_statements

_SOURCE = Path(__file__).parents[3] / "src" / "headgate"


def _names_used(source: str) -> set[str]:
    return {
        node.slice.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == "SQL"
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }


def test_every_statement_that_is_used_is_defined_and_every_one_defined_is_used():
    used = {name for file in _SOURCE.rglob("*.py") for name in _names_used(file.read_text(encoding="utf-8"))}
    assert used == set(SQL)


def test_every_statement_fits_the_newest_schema(tmp_path: Path):
    database = open_writer(tmp_path / "records.db")
    migrate(database, all_migrations())
    for statement in SQL.values():
        assert apsw.ext.query_info(database.db, statement).query_remaining is None
    database.db.close()


def test_blocks_are_read_by_name():
    text = "-- name: one\n-- The number one.\nSELECT\n  1\n\n-- name: two\n-- The number two.\nSELECT 2\n"
    assert read_statements([text]) == {"one": "SELECT\n  1", "two": "SELECT 2"}


@pytest.mark.parametrize(
    "text",
    [
        "-- name: one\n-- The number one.\nSELECT 1\n-- name: one\n-- Again.\nSELECT 1\n",
        "-- name: one\nSELECT 1\n",
        "-- name: one\n-- The number one.\n",
    ],
)
def test_a_name_that_stands_twice_or_says_nothing_is_refused(text: str):
    with pytest.raises(ValueError, match=r"twice|no description"):
        read_statements([text])
