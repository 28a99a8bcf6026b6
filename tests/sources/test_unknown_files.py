"""Files that no source reads are named with what they are and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.sources.unknown import advice
from tests.on_socket import headgate
from tests.sources.reading import input_file

PAGE = b"<html><head><title>My Activity</title></head><body>"


def test_an_import_of_files_that_no_source_reads_says_what_each_is_and_fails(tmp_path: Path):
    (tmp_path / "mail.pst").write_bytes(b"!BDN")
    (tmp_path / "MyActivity.html").write_bytes(PAGE)
    for name, words in {"mail.pst": ("Outlook", "readpst"), "MyActivity.html": ("Takeout", "JSON")}.items():
        done = headgate(tmp_path, "--home", "home", "import", name, "--yes")
        assert done.code == 1
        assert all(word in done.err for word in words), done.err


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.numbers", b"PK\x03\x04", "export it as CSV"),
        ("a.doc", b"\xd0\xcf\x11\xe0", "PDF"),
        ("a.HEIC", b"", "a picture"),
        ("a.kmz", b"PK\x03\x04", "GPX"),
        (
            "messages/inbox/a/message_1.html",
            b'<div class="_a6-g uiBoxWhite noborder">',
            "choose the format JSON",
        ),
        ("a.txt", b"hello", "its own path"),
        ("a.xyz", b"", ""),
    ],
)
def test_a_file_is_named_by_its_ending_or_by_what_its_page_holds(name: str, content: bytes, words: str):
    assert (words in advice(input_file(name, content))) if words else not advice(input_file(name, content))
