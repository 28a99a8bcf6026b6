"""Reading that was interrupted goes on at a mark, and gives what reading once gives."""

import io
import tracemalloc
from dataclasses import replace

import pytest

from headgate.sources.inputs.disk import tree_of
from headgate.sources.mail import mbox as mbox_module, rows
from headgate.sources.protocol import Mark, Row
from tests.sources.mail.mails import ANSWER, LETTER, SOURCE, mbox, state_of


@pytest.fixture
def found(tmp_path, monkeypatch):
    monkeypatch.setattr(rows, "MESSAGES_PER_MARK", 2)
    letters = [LETTER.replace(b"<one@", b"<%d@" % n).replace(b"bridge", b"%d" % n) for n in range(6)]
    # An answer with another subject does not rename its thread, wherever reading begins.
    (tmp_path / "Inbox").write_bytes(mbox(LETTER, *letters, ANSWER.replace(b"Re: The", b"Another")))
    (tmp_path / "Sent").write_bytes(mbox(*letters[:3], ANSWER))
    (tmp_path / "a.eml").write_bytes(LETTER)
    (only,) = SOURCE.detect(tree_of(tmp_path))
    return only


def resumes(items):
    """Give the marks of each place where an import may have ended."""
    held = {}
    for at, item in enumerate(items):
        if isinstance(item, Mark):
            held[item.file] = item.resume
            yield at + 1, dict(held)


def test_reading_from_every_mark_gives_the_rows_of_reading_once(found):
    items = list(SOURCE.read(found, {}))
    whole = state_of(items)
    places = list(resumes(items))
    assert len(places) == 9
    for at, resume in places:
        assert state_of(SOURCE.read(found, resume), state_of(items[:at])) == whole
    assert list(SOURCE.read(found, places[-1][1])) == []


def test_a_file_of_an_archive_that_cannot_seek_is_read_from_a_mark_too(found, monkeypatch):
    monkeypatch.setattr(rows, "_SKIPPED_BYTES", 100)

    class Unseekable(io.BytesIO):
        def seekable(self) -> bool:
            return False

    (file, *_) = found.files
    with file.open() as content:
        raw = content.read()
    packed = replace(found, files=[replace(file, open=lambda: Unseekable(raw))])
    marks = [item for item in SOURCE.read(packed, {}) if isinstance(item, Mark)]
    rest = list(SOURCE.read(packed, {file.name: marks[1].resume}))
    assert rest == list(SOURCE.read(replace(found, files=[file]), {file.name: marks[1].resume}))
    assert len([item for item in rest if isinstance(item, Row) and item.stream == "messages"]) == 4


def test_marks_tell_how_much_of_a_file_is_done(found):
    sizes = {file.name: file.size_bytes for file in found.files}
    marks = [item for item in SOURCE.read(found, {}) if isinstance(item, Mark)]
    assert {mark.file: mark.done_bytes for mark in marks} == sizes
    assert all(mark.done_bytes <= sizes[mark.file] for mark in marks)


def letters_for_ever(total_bytes: int):
    filler = b"A line of an ordinary mail that says little.\n" * 300
    number, written = 0, 0
    while written < total_bytes:
        piece = mbox(LETTER.replace(b"<one@", b"<%d@" % number) + filler)
        written += len(piece)
        number += 1
        yield piece


def memory_of(tmp_path, total_bytes: int) -> tuple[int, int]:
    path = tmp_path / "Inbox.mbox"
    with path.open("wb") as file:
        for piece in letters_for_ever(total_bytes):
            file.write(piece)
    (found,) = SOURCE.detect(tree_of(path))
    tracemalloc.start()
    try:
        count = sum(isinstance(item, Row) and item.stream == "messages" for item in SOURCE.read(found, {}))
        return count, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_does_not_grow_with_the_file(tmp_path):
    count, peak = memory_of(tmp_path, 8 * mbox_module._PIECE_BYTES)
    assert count > 500
    assert peak < 5 * mbox_module._PIECE_BYTES


@pytest.mark.soak
def test_two_hundred_megabytes_are_read_in_the_memory_of_eight(tmp_path):
    count, peak = memory_of(tmp_path, 200 * 1024 * 1024)
    assert count > 10_000
    # Besides the pieces, the names of the last threads are remembered.
    assert peak < 12 * mbox_module._PIECE_BYTES
