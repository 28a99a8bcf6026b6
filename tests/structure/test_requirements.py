from __future__ import annotations

import dataclasses
from pathlib import Path

from tests.requirements import marked_tests, problems, read_rows

TESTS = Path(__file__).parents[1]


def test_every_row_is_in_the_table_and_every_done_row_has_a_test():
    assert problems(read_rows(), marked_tests(TESTS.rglob("test_*.py"))) == []


def test_a_planted_done_row_without_a_test_is_found():
    rows = read_rows()
    rows["S1-01"] = dataclasses.replace(rows["S1-01"], state="done")
    assert problems(rows, {}) == [
        f"{row} is done but has no test" for row in sorted(rows) if rows[row].state == "done"
    ]
    assert "S1-01 is done but has no test" in problems(rows, {})


def test_a_planted_row_left_out_is_found():
    rows = read_rows()
    del rows["S0-B3"]
    assert "S0-B3 is left out of the table" in problems(rows, marked_tests(TESTS.rglob("test_*.py")))


def test_a_planted_mark_that_names_no_row_is_found(tmp_path: Path):
    planted = tmp_path / "test_planted.py"
    planted.write_text(
        'import pytest\n\n@pytest.mark.requirement("S9-99")\nasync def test_it():\n    assert True\n',
        encoding="utf-8",
    )
    assert problems(read_rows(), marked_tests([planted]))[0].startswith("S9-99 is named by")


def test_every_proof_names_what_is_observed():
    assert [row.id for row in read_rows().values() if "test exists" in row.proof] == []


def test_no_test_expects_to_fail_and_none_is_skipped_without_a_condition():
    for file in TESTS.rglob("test_*.py"):
        source = file.read_text(encoding="utf-8")
        assert "mark." + "xfail" not in source, file
        assert "mark." + "skip(" not in source, file
