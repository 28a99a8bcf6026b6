"""Files that no source reads are named with what they are and what to do."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from headgate.sources.unknown import advice
from tests.on_socket import headgate
from tests.sources.mail.outlook_files import compound
from tests.sources.reading import input_file

PAGE = b"<html><head><title>My Activity</title></head><body>"


def test_an_import_of_files_that_no_source_reads_says_what_each_is_and_fails(tmp_path: Path):
    (tmp_path / "mail.pst").write_bytes(b"!BDN")
    (tmp_path / "MyActivity.html").write_bytes(PAGE)
    for name, words in {"mail.pst": ("Outlook", "readpst"), "MyActivity.html": ("Takeout", "JSON")}.items():
        done = headgate(tmp_path, "--home", "home", "import", name, "--yes")
        assert done.code == 1
        assert all(word in done.err for word in words), done.err


#: Names, beginnings, and what the report says of them.
KINDS = [
    ("a.pst b.ost", b"!BDN", "readpst"),
    ("a.olm", b"PK\x03\x04", "drag the folders out of Outlook"),
    ("a.numbers", b"PK\x03\x04", "export it as CSV"),
    ("a.pages b.key", b"PK\x03\x04", "export it as PDF"),
    ("a.doc b.ppt", b"\xd0\xcf\x11\xe0", "PDF"),
    ("a.docx b.pptx", b"\xd0\xcf\x11\xe0", "encrypted with a password"),
    ("a.one", b"\xe4\x52\x5c\x7b", "OneNote"),
    ("a.HEIC b.svg c.dng", b"", "a picture"),
    ("a.mp4 b.m4a c.opus", b"", "a recording"),
    ("a.kmz", b"PK\x03\x04", "GPX"),
    ("a.lnk b.url c.webloc", b"L\0\0\0", "import what it leads to"),
    ("Plan.gdoc", b"{}", "download it as Word"),
    ("a.mhtml", b"From:", "save it as HTML"),
    ("a.7z b.rar", b"7z", "unpack it"),
    ("msgstore.db.crypt15", b"", "export the chats"),
    ("places.sqlite-wal", b"7", "with the database"),
    ("mail.mbox.crdownload", b"From ", "not complete"),
    ("secret.asc", b"-----BEGIN PGP", "decrypt it first"),
    (
        "Takeout/a.jpg.supplemental-metadata.json",
        b'{"title": "a.jpg", "photoTakenTime": {}}',
        "Google Photos",
    ),
    ("Takeout/Keep/Note.html", b"<html>", ".json file beside it"),
    ("Takeout/archive_browser.html", b"<html>", "what is in the archive"),
    ("messages/inbox/a/message_1.html", b'<div class="_a6-g uiBoxWhite noborder">', "choose the format JSON"),
    ("a.txt", b"hello", "its own path"),
    ("settings.json", b"{}", "no list of records"),
    ("a.xyz", b"", ""),
]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [(name, content, words) for names, content, words in KINDS for name in names.split(" ")],
)
def test_a_file_is_named_by_its_ending_or_by_what_its_page_holds(name: str, content: bytes, words: str):
    assert (words in advice(input_file(name, content))) if words else not advice(input_file(name, content))


def test_thousands_of_pictures_hide_no_other_file_that_is_not_read(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "takeout.zip", "w") as archive:
        archive.writestr("contacts.vcf", "BEGIN:VCARD\nVERSION:3.0\nFN:Ada\nEND:VCARD\n")
        archive.writestr("MyActivity.html", PAGE)
        archive.writestr("zzz.bin", b"\0")
        for number in range(3000):
            archive.writestr(f"Photos/{number:04}.jpg", b"\xff\xd8\xff")
            archive.writestr(
                f"Photos/{number:04}.jpg.json", b'{"photoTakenTime": {}, "people": [{"name": "Ada"}]}'
            )
    done = headgate(tmp_path, "--home", "home", "import", "takeout.zip", "--yes")
    assert done.code == 0, done.err
    listed = done.err.partition("Not read:\n")[2].splitlines()
    assert sorted(line.strip() for line in listed if line.startswith("  ")) == [
        "MyActivity.html (a page of Google Takeout; order the copy again and choose the format JSON)",
        "Photos/0000.jpg and 2,999 more (a picture; only text is read)",
        "Photos/0000.jpg.json and 2,999 more (what Google Photos notes of a picture; only text is read)",
        "zzz.bin",
    ]


def test_an_empty_file_an_archive_with_a_password_and_a_damaged_one_say_so(tmp_path: Path):
    (tmp_path / "empty.csv").write_bytes(b"")
    (tmp_path / "cut.zip").write_bytes(b"PK\x03\x04" + bytes(60))
    (tmp_path / "locked.zip").write_bytes(locked())
    (tmp_path / "locked.docx").write_bytes(compound({"EncryptedPackage": b"x" * 9000}))
    words = {
        "empty.csv": "empty",
        "cut.zip": "cannot be read",
        "locked.zip": "password",
        "locked.docx": "password",
    }
    for name, word in words.items():
        done = headgate(tmp_path, "--home", "home", "import", name, "--yes")
        assert (done.code, word in done.err, "Traceback" in done.err) == (1, True, False), done.err


def locked() -> bytes:
    """A zip of one member, marked as encrypted."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("a.csv", "id,name\n1,plank\n")
    raw = bytearray(content.getvalue())
    for signature, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        raw[raw.index(signature) + flags] |= 1
    return bytes(raw)
