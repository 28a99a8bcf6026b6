from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.errors import ConfigInvalid, StorageFull
from headgate.home import has_room, open_home, read_private, write_private


def test_a_home_is_made_for_its_owner_alone_whatever_the_umask(tmp_path: Path):
    before = os.umask(0)
    try:
        home = open_home(tmp_path / "deep" / "home")
        write_private(home.path / "file", b"x")
    finally:
        os.umask(before)
    assert home.path.stat().st_mode & 0o777 == 0o700
    assert home.keys.stat().st_mode & 0o777 == 0o700
    assert (home.path / "file").stat().st_mode & 0o777 == 0o600


def test_a_home_that_others_can_enter_is_refused(tmp_path: Path):
    (tmp_path / "home").mkdir(mode=0o755)
    with pytest.raises(ConfigInvalid) as refused:
        open_home(tmp_path / "home")
    assert refused.value.hint == f"Run: chmod 700 {tmp_path / 'home'}"


def test_a_file_in_the_place_of_a_home_is_refused(tmp_path: Path):
    (tmp_path / "home").write_text("x", encoding="utf-8")
    with pytest.raises(ConfigInvalid):
        open_home(tmp_path / "home")


def test_a_private_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "file"
    write_private(path, b"old")
    write_private(path, b"new")
    assert read_private(path) == b"new"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "file"
    write_private(path, b"old")

    def full_disk(_handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(StorageFull, match="space"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_missing_private_file_is_nothing(tmp_path: Path):
    assert read_private(tmp_path / "none") is None


IN_A_HOME = ["keys", "records.db", "records.db-wal", "journals", "blobs", "budgets", "audit-head.json"]


@pytest.mark.parametrize("name", IN_A_HOME)
def test_what_lies_in_a_home_is_for_its_owner_alone(tmp_path: Path, name: str):
    home = open_home(tmp_path / "home")
    path = home.path / name
    if name in {"keys", "journals", "blobs", "budgets"}:
        path.mkdir(exist_ok=True)
    else:
        path.write_bytes(b"")
    path.chmod(0o750)
    with pytest.raises(ConfigInvalid) as refused:
        open_home(home.path)
    assert refused.value.hint == f"Run: chmod 700 {path}"
    path.chmod(0o700)
    open_home(home.path)


@pytest.mark.parametrize("name", IN_A_HOME)
def test_a_link_in_a_home_is_refused(tmp_path: Path, name: str):
    home = open_home(tmp_path / "home")
    path = home.path / name
    if path.exists():
        path.rmdir()
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigInvalid, match="symbolic link"):
        open_home(home.path)


def test_a_home_has_reserves_that_take_up_disk_space(tmp_path: Path):
    home = open_home(tmp_path / "home")
    sizes = {name: (home.path / name).stat() for name in ("reserve", "reserve-revocation")}
    assert {name: (one.st_size, one.st_mode & 0o777) for name, one in sizes.items()} == {
        "reserve": (4 * 1024 * 1024, 0o600),
        "reserve-revocation": (256 * 1024, 0o600),
    }
    assert all(one.st_blocks * 512 >= one.st_size for one in sizes.values())


def test_reserves_are_made_again_when_there_is_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    home = open_home(tmp_path / "home")
    with monkeypatch.context() as patch:
        patch.setattr("headgate.home._free_bytes", lambda _directory: 0)
        open_home(home.path)
        assert not has_room(home.path)
        assert not (home.path / "reserve").exists()
    assert has_room(home.path)
    assert (home.path / "reserve").exists()


def test_a_reserve_that_was_cut_short_is_made_whole(tmp_path: Path):
    home = open_home(tmp_path / "home")
    (home.path / "reserve").write_bytes(b"")
    open_home(home.path)
    assert (home.path / "reserve").stat().st_size == 4 * 1024 * 1024


def test_a_home_whose_disk_is_gone_has_no_room(tmp_path: Path):
    assert not has_room(tmp_path / "gone")
