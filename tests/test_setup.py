"""tools/setup, with a pip that only prints what pip prints: nothing is fetched here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.docs.terminal import Terminal, empty_machine

ROOT = Path(__file__).parents[1]
PIP = """#!/bin/sh
case " $* " in *" --editable "*) exit 0 ;; esac
case " $* " in *" -qq "*) exit {code} ;; esac
echo "Collecting one==1 (from -r locks/serve.txt (line 1))"
echo "Requirement already satisfied: two==2 in somewhere"
echo "Processing /wheels/three-3.whl (from -r locks/serve.txt (line 3))"
echo "Ignoring four: markers do not match your environment"
echo "Installing collected packages: one"
[ {code} = 0 ] || echo "ERROR: no such version" >&2
exit {code}
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "setup", tmp_path / "tools")
    (tmp_path / "locks").mkdir()
    (tmp_path / "locks" / "serve.txt").write_text(
        "one==1 \\\n    --hash=x\ntwo==2\nthree==3\nfour==4\n", encoding="utf-8"
    )
    with_pip(tmp_path, code=0)
    return tmp_path


def with_pip(tree: Path, *, code: int) -> None:
    pip = tree / ".venv" / "bin" / "pip"
    pip.parent.mkdir(parents=True, exist_ok=True)
    pip.write_text(PIP.format(code=code), encoding="utf-8")
    pip.chmod(0o755)


def on_terminal(tree: Path) -> tuple[int, str]:
    with Terminal(tree, empty_machine(tree)) as terminal:
        return terminal.run("tools/setup serve")


def test_on_a_terminal_it_shows_which_package_of_how_many(tree: Path):
    code, shown = on_terminal(tree)
    assert code == 0
    assert [
        piece for piece in ("package 1 of 4", "package 4 of 4", "writing 4 packages") if piece in shown
    ] == [*("package 1 of 4", "package 4 of 4", "writing 4 packages")]
    assert (tree / ".venv" / ".serve").exists()


def test_on_a_terminal_a_failure_shows_why_and_ends_it(tree: Path):
    with_pip(tree, code=1)
    code, shown = on_terminal(tree)
    assert code == 69
    assert "ERROR: no such version" in shown
    assert not (tree / ".venv" / ".serve").exists()


@pytest.mark.parametrize("code", [0, 1])
def test_elsewhere_it_prints_one_line_and_no_progress(tree: Path, code: int):
    with_pip(tree, code=code)
    done = subprocess.run(["tools/setup", "serve"], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr == "setup: installing the locked packages of locks/serve.txt\n"
    assert done.stdout == ""
