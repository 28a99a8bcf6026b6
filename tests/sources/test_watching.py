"""Watching a directory: an entry is given once it has stopped changing, and again when it changes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from headgate.errors import InvalidRequest
from headgate.sources.inputs.disk import settled_entries


def given(directory: Path, *steps: Callable[[], object]) -> list[str]:
    """Change the directory between the looks, one step at each, and then look three times more."""
    waits = itertools.chain(steps, [lambda: None] * 3)

    def wait() -> None:
        step = next(waits, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    found: list[str] = []
    with suppress(KeyboardInterrupt):
        for path in settled_entries(directory, wait):
            found.append(path.name)  # noqa: PERF401 - what came before the end counts
    return found


def test_what_is_there_is_given_once_and_what_arrives_too(tmp_path: Path):
    (tmp_path / "a.csv").write_text("a")
    assert given(tmp_path, lambda: None, lambda: (tmp_path / "b.csv").write_text("b")) == ["a.csv", "b.csv"]


def test_a_file_that_grows_is_given_when_it_has_stopped(tmp_path: Path):
    path = tmp_path / "a.csv"
    sizes: list[int] = []

    def grow() -> None:
        sizes.append(path.stat().st_size)
        path.write_bytes(b"x" * (len(sizes) + 1))

    path.write_bytes(b"")
    assert given(tmp_path, grow, grow, grow) == ["a.csv"]
    assert path.stat().st_size == 4


def test_a_file_that_changed_is_given_again_also_if_its_size_is_the_same(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("a")
    assert given(tmp_path, lambda: None, lambda: os.utime(path, (1, 1))) == ["a.csv", "a.csv"]


def test_a_file_that_left_and_came_back_is_given_again(tmp_path: Path):
    path = tmp_path / "a.csv"
    path.write_text("a")
    first = path.stat()

    def back() -> None:
        path.write_text("a")
        os.utime(path, ns=(first.st_atime_ns, first.st_mtime_ns))

    assert given(tmp_path, lambda: None, path.unlink, back) == ["a.csv", "a.csv"]


def test_a_directory_is_one_entry_that_settles_as_a_whole(tmp_path: Path):
    inner = tmp_path / "export" / "inner"
    inner.mkdir(parents=True)
    (inner / "one.md").write_text("1")
    assert given(tmp_path, lambda: (inner / "two.md").write_text("2")) == ["export"]


def test_hidden_files_links_and_unfinished_downloads_are_left_out(tmp_path: Path):
    for name in (".a.csv", "a.csv.part", "b.crdownload"):
        (tmp_path / name).write_text("a")
    (tmp_path / "link.csv").symlink_to("/etc/hosts")
    assert given(tmp_path) == []


def test_a_directory_that_cannot_be_read_is_refused(tmp_path: Path):
    with pytest.raises(InvalidRequest):
        next(settled_entries(tmp_path / "none", lambda: None))
