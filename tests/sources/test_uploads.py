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
from headgate.sources import uploads
from headgate.sources.uploads import Upload, Uploads
from headgate.tasks import Supervisor
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
def directory(store: Driven, tmp_path: Path, monkeypatch) -> Uploads:
    monkeypatch.setattr(uploads, "_NOTE_SECONDS", -1.0)
    return uploads_of(store, tmp_path)


def uploads_of(store: Driven, home: Path, now: int = NOW) -> Uploads:
    return Uploads(home, store.bare, clock=lambda: now, supervisor=Supervisor())


def given(store: Driven, directory: Uploads, pieces: Any, upload: Upload) -> Any:
    return store.run(directory.import_file(upload, pieces))


def test_what_has_arrived_is_seen_before_the_end_and_nothing_of_the_file_stays(
    store: Driven, directory: Uploads, tmp_path: Path
):
    seen: list[tuple[str, int]] = []

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (CARD[:10], CARD[10:]):
            yield piece
            found = directory.progress(ID)
            seen.append((found["status"], found["received_bytes"]))

    done = given(store, directory, pieces(), Upload("a.vcf", import_id=ID))
    assert (done["import_id"], done["imports"][0]["streams"]["contacts"]["added"]) == (ID, 1)
    assert seen == [("receiving", 10), ("receiving", len(CARD))]
    assert [path.name for path in (tmp_path / "imports").iterdir()] == [f"{ID}.json"]
    assert stat.S_IMODE((tmp_path / "imports").stat().st_mode) == 0o700


async def _once(content: bytes) -> AsyncIterator[bytes]:
    yield content


@pytest.mark.parametrize(("upload", "status"), [("a.vcf", "previewed"), ("a.xyz", "failed")])
def test_a_preview_and_a_failure_are_noted(store: Driven, directory: Uploads, upload: str, status: str):
    one = Upload(upload, is_dry_run=True, import_id=ID)
    if status == "failed":
        with pytest.raises(InvalidRequest):
            given(store, directory, _once(CARD[:5]), one)
    else:
        given(store, directory, _once(CARD), one)
    found = directory.progress(ID)
    assert (found["status"], found["error"] is None) == (status, status != "failed")


def test_an_import_whose_caller_goes_away_is_noted_as_interrupted(store: Driven, directory: Uploads):
    async def cut() -> AsyncIterator[bytes]:
        yield CARD
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        given(store, directory, cut(), Upload("a.vcf", import_id=ID))
    assert directory.progress(ID)["status"] == "interrupted"


def test_a_file_that_would_fill_the_disk_is_refused_while_it_arrives(
    store: Driven, directory: Uploads, monkeypatch
):
    monkeypatch.setattr(uploads, "_CHECK_BYTES", 1)
    monkeypatch.setattr(uploads, "has_room", lambda _path: False)
    with pytest.raises(StorageFull):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=ID))


def test_what_is_older_than_a_day_is_forgotten(store: Driven, directory: Uploads, tmp_path: Path):
    for one in (ID, "another_one"):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=one))
    os.utime(tmp_path / "imports" / f"{ID}.json", (1, 1))
    uploads_of(store, tmp_path, time_ns() // 1000).clean()
    with pytest.raises(NotFound):
        directory.progress(ID)
    assert directory.progress("another_one")["status"] == "done"


def test_an_upload_that_is_being_received_is_not_removed(store: Driven, directory: Uploads, tmp_path: Path):
    async def cleaned_meanwhile() -> AsyncIterator[bytes]:
        yield CARD[:10]
        uploads_of(store, tmp_path, time_ns() // 1000).clean()
        yield CARD[10:]

    assert given(store, directory, cleaned_meanwhile(), Upload("a.vcf"))["imports"]
    assert list((tmp_path / "imports").glob("*/")) == []


def test_an_upload_waits_until_it_is_imported_once(store: Driven, directory: Uploads, tmp_path: Path):
    async def add_and_import() -> Any:
        upload_id = await directory.add("cards", [("x/a.vcf", _once(CARD)), ("x/../b.vcf", _once(CARD))])
        assert directory.waiting_name(upload_id) == "cards"
        await directory.start(upload_id, None)
        with pytest.raises(NotFound):
            await directory.start(upload_id, None)
        await asyncio.gather(*directory._tasks)
        return directory.progress(upload_id)

    assert store.run(add_and_import())["status"] == "done"
    assert list((tmp_path / "imports").glob("*/")) == []


@pytest.mark.parametrize("names", [["a/b.vcf", "a"], ["x\0y", "b.vcf"], ["../" * 3], [".hidden"]])
def test_files_whose_names_cannot_be_stored_are_refused_and_leave_nothing(
    store: Driven, directory: Uploads, tmp_path: Path, names: list[str]
):
    with pytest.raises(InvalidRequest):
        store.run(directory.add("cards", [(name, _once(CARD)) for name in names]))
    assert list((tmp_path / "imports").iterdir()) == []


def test_an_entry_that_another_process_removes_meanwhile_fails_nothing(
    directory: Uploads, tmp_path: Path, monkeypatch
):
    """The removal falls between the listing and the look at the entry."""
    (tmp_path / "imports").mkdir()
    (tmp_path / "imports" / "gone.json").write_bytes(b"")
    listed = Path.glob

    def removing(self: Path, pattern: str) -> Iterator[Path]:
        found = list(listed(self, pattern))
        for path in found:
            path.unlink()
        return iter(found)

    monkeypatch.setattr(Path, "glob", removing)
    directory.clean()


def test_a_server_removes_what_was_not_imported_and_what_was_killed_when_it_starts(tmp_path: Path):
    home = tmp_path / "home"
    with served_program(tmp_path) as program:
        assert program.ask("GET", "/healthz").status == 200
    waiting, taken, recent, killed = (
        home / "imports" / name for name in ("a" * 32, f"{'b' * 32}.taken", "c" * 32, "d" * 32)
    )
    for place, age in ((waiting, 3700), (taken, 3700), (recent, 60)):
        place.mkdir(parents=True)
        note = home / "imports" / f"{place.stem}.json"
        note.write_bytes(b"{}")
        os.utime(note, (time() - age, time() - age))
    killed.mkdir()
    killed.with_suffix(".lock").write_bytes(b"")
    with served_program(tmp_path, owner=program.owner) as program:
        for _ in range(500):
            assert program.ask("GET", "/healthz").status == 200
            if not any(path.exists() for path in (waiting, taken, killed)):
                break
        assert list((home / "imports").glob("*/")) == [recent]
        assert list((home / "imports").glob("*.lock")) == []


@pytest.mark.parametrize("wrong", ["", "short", "../../etc/passwd", "x" * 65, "with space"])
def test_an_id_that_could_be_a_path_is_refused(store: Driven, directory: Uploads, wrong: str):
    with pytest.raises(InvalidRequest):
        given(store, directory, _once(CARD), Upload("a.vcf", import_id=wrong))
    with pytest.raises(InvalidRequest):
        directory.progress(wrong)
