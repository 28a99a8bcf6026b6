from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    command = Path(sys.executable).parent / "lint-imports"
    return subprocess.run(
        [command, "--no-cache", "--config", tree / "pyproject.toml"],
        cwd=tree / "src",
        env={"PYTHONPATH": str(tree / "src"), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "src", tmp_path / "src")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_walls_of_the_house_stand(tree: Path):
    outcome = lint(tree)
    assert outcome.returncode == 0, outcome.stdout


@pytest.mark.parametrize(
    ("room", "forbidden"),
    [
        ("model/ids.py", "headgate.store"),
        ("policy/__init__.py", "headgate.schema"),
        ("policy/__init__.py", "headgate.text"),
        ("operations/__init__.py", "mcp"),
        ("operations/__init__.py", "headgate.reading"),
        ("reading/__init__.py", "headgate.operations"),
        ("reading/__init__.py", "headgate.web"),
        ("mcp/__init__.py", "headgate.store"),
        ("web/app.py", "headgate.policy"),
        ("wiring.py", "apsw"),
        ("text/__init__.py", "pathlib"),
    ],
)
def test_a_planted_import_through_a_wall_is_found(tree: Path, room: str, forbidden: str):
    planted = tree / "src" / "headgate" / room
    planted.write_text(planted.read_text(encoding="utf-8") + f"\nimport {forbidden}\n", encoding="utf-8")
    outcome = lint(tree)
    assert outcome.returncode == 1, outcome.stdout
    assert "BROKEN" in outcome.stdout


def test_a_room_that_no_contract_knows_is_found(tree: Path):
    (tree / "src" / "headgate" / "attic.py").write_text('"""Nobody knows."""\n', encoding="utf-8")
    assert lint(tree).returncode == 1
