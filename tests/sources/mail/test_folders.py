"""Which files are mail, and what their names say."""

import pytest

from headgate.sources.inputs.disk import tree_of
from headgate.sources.mail.mbox import MailFile, folder_of
from headgate.sources.protocol import Certainty
from tests.sources.mail.mails import ANSWER, LETTER, SOURCE, mbox, rows_of


def write(root, **files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_the_connection_is_named_after_the_receiver_or_the_files(tmp_path):
    write(tmp_path, **{"Mail/Inbox.mbox": mbox(LETTER), "Mail/notes.txt": b"From the start\nit was cold.\n"})
    (found,) = SOURCE.detect(tree_of(tmp_path))
    assert (found.title, found.certainty) == ("Mail of ada@example.org", Certainty.FORMAT)
    assert [file.name for file in found.files] == ["Mail/Inbox.mbox"]
    write(tmp_path / "other", Sent=mbox(ANSWER))
    (found,) = SOURCE.detect(tree_of(tmp_path / "other"))
    assert found.title == "Mail from other"
    write(tmp_path / "mail", Sent=mbox(ANSWER))
    (found,) = SOURCE.detect(tree_of(tmp_path / "mail"))
    assert found.title == "Mail"


def test_mail_of_a_takeout_is_recognised_as_such(tmp_path):
    write(tmp_path, **{"Takeout/Mail/All mail.mbox": mbox(b"X-Gmail-Labels: Inbox\n" + LETTER)})
    (found,) = SOURCE.detect(tree_of(tmp_path))
    assert found.certainty is Certainty.EXPORT


def test_nothing_is_recognised_where_no_mail_is(tmp_path):
    write(tmp_path, **{"a.csv": b"a,b\n", "cur/readme": b"hello", "b": b"\x00" * 100})
    assert not SOURCE.detect(tree_of(tmp_path))


def test_a_maildir_gives_folders_and_flags(tmp_path):
    write(
        tmp_path / "mail",
        **{
            "cur/1700000000.M1P1.host:2,FS": LETTER,
            "new/1700000001.M2P1.host": ANSWER,
            ".Work.Old/cur/1700000002.M3P1.host:2,": LETTER.replace(b"planks", b"nails"),
        },
    )
    found = {
        (row["folder"], row["subject"], row["is_read"], row["is_flagged"])
        for row in rows_of(tmp_path / "mail")
    }
    assert found == {
        ("Inbox", "The bridge", True, True),
        ("Inbox", "Re: The bridge", False, False),
        ("Work/Old", "The bridge", False, False),
    }


def test_a_message_in_a_maildir_may_have_any_name(tmp_path):
    write(
        tmp_path / "Lists",
        **{"cur/mail1": LETTER, "cur/b.eml": ANSWER, "cur/readme": b"Note: no mail\n\nhello"},
    )
    assert {(row["folder"], row["subject"], row["is_read"]) for row in rows_of(tmp_path)} == {
        ("Lists", "The bridge", False),
        ("Lists", "Re: The bridge", None),
    }


def test_messages_beside_the_directories_of_a_maildir_and_those_of_mh_are_read(tmp_path):
    letters = [LETTER.replace(b"planks", b"planks %d" % number) for number in range(5)]
    write(
        tmp_path / "Lists",
        **{
            "cur/1700000000.M1P1.host:2,S": letters[0],
            "lost+found/1220863042.12663_1": letters[1],
            "archive/12": letters[2],
            "1283599333.1840_11.host!2,": letters[3],
            "tmp/unfinished": letters[4],
            "readme": b"From: what I know\n\nSubject: none",
            "letter.log": letters[4],
        },
    )
    assert {(row["folder"], row["is_read"]) for row in rows_of(tmp_path / "Lists")} == {
        ("archive", None),
        (None, None),
        ("Inbox", True),
        ("lost+found", None),
    }


def test_single_messages_are_read_with_their_directory_as_folder(tmp_path):
    write(tmp_path, **{"Work/a.eml": LETTER, "b.eml": ANSWER, "empty.eml": b""})
    assert [row["folder"] for row in rows_of(tmp_path)] == ["Work", None]


def test_a_message_of_apple_mail_is_read_with_its_flags(tmp_path):
    plist = b'<?xml version="1.0"?><plist version="1.0"><dict><key>flags</key><integer>17</integer></dict></plist>'
    raw = b"%d      \n%s%s" % (len(LETTER), LETTER, plist)
    write(
        tmp_path,
        **{"Work.mbox/Messages/1.emlx": raw, "Work.mbox/Messages/2.emlx": raw.replace(b"plist", b"")},
    )
    first, second = rows_of(tmp_path)
    assert (first["folder"], first["is_read"], first["is_flagged"]) == ("Work", True, True)
    assert (second["is_read"], second["body"]) == (None, first["body"])


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("Inbox", "Inbox"),
        ("Takeout/Mail/Sent.mbox", "Sent"),
        ("Mail/Local Folders/Archive.sbd/2024", "Archive/2024"),
        ("Export/Work.mbox/mbox", "Work"),
        ("mbox", "mbox"),
    ],
)
def test_the_folder_of_an_mbox_is_named_as_its_owner_sees_it(name, folder):
    assert folder_of(name, MailFile.MBOX) == folder


def test_a_file_that_cannot_be_read_is_reported_and_the_others_are_read(tmp_path):
    write(tmp_path, **{"a.eml": LETTER, "b.eml": ANSWER})
    (found,) = SOURCE.detect(tree_of(tmp_path))
    (tmp_path / "a.eml").unlink()
    items = list(SOURCE.read(found, {}))
    assert "a.eml" in str(items[0])
    assert {type(item).__name__ for item in items} == {"Reject", "Row", "Mark"}
