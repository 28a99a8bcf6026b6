"""The progress of an upload can be read while it arrives and while it is imported, and its end afterwards."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from time import time, time_ns
from typing import Any

import pytest

from headgate.errors import InvalidRequest, NotFound, StorageFull
from headgate.home import Home
from headgate.sources import import_files, uploads
from headgate.sources.import_files import UploadDirectory
from headgate.sources.intake import Upload
from headgate.sources.pending import PendingUploads
from tests.on_socket import served_program
from tests.store.engines import NOW, Driven

CARD = b"BEGIN:VCARD\nVERSION:3.0\nUID:u\nFN:Ada\nEND:VCARD\n"
ID = "imp_12345678"


@pytest.fixture
def store(tmp_path: Path):
    driven = Driven("sqlite", tmp_path)
    yield driven
    driven.close()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch) -> UploadDirectory:
    monkeypatch.setattr(uploads, "_NOTE_SECONDS", -1.0)
    return UploadDirectory(tmp_path / "imports")


def given(store: Driven, directory: UploadDirectory, pieces: Any, upload: Upload) -> Any:
    return store.run(uploads.import_upload(store.bare, directory, upload, pieces, clock=lambda: NOW))


def test_what_has_arrived_is_seen_before_the_end_and_nothing_of_the_file_stays(
    store: Driven, directory: UploadDirectory, tmp_path: Path
):
    seen: list[tuple[str, int]] = []

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (CARD[:10], CARD[10:]):
            yield piece
            found = directory.get(ID)
            seen.append((found["status"], found["received_bytes"]))

    done = given(store, directory, pieces(), Upload("a.vcf", import_id=ID))
    assert (done["import_id"], done["imports"][0]["streams"]["contacts"]["added"]) == (ID, 1)
    assert seen == [("receiving", 10), ("receiving", len(CARD))]
    assert [path.name for path in (tmp_path / "imports").iterdir()] == [f"{ID}.json"]
    assert stat.S_IMODE((tmp_path / "imports").stat().st_mode) == 0o700


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.mark.parametrize(("upload", "status"), [("a.vcf", "previewed"), ("a.xyz", "failed")])
def test_a_preview_and_a_failure_are_noted(
    store: Driven, directory: UploadDirectory, upload: str, status: str
):
    one = Upload(upload, is_dry_run=True, import_id=ID)
    if status == "failed":
        with pytest.raises(InvalidRequest):
            given(store, directory, _once(CARD[:5]), one)
    else:
        given(store, directory, _once(CARD), one)
    found = directory.get(ID)
    assert (found["status"], found["error"] is None) == (status, status != "failed")


def test_an_import_whose_caller_goes_away_is_noted_as_interrupted(store: Driven, directory: UploadDirectory):
    async def cut() -> AsyncIterator[bytes]:
        yield CARD
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        given(store, directory, cut(), Upload("a.vcf", import_id=ID))
    assert directory.get(ID)["status"] == "interrupted"


def test_a_file_that_would_fill_the_disk_is_refused_while_it_arrives(
    store: Driven, directory: UploadDirectory, monkeypatch
):
    monkeypatch.setattr(uploads, "_LOOK_BYTES", 1)
    monkeypatch.setattr(import_files, "has_room", lambda _path: False)
    with pytest.raises(StorageFull):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=ID))


def test_what_is_older_than_a_day_is_forgotten(store: Driven, directory: UploadDirectory, tmp_path: Path):
    for one in (ID, "another_one"):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=one))
    os.utime(tmp_path / "imports" / f"{ID}.json", (1, 1))
    directory.clean(time_ns() // 1000)
    with pytest.raises(NotFound):
        directory.get(ID)
    assert directory.get("another_one")["status"] == "done"


def test_an_upload_that_is_being_received_is_not_removed(directory: UploadDirectory):
    with directory.receiving() as place:
        (place / "a.vcf").write_bytes(CARD)
        directory.clean(time_ns() // 1000)
        assert (place / "a.vcf").read_bytes() == CARD
    assert not place.exists()


def test_an_entry_that_another_process_removes_meanwhile_fails_nothing(tmp_path: Path, monkeypatch):
    """The removal falls between the listing and the look at the entry."""
    directory, pending = UploadDirectory(tmp_path / "imports"), PendingUploads(Home(tmp_path), lambda: NOW)
    for name in ("imports", "uploads"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "gone.json").write_bytes(b"")
    listed = Path.glob

    def removing(self: Path, pattern: str) -> Iterator[Path]:
        found = list(listed(self, pattern))
        for path in found:
            path.unlink()
        return iter(found)

    monkeypatch.setattr(Path, "glob", removing)
    directory.clean(NOW)
    pending.clean()


def test_a_server_removes_what_was_not_imported_and_what_was_killed_when_it_starts(tmp_path: Path):
    home = tmp_path / "home"
    with served_program(tmp_path) as program:
        assert program.ask("GET", "/healthz").status == 200
    killed = home / "imports" / "upload-0123456789abcdef"
    for place, age in (
        (home / "uploads" / ("a" * 32), 3700),
        (home / "uploads" / f"{'b' * 32}.taken", 3700),
        (home / "uploads" / ("c" * 32), 60),
        (killed, 0),
    ):
        place.mkdir(parents=True)
        for one in (place / "content", place):
            if one is not place:
                one.write_bytes(CARD)
            os.utime(one, (time() - age, time() - age))
    killed.with_suffix(".lock").write_bytes(b"")
    with served_program(tmp_path, owner=program.owner) as program:
        old = [killed, home / "uploads" / ("a" * 32), home / "uploads" / f"{'b' * 32}.taken"]
        for _ in range(500):
            assert program.ask("GET", "/healthz").status == 200
            if not any(path.exists() for path in old):
                break
        assert [path.name for path in (home / "uploads").iterdir()] == ["c" * 32]
        assert list((home / "imports").iterdir()) == []


@pytest.mark.parametrize("wrong", ["", "short", "../../etc/passwd", "x" * 65, "with space"])
def test_an_id_that_could_be_a_path_is_refused(store: Driven, directory: UploadDirectory, wrong: str):
    with pytest.raises(InvalidRequest):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=wrong))
    with pytest.raises(InvalidRequest):
        directory.get(wrong)
