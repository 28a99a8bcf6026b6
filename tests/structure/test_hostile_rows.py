from __future__ import annotations

from pathlib import Path

from tests.hostile.rows import rows
from tests.requirements import marked_tests

TESTS = Path(__file__).parents[1]


def problems(known: dict[str, str], files: list[Path]) -> list[str]:
    tests = marked_tests(files, "hostile")
    return [
        *(f"case {row} has no test: {known[row]}" for row in known if row not in tests),
        *(f"case {row} of {tests[row]} is no case" for row in tests if row not in known),
    ]


def test_every_hostile_case_has_a_test():
    assert problems(rows(), list(TESTS.rglob("test_*.py"))) == []


def test_a_planted_case_without_a_test_and_a_mark_without_a_case_are_found(tmp_path: Path):
    planted = tmp_path / "test_planted.py"
    planted.write_text(
        'import pytest\n\n@pytest.mark.hostile("99")\ndef test_it():\n    assert True\n', encoding="utf-8"
    )
    assert problems({"1": "x"}, [planted]) == [
        "case 1 has no test: x",
        "case 99 of ['test_planted.py::test_it'] is no case",
    ]


def test_no_hostile_case_is_left_out():
    numbered = [*range(1, 67), *range(84, 89)]
    assert rows().keys() == {*map(str, numbered), *(f"T{number}" for number in range(1, 21))}
