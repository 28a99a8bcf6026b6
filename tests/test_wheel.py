"""The package as it is built: the wheel installs alone and has every file that the program reads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.http_clients import ask_once
from tests.on_socket import headgate_alone, serving_alone
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
    import_and_serve(python, tmp_path, monkeypatch)


def import_and_serve(python: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Import a mailbox with the installed program, serve it, and open its pages."""
    monkeypatch.setattr("tests.on_socket.COMMAND", (str(python), "-m", "headgate"))
    imported = headgate_alone(
        place, "--home", "home", "import", "--yes", str(ROOT / "examples" / "letters.mbox")
    )
    assert (imported.code, imported.err) == (0, "")
    assert "messages: 4 new" in imported.out
    with serving_alone(place) as server:
        for path in ("/healthz", "/docs", "/console/sign-in", "/console/static/console.css"):
            assert ask_once(server.address, "GET", path).status == 200, path


def interpreter(version: str) -> str:
    """Find a Python of this version on the PATH, or among those of pyenv."""
    known = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for name in (f"python{version}", *map(str, known.glob(f"{version}.*/bin/python"))):
        found = shutil.which(name)
        # A name on the PATH may be a stub that chooses among versions, and has none.
        if found and subprocess.run([found, "--version"], capture_output=True, check=False).returncode == 0:
            return found
    return pytest.skip(f"needs Python {version}")


@pytest.mark.soak
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_installs_with_pip_and_runs(
    version: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Installs the locked packages from their registry into an empty environment of another Python."""
    subprocess.run([interpreter(version), "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    for what in (["--require-hashes", "--requirement", str(ROOT / "locks" / "serve.txt")], [str(wheel)]):
        command = [python, "-m", "pip", "install", "-qq", "--no-deps", *what]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    subprocess.run([python, "-m", "pip", "check"], check=True)
    import_and_serve(python, tmp_path, monkeypatch)
