from __future__ import annotations

import os
from pathlib import Path

import pytest

from headgate.errors import ConfigInvalid
from headgate.home import open_home, read_private, write_private


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
    with pytest.raises(OSError, match="space"):
        write_private(path, b"new")
    assert path.read_bytes() == b"old"
    assert [child.name for child in tmp_path.iterdir()] == ["file"]


def test_a_missing_private_file_is_nothing(tmp_path: Path):
    assert read_private(tmp_path / "none") is None
