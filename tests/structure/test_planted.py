from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.requirements import expected_ids
from tests.structure.planted import ROOT, Bug, copy_tree, row_tests, run_tests, seen_by, survivors, with_bug
from tests.structure.planted_bugs import BUGS, WITHOUT_BUG

#: Found when they are needed: every test file is read for it.
known_tests = functools.cache(lambda: row_tests(ROOT))


def names(bugs: tuple[Bug, ...]) -> list[str]:
    return [row for bug in bugs for row in bug.rows.split()]


def exists(test: str) -> bool:
    file, name = test.split("::")
    defined = ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    return any(
        isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name == name for one in defined
    )


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_can_still_be_planted(bug: Bug):
    planted = with_bug(bug, (ROOT / bug.file).read_text(encoding="utf-8"))
    assert bug.old != bug.new
    if bug.file.endswith(".py"):
        ast.parse(planted)


def test_every_row_has_a_planted_bug_or_is_listed_as_without():
    expected, planted = set(expected_ids()), {name for name in names(BUGS) if "::" not in name}
    assert planted | WITHOUT_BUG == expected
    assert planted.isdisjoint(WITHOUT_BUG)


def test_every_test_that_a_planted_bug_names_is_there():
    assert [name for name in names(BUGS) if "::" in name and not exists(name)] == []


@pytest.fixture(scope="module")
def copied(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the tree in which every test of the rows that are planted in this run passes."""
    tree = copy_tree(tmp_path_factory.mktemp("planted") / "tree")
    calls = (
        item.callspec
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    )
    chosen = tuple(call.params["bug"] for call in calls if "bug" in call.params)
    every = {test for name in names(chosen) for test in seen_by(name, known_tests())}
    outcome = run_tests(tree, every, limit_seconds=3600)
    assert outcome.passed, outcome.output[-4000:]
    return tree


@pytest.mark.soak
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_seen_by_a_row_fail_with_its_planted_bug(bug: Bug, copied: Path):
    left, output = survivors(bug, copied, known_tests())
    assert left == [], output[-4000:]


@pytest.mark.soak
def test_a_bug_that_no_test_of_the_row_sees_is_found(copied: Path):
    harmless = Bug("S1-03", "only a comment", "src/headgate/model/ids.py", "#: The form", "#: The plain form")
    assert survivors(harmless, copied, known_tests())[0] == ["S1-03"]
