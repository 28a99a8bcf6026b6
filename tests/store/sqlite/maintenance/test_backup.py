from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from headgate.errors import Conflict, IntegrityBroken, NotFound
from headgate.home import Home, open_home
from headgate.store.engines.commands import commands_of
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.maintenance.backup import restore, verify
from tests.hostile.store.scene import damages, filled, line, read, with_store


def quiet(_done: int, _total: int) -> None:
    """Show no progress."""


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.fixture
def made(tmp_path: Path) -> tuple[Home, Path]:
    """A home and a backup of it."""
    home, _ = filled(tmp_path, [line(f"k{n}", size=n) for n in range(100)])

    async def work(store: SqliteStore) -> None:
        await store.put_blob(_pieces(b"a file"), "text/plain")

    with_store(home, work)
    commands_of(home).back_up(tmp_path / "copy", quiet)
    return home, tmp_path / "copy"


def test_a_backup_is_private_and_lists_what_it_holds(made: tuple[Home, Path]):
    _, copy = made
    manifest = json.loads((copy / "manifest.json").read_bytes())
    assert manifest["record_count"] == 100
    assert {"records.db"} < manifest["files"].keys()
    assert copy.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in copy.rglob("*") if path.is_file()} == {0o600}


def test_a_restored_backup_serves_the_same_records(made: tuple[Home, Path], tmp_path: Path):
    home, copy = made
    other = open_home(tmp_path / "other")
    assert restore(copy, other, quiet, end_at=None).record_count == 100
    assert damages(other) == []

    async def all_of(store: SqliteStore) -> list[bytes]:
        (connection,) = await store.connections()
        return [(await read(store, connection.id, f"k{n}"))[0].body for n in range(100)]

    assert with_store(other, all_of) == with_store(home, all_of)
    assert [path.name for path in other.path.rglob("*") if "restored" in path.name] == []


def test_verifying_changes_nothing(made: tuple[Home, Path]):
    _, copy = made
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    assert verify(copy, quiet).record_count == 100
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before


@pytest.mark.parametrize("name", ["records.db", "records.db-wal", "records.db-journal"])
def test_a_home_that_holds_any_file_of_a_store_is_not_changed(
    made: tuple[Home, Path], tmp_path: Path, name: str
):
    _, copy = made
    other = open_home(tmp_path / "other")
    (other.path / name).write_bytes(b"mine")
    with pytest.raises(Conflict):
        restore(copy, other, quiet, end_at=None)
    assert (other.path / name).read_bytes() == b"mine"


def test_every_kind_of_damage_to_a_backup_is_found(made: tuple[Home, Path], tmp_path: Path):
    _, copy = made
    (blob,) = [path for path in (copy / "blobs").rglob("*") if path.is_file()]
    for name in ("records.db", "manifest.json", str(blob.relative_to(copy))):
        for harm in (_flip, _cut, Path.unlink):
            broken = tmp_path / "broken"
            shutil.copytree(copy, broken)
            harm(broken / name)
            with pytest.raises((IntegrityBroken, NotFound)):
                verify(broken, quiet)
            with pytest.raises((IntegrityBroken, NotFound)):
                restore(broken, open_home(tmp_path / "other"), quiet, end_at=None)
            assert not (tmp_path / "other" / "records.db").exists()
            shutil.rmtree(broken)


def test_a_file_too_many_is_found(made: tuple[Home, Path]):
    _, copy = made
    (copy / "records.db-journal").write_bytes(b"\0" * 512)
    with pytest.raises(IntegrityBroken):
        verify(copy, quiet)


def test_a_backup_does_not_replace_what_exists(made: tuple[Home, Path]):
    home, copy = made
    with pytest.raises(Conflict):
        commands_of(home).back_up(copy, quiet)
    verify(copy, quiet)


def test_a_backup_that_is_stopped_leaves_nothing(made: tuple[Home, Path], tmp_path: Path):
    home, _ = made

    def stop(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commands_of(home).back_up(tmp_path / "stopped", stop)
    assert [path.name for path in tmp_path.iterdir() if "stopped" in path.name] == []
    assert damages(home) == []


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])
