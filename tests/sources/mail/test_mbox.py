"""An mbox file cut into messages."""

import io
import mailbox

import pytest
from hypothesis import given, strategies as st

from headgate.sources.mail import mbox as mbox_module
from headgate.sources.mail.mbox import is_mbox, split
from tests.sources.mail.mails import ANSWER, LETTER, mbox


def contents(raw: bytes, begin: int = 0) -> list[bytes | None]:
    content = io.BytesIO(raw)
    content.seek(begin)
    return [message.content for message in split(content, begin)]


def test_messages_are_cut_where_one_begins():
    assert contents(mbox(LETTER, ANSWER)) == [LETTER + b"\n", ANSWER + b"\n"]


def test_a_quoted_line_is_unquoted_and_begins_nothing():
    raw = LETTER + b"\n>From here to there\n>>From x\nFrom now on: yes\n"
    (only,) = contents(mbox(raw))
    assert only is not None
    assert only.endswith(b"\nFrom here to there\n>From x\nFrom now on: yes\n\n")


@pytest.mark.parametrize(
    "line",
    [
        b"From joerg@example.org Tue Mar  3 10:00:00 2026",
        b"From 1495848543854@xxx Thu Jan 01 00:00:00 +0000 2015",
        b"From - Tue Mar  3 10:00:00 2026\r",
        b"From joerg@example.org",
    ],
)
def test_the_lines_that_programs_write_begin_a_message(line):
    raw = line + b"\nSubject: a\n\nx\n\n"
    assert is_mbox(raw)
    assert len(contents(raw * 3)) == 3


def test_a_sentence_that_begins_with_from_is_no_beginning():
    raw = LETTER + b"\nFrom what I know the bridge is old.\nNote: it leaks.\n"
    assert len(contents(mbox(raw, ANSWER))) == 2


def test_a_file_that_is_no_mbox_is_not_taken_for_one():
    assert not is_mbox(b"From what I know the bridge is old.\nNote: it leaks.\n")
    assert not is_mbox(LETTER)


def test_the_place_of_every_message_is_a_place_to_begin_at():
    raw = mbox(LETTER, ANSWER, LETTER)
    messages = list(split(io.BytesIO(raw)))
    assert [message.begin for message in messages[1:]] == [message.end for message in messages[:-1]]
    assert messages[-1].end == len(raw)
    assert contents(raw, messages[1].begin) == [message.content for message in messages[1:]]


@given(
    bodies=st.lists(st.text(alphabet="From >\nabc:1", max_size=200), min_size=1, max_size=8),
    piece=st.integers(1, 300),
    judged=st.integers(1300, 2000),
)
def test_the_pieces_in_which_a_file_is_read_change_nothing(bodies, piece, judged):
    raw = mbox(*(f"Subject: {number}\n\n{body}".encode() for number, body in enumerate(bodies)))
    whole = contents(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mbox_module, "_PIECE_BYTES", piece)
        patch.setattr(mbox_module, "_JUDGED_BYTES", judged)
        assert contents(raw) == whole


def test_a_message_that_is_too_large_is_left_out_and_the_next_one_is_read(monkeypatch):
    monkeypatch.setattr(mbox_module, "MAX_MESSAGE_BYTES", 20_000)
    monkeypatch.setattr(mbox_module, "_PIECE_BYTES", 5_000)
    raw = mbox(LETTER, b"Subject: huge\n\n" + b"x" * 100_000 + b"\n", ANSWER)
    messages = list(split(io.BytesIO(raw)))
    assert [message.content for message in messages] == [LETTER + b"\n", None, ANSWER + b"\n"]
    assert [message.begin for message in messages[1:]] == [message.end for message in messages[:-1]]


@given(
    st.lists(
        st.tuples(st.text("abcdefgh ", min_size=1, max_size=20), st.text(max_size=300)),
        min_size=1,
        max_size=20,
    )
)
def test_counts_and_subjects_are_those_of_the_standard_library(tmp_path_factory, letters):
    path = tmp_path_factory.mktemp("mail") / "box"
    box = mailbox.mbox(path)
    for subject, body in letters:
        message = mailbox.mboxMessage()
        message["Subject"] = f"s {subject.strip()}"
        message.set_payload(body, "utf-8")
        box.add(message)
    box.flush()
    subjects = [message["Subject"] for message in box]
    box.close()
    found = contents(path.read_bytes())
    assert [one.partition(b"Subject: ")[2].partition(b"\n")[0].decode() for one in found if one] == subjects
