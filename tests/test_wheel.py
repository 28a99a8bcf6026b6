"""The package as it is built: the wheel installs alone and has every file that the program reads."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.http_clients import ask_once
from tests.on_socket import WAIT_SECONDS, environment, serving
from tests.test_extras import PROJECT, ROOT, make_environment

SOURCE = ROOT / "src"


def built(tree: Path, target: Path, kind: str) -> Path:
    """Build the package of a tree with the locked build tool, which needs nothing else."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(target)]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (made,) = target.iterdir()
    return made


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"), "wheel")


def names_of(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path):
    files = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*") if path.is_file()}
    assert names_of(wheel) == {name for name in files if "__pycache__" not in name}


def test_a_wheel_from_the_source_archive_is_the_same(wheel: Path, tmp_path: Path):
    archive = built(ROOT, tmp_path / "sdist", "sdist")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    (tree,) = (path for path in tmp_path.iterdir() if path.name.startswith("headgate-"))
    assert names_of(built(tree, tmp_path / "wheel", "wheel")) == names_of(wheel)


def test_the_program_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    extras = PROJECT["optional-dependencies"]
    python = make_environment(
        tmp_path / "venv",
        [
            *PROJECT["dependencies"],
            *extras["mcp"],
            *extras["sources"],
            *(one for one in extras["serve"] if "headgate" not in one),
        ],
    )
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "headgate.pth").unlink()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    monkeypatch.setattr("tests.on_socket.COMMAND", (str(python), "-m", "headgate"))
    imported = subprocess.run(
        [
            python,
            "-m",
            "headgate",
            "--home",
            "home",
            "import",
            "--yes",
            str(ROOT / "examples" / "letters.mbox"),
        ],
        cwd=tmp_path,
        env=environment(tmp_path, {}),
        capture_output=True,
        text=True,
        check=False,
        timeout=WAIT_SECONDS,
    )
    assert (imported.returncode, imported.stderr) == (0, "")
    assert "messages: 4 new" in imported.stdout
    with serving(tmp_path) as server:
        for path in ("/healthz", "/docs", "/console/sign-in", "/console/static/console.css"):
            assert ask_once(server.address, "GET", path).status == 200, path
