from __future__ import annotations

import ast
from pathlib import Path

import apsw.ext
import pytest

from headgate.store.sql.statements import read_statements
from headgate.store.sqlite.database import SQL, open_writer
from headgate.store.sqlite.migrate import all_migrations, migrate

_SOURCE = Path(__file__).parents[3] / "src" / "headgate"


#: What statements that depend on a plan are filled with here, to see whether they fit.
_PARTS = {
    "columns": "r.rid",
    "sids": "1",
    "shelves": "= 1",
    "where": "",
    "join": "",
    "start": "",
    "direction": "ASC",
    "beyond": ">",
    "table": "record",
    "condition": "",
    "order": "r.rid",
    "marks": "?",
    "gone": "",
    "most": "1",
    "names": "rid",
    "key": "rid",
    "last": "rid DESC",
    "select": "",
    "target": "seq",
    "value": "1",
    "held": "1",
    "finest": "1",
    "index": "record_key",
    "conditions": "",
    "column": "c1",
    "type": "TEXT",
}
#: Not statements, but parts of some; and those whose table is made before.
_NO_STATEMENTS = {
    "aggregate", "by_key", "exact_sum", "exact_value", "is_unreadable", "page_of_filtered", "records_of_shelves",
    "records_of_typed", "typed_of_shelves", "start_by_key", "start_by_sort", "typed_join", "key_in_list", "row_in_list", "text_of_field", "one_mark", "is_live",
    "rows_of_range", "row_of_number", "is_in_order", "children", "add_typed_column", "index_typed_column", "make_typed_table",
    "put_typed_row",
}  # fmt: skip


def _names_used(source: str) -> set[str]:
    """Find the names by which statements are looked up, and the names of statements that code hands on."""
    nodes = list(ast.walk(ast.parse(source)))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return texts & set(SQL)


def _looked_up(source: str) -> set[str]:
    return {
        node.slice.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Subscript)
        and (isinstance(node.value, ast.Attribute) and node.value.attr == "sql")
        and isinstance(node.slice, ast.Constant)
        and isinstance(node.slice.value, str)
    }


def test_every_statement_that_is_used_is_defined_and_every_one_defined_is_used():
    sources = [file.read_text(encoding="utf-8") for file in (_SOURCE / "store").rglob("*.py")]
    assert {name for source in sources for name in _looked_up(source)} <= set(SQL)
    assert {name for source in sources for name in _names_used(source)} == set(SQL)


def test_every_statement_fits_the_newest_schema(tmp_path: Path):
    database = open_writer(tmp_path / "records.db")
    migrate(database, all_migrations())
    for name in SQL.keys() - _NO_STATEMENTS:
        statement = SQL[name].format(**_PARTS) if "{" in SQL[name] else SQL[name]
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
