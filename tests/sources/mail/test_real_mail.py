"""Mail that was written for other parsers: the messages in the standard library's tests."""

import importlib.util
from email import message_from_bytes, policy
from pathlib import Path

import pytest

from headgate.sources.mail.parsing import parse, unfolded
from tests.sources.mail.mails import check_items, items_of, mbox, rows_of

FOUND = importlib.util.find_spec("test")
DIRECTORY = Path(FOUND.submodule_search_locations[0]) / "test_email" / "data" if FOUND else Path("none")
MESSAGES = sorted(DIRECTORY.glob("msg_*.txt"))


@pytest.fixture(autouse=True)
def _present():
    if not MESSAGES:
        pytest.skip("this Python comes without its tests")


def one_line(value: object) -> str:
    return " ".join(str(value or "").split())


def test_every_message_is_read_from_one_mbox_and_can_be_stored(tmp_path):
    # Some of the messages have a line of an mbox before them.
    raws = [path.read_bytes() for path in MESSAGES]
    whole = [raw if raw.startswith(b"From ") else mbox(raw) for raw in raws]
    path = tmp_path / "Inbox"
    path.write_bytes(b"\n".join(whole))
    items = items_of(path)
    check_items(items)
    assert len(rows_of(path)) == len(MESSAGES)


@pytest.mark.parametrize("path", MESSAGES, ids=lambda path: path.stem)
def test_a_message_says_what_the_standard_library_reads(path):
    raw = path.read_bytes()
    theirs, ours = message_from_bytes(raw, policy=policy.default), parse(raw)
    assert unfolded(ours.header("subject")) == one_line(theirs["subject"])
    senders = theirs["from"].addresses if theirs["from"] else ()
    named = [sender.addr_spec for sender in senders if sender.addr_spec != "<>"]
    assert [one.address for one in ours.people["from"] if "<>" not in one.address] == named
    has_text = any(part.get_payload(decode=True).strip() for part in theirs.walk() if not part.is_multipart())
    assert ours.attached or any(map(str.strip, (*ours.plain, *ours.html))) or not has_text
