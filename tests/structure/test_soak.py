from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.soak import soak_files

ROOT = Path(__file__).parents[2]
LONG = """
import pytest

pytestmark = pytest.mark.soak


def test_long(record_property):
    record_property("figure", "load  {figure}")
    assert {is_good}


@pytest.mark.skip
def test_not_here():
    raise AssertionError
"""


def soak(*words: str) -> tuple[int, str]:
    command = [sys.executable, str(ROOT / "tools/soak.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.partition("== Summary\n")[2]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    found = {
        "test_good.py": LONG.format(figure="7 ms", is_good=True),
        "test_bad.py": LONG.format(figure="9 ms", is_good=False),
        "test_endless.py": "import threading\nthreading.Event().wait()\n",
    }
    for name, text in found.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return {name: str(tmp_path / name) for name in found}


def test_the_figures_of_each_file_are_shown_below_it_and_a_failure_ends_nothing(files: dict[str, str]):
    code, shown = soak(files["test_bad.py"], files["test_good.py"])
    bad, bad_figure, good, good_figure = shown.splitlines()
    assert code == 1
    assert (bad_figure, good_figure) == ("    load  9 ms", "    load  7 ms")
    assert bad.startswith(f"{files['test_bad.py']}: failed")
    assert bad.endswith("(2 tests, 1 failures, 1 skipped)")
    assert good.startswith(f"{files['test_good.py']}: passed")


def test_all_of_them_are_the_files_that_use_the_mark(files: dict[str, str], tmp_path: Path):
    (tmp_path / "test_of_text.py").write_text(f"TEXT = {LONG!r}", encoding="utf-8")
    assert {str(file) for file in soak_files(tmp_path)} == {files["test_good.py"], files["test_bad.py"]}
    assert Path(__file__) not in soak_files(ROOT / "tests" / "structure")


def test_files_that_all_pass_end_well(files: dict[str, str]):
    assert soak(files["test_good.py"])[0] == 0


def test_a_file_that_does_not_end_is_stopped_with_what_it_started(files: dict[str, str]):
    code, shown = soak("--limit-seconds", "0.5", files["test_endless.py"])
    assert code == 1
    assert shown.startswith(f"{files['test_endless.py']}: did not end in time")
