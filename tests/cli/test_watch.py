"""``headgate watch``: what arrives in a directory is imported, until the command is stopped."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.forked_process import ForkedProcess
from tests.forking import shared_parent
from tests.on_socket import WAIT_SECONDS, environment, headgate, serving

CARD = "BEGIN:VCARD\nVERSION:3.0\nUID:{0}\nFN:{0}\nEND:VCARD\n"


@contextmanager
def watching(place: Path, *arguments: str) -> Iterator[ForkedProcess]:
    words = ("--home", "home", "watch", "inbox", "--every", "0.1", *arguments)
    process = shared_parent().start(place, words, environment(place, {}))
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=WAIT_SECONDS)
        process.close()


def event(process: ForkedProcess) -> dict[str, Any]:
    return json.loads(process.stdout.readline())


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    path = tmp_path / "inbox"
    path.mkdir()
    (path / "a.vcf").write_text(CARD.format("Ada"))
    return path


def test_what_is_there_and_what_arrives_is_imported_and_bad_files_are_reported_once(
    tmp_path: Path, inbox: Path
):
    with watching(tmp_path, "--json") as process:
        first = event(process)
        assert (first["event"], first["path"]) == ("imported", "inbox/a.vcf")
        (inbox / "bad.zip").write_bytes(b"PK\3\4 no archive")
        assert event(process)["event"] == "failed"
        (inbox / "b.vcf").write_text(CARD.format("Grace"))
        # The bad file would have come first, had it been tried again.
        assert event(process)["path"] == "inbox/b.vcf"
        (inbox / "bad.zip").write_bytes(b"PK\3\4 another one, no archive")
        assert event(process)["event"] == "failed"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, out, err) == (0, "", "")


def test_a_name_that_is_not_unicode_is_escaped_in_json(tmp_path: Path, inbox: Path):
    (inbox / "a.vcf").rename(inbox / os.fsdecode(b"\xff.vcf"))
    with watching(tmp_path, "--json") as process:
        found = event(process)
    assert (found["event"], os.fsencode(found["path"])) == ("imported", b"inbox/\xff.vcf")


def test_a_file_that_was_imported_before_is_not_read_again(tmp_path: Path, inbox: Path):
    assert headgate(tmp_path, "--home", "home", "import", "inbox/a.vcf").code == 0
    with watching(tmp_path) as process:
        assert process.stdout.readline() == "a.vcf: nothing new\n"
        (inbox / "a.vcf").write_text(CARD.format("Ada") + CARD.format("Grace"))
        assert [process.stdout.readline() for _ in range(2)] == [
            "a.vcf:\n",
            "  contacts: 1 new, 1 known already\n",
        ]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, err) == (0, "Stopped.\n")


def test_it_works_beside_a_server_of_the_same_home(tmp_path: Path, inbox: Path):
    assert inbox.exists()
    with serving(tmp_path), watching(tmp_path, "--json") as process:
        streams = event(process)["imports"][0]["streams"]
        assert streams == {"contacts": {"accepted": 1, "added": 1, "removed": 0, "known": 0}}


def test_a_directory_that_is_not_there_ends_it(tmp_path: Path):
    done = headgate(tmp_path, "--home", "home", "watch", "none")
    assert (done.code, "Give a directory." in done.err) == (1, True)
