"""Plants one bug at a time in a copy of the tree and asks whether the tests of its acceptance rows see it.

A row of tests/requirements.py is only as strong as the tests that are marked with it. For each row
`planted_bugs` has a small mistake that breaks the promise; with it at least one of the row's own tests
has to fail. Faults and attacks have no rows: a mistake that they would bring out names its test itself. The copy has a virtual environment that imports the copy, so that the programs which tests
start run the planted code too.
"""

from __future__ import annotations

import contextlib
import shutil
import site
import subprocess
import sys
import venv
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.requirements import marked_tests

ROOT = Path(__file__).parents[2]
#: Made by commands, and not read by any test of a row.
_LEFT_OUT = (".git", ".venv", ".cache", ".*_cache", ".hypothesis", ".run", "__pycache__", "node_modules")
#: A failure of this kind is a slip in the table, not a test that saw the bug.
_SLIPS = ("ImportError", "ModuleNotFoundError", "NameError", "SyntaxError")
LIMIT_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Bug:
    """One text of one file, which stands there once, and the mistake to write in its place."""

    #: The rows whose tests have to see it, or a test.
    rows: str
    what: str
    file: str
    old: str
    new: str

    @property
    def name(self) -> str:
        """The rows and the mistake, as a test id."""
        return f"{self.rows}: {self.what}"


def row_tests(tree: Path) -> dict[str, list[str]]:
    """Find the tests of each row, as pytest names them."""
    found: dict[str, list[str]] = {}
    for file in sorted((tree / "tests").rglob("test_*.py")):
        place = file.relative_to(tree).as_posix()
        for row, tests in marked_tests([file]).items():
            found.setdefault(row, []).extend(f"{place}::{test.split('::')[1]}" for test in tests)
    return found


def seen_by(name: str, tests: Mapping[str, list[str]]) -> list[str]:
    """Give the tests of a row; a test that is named itself is the only one."""
    return [name] if "::" in name else tests[name]


def copy_tree(to: Path) -> Path:
    """Copy the tree, with an environment whose `headgate` is the copy and whose libraries are ours."""
    shutil.copytree(ROOT, to, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=True)
    venv.create(to / ".venv", symlinks=True)
    (libraries,) = (to / ".venv" / "lib").glob("python*/site-packages")
    ours = next(place for place in site.getsitepackages() if "site-packages" in place)
    # Paths and no code: type checkers read them too. What our own environment adds, this tree, is left out.
    (libraries / "copy.pth").write_text(f"{to / 'src'}\n{ours}\n", encoding="utf-8")
    for script in Path(sys.executable).parent.iterdir():
        _copy_script(script, to / ".venv" / "bin")
    return to


def _copy_script(script: Path, to: Path) -> None:
    """Copy what starts our Python, so that it starts the one of the copy; link other programs."""
    copied = to / script.name
    if copied.exists() or not script.is_file():
        return
    first, _, rest = script.read_bytes().partition(b"\n")
    if first.startswith(f"#!{script.parent}/python".encode()):
        copied.write_bytes(f"#!{to / 'python'}\n".encode() + rest)
        copied.chmod(0o755)
    else:
        copied.symlink_to(script)


@contextlib.contextmanager
def planted(bug: Bug, tree: Path) -> Iterator[None]:
    """Write the mistake into the tree, and afterwards what stood there."""
    file = tree / bug.file
    right = file.read_text(encoding="utf-8")
    file.write_text(with_bug(bug, right), encoding="utf-8")
    _forget_compiled(file)
    try:
        yield
    finally:
        file.write_text(right, encoding="utf-8")
        _forget_compiled(file)


def with_bug(bug: Bug, right: str) -> str:
    """Give the content of the file with the mistake in it."""
    times = right.count(bug.old)
    assert times == 1, f"{bug.name}: the text to replace stands {times} times in {bug.file}: {bug.old!r}"
    return right.replace(bug.old, bug.new)


def _forget_compiled(file: Path) -> None:
    # Python takes compiled code for current when size and second are the same, and runs are faster than that.
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()


@dataclass(frozen=True, slots=True)
class Outcome:
    """Which tests failed where they assert, and what pytest printed."""

    failed: frozenset[str]
    passed: bool
    output: str


def run_tests(tree: Path, tests: Iterable[str], *, limit_seconds: float = LIMIT_SECONDS) -> Outcome:
    """Run these tests in the copy."""
    report = tree / "report.xml"
    report.unlink(missing_ok=True)
    command = [
        *(tree / ".venv/bin/python", "-m", "pytest", "-q", "--tb=short", "-m", "not soak"),
        *("-p", "no:cacheprovider", "--hypothesis-seed=0", f"--junitxml={report}"),
        # The family in which tests may add figures to the report.
        *("-o", "junit_family=xunit1", *sorted(set(tests))),
    ]
    done = subprocess.run(
        command, cwd=tree, capture_output=True, text=True, check=False, timeout=limit_seconds
    )
    failed = frozenset(_failures(report)) if report.exists() else frozenset[str]()
    return Outcome(failed, done.returncode == 0, done.stdout + done.stderr)


def _failures(report: Path) -> Iterator[str]:
    for case in ET.parse(report).iter("testcase"):
        failure = case.find("failure")
        if failure is not None and not failure.get("message", "").startswith(_SLIPS):
            place = case.get("classname", "").replace(".", "/")
            yield f"{place}.py::{case.get('name', '').partition('[')[0]}"


def survivors(bug: Bug, tree: Path, tests: Mapping[str, list[str]]) -> tuple[list[str], str]:
    """Give the rows of the bug none of whose tests failed with it, and what pytest printed."""
    rows = bug.rows.split()
    with planted(bug, tree):
        outcome = run_tests(tree, [test for row in rows for test in seen_by(row, tests)])
    return [row for row in rows if outcome.failed.isdisjoint(seen_by(row, tests))], outcome.output
