"""A table that other people wrote, in every format: the same rows, and sums equal to those of another library."""

from __future__ import annotations

import csv
import importlib.util
import json
from pathlib import Path

import apsw
import openpyxl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import parquet

from headgate.sources.inputs.disk import tree_of
from headgate.sources.tables.source import TABLES
from tests.sources.source_checks import by_stream

#: Diamonds, from the tests of the library.
DIAMONDS = Path(importlib.util.find_spec("pyarrow").origin).parent / "tests/data/parquet/v0.7.1.parquet"


def as_parquet(table: pa.Table, path: Path) -> None:
    parquet.write_table(table, path)


def as_csv(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(table.column_names)
        writer.writerows([list(row.values()) for row in table.to_pylist()])


def as_lines(table: pa.Table, path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()), encoding="utf-8")


def as_array(table: pa.Table, path: Path) -> None:
    path.write_text(json.dumps(table.to_pylist(), indent=1), encoding="utf-8")


def as_workbook(table: pa.Table, path: Path) -> None:
    book = openpyxl.Workbook()
    book.active.append(table.column_names)
    for row in table.to_pylist():
        book.active.append(list(row.values()))
    book.save(path)


def as_database(table: pa.Table, path: Path) -> None:
    database = apsw.Connection(str(path))
    names = ", ".join(f'"{name}"' for name in table.column_names)
    database.execute(f"CREATE TABLE diamonds({names})")
    marks = ", ".join("?" * len(table.column_names))
    database.executemany(
        f"INSERT INTO diamonds VALUES({marks})", [tuple(row.values()) for row in table.to_pylist()]
    )
    database.close()


FORMATS = {
    "d.parquet": as_parquet,
    "d.csv": as_csv,
    "d.jsonl": as_lines,
    "d.json": as_array,
    "d.xlsx": as_workbook,
    "d.db": as_database,
}


@pytest.mark.parametrize("name", FORMATS)
def test_counts_sums_and_values_are_those_of_the_library(tmp_path: Path, name: str):
    table = parquet.read_table(DIAMONDS)
    FORMATS[name](table, tmp_path / name)
    (found,) = TABLES.detect(tree_of(tmp_path / name))
    (rows,) = by_stream(TABLES.read(found, {})).values()
    assert len(rows) == table.num_rows == 10
    for column in ("carat", "depth", "price", "x"):
        assert sum(row[column] for row in rows) == pytest.approx(pc.sum(table[column]).as_py(), abs=1e-9)
    assert sorted(row["cut"] for row in rows) == sorted(table["cut"].to_pylist())
    (stream,) = TABLES.declare(found)["streams"]
    assert stream["schema"]["properties"]["price"]["type"] == ["integer", "null"]
    assert "cut" in stream["query"]["aggregations"]["group_by"]
