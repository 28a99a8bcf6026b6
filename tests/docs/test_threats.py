"""The page of threats: each line of it names a test that is there, and that has to find a planted mistake."""

from __future__ import annotations

import re
from pathlib import Path

from tests.structure.planted_bugs import BUGS

ROOT = Path(__file__).parents[2]
_NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def test_each_line_of_the_page_of_threats_names_a_test_that_finds_a_planted_mistake():
    text = (ROOT / "docs/explanation/threats.md").read_text(encoding="utf-8")
    rows = [
        row for row in text.splitlines() if row.startswith("| ") and not row.startswith("| what is tried")
    ]
    planted = {test for bug in BUGS for test in bug.rows.split()}
    assert len(rows) > 20
    for row in rows:
        named = _NAMED.findall(row)
        assert len(named) == 1, row
        ((file, name),) = named
        assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), row
        assert f"{file}::{name}" in planted, row
