"""Messages that were saved by Outlook, one in each file."""

from __future__ import annotations

import struct
import tracemalloc
from email.message import EmailMessage

import pytest
from hypothesis import example, given, settings, strategies as st

from headgate.sources.mail.rows import MailRows, MailState
from headgate.sources.protocol import Reject, Row
from tests.sources.mail.mails import check_items, read_one, rows_of
from tests.sources.mail.outlook_files import FORWARDED, LETTER, MSG, PLAN, RECEIVERS, compound, item


def read(raw: bytes) -> list[Row | Reject]:
    items = list(MailRows().of(raw, MailState("a.msg")))
    check_items(items)
    return items


def message_in(raw: bytes) -> dict:
    (message,) = (one.data for one in read(raw) if isinstance(one, Row) and one.stream == "messages")
    return dict(message)


def test_a_message_saved_by_outlook_becomes_a_record_with_what_is_attached(tmp_path):
    (tmp_path / "letter.msg").write_bytes(MSG)
    (message,) = rows_of(tmp_path)
    assert message == {
        "id": message["id"],
        "thread_id": message["thread_id"],
        "subject": "Die Brücke",
        "from": "Jörg Müller <Joerg@Example.ORG>",
        "from_address": "joerg@example.org",
        "to": ["Babbage, C. <CHARLES>"],
        "cc": ["Team <team@example.org>"],
        "bcc": [],
        "sent_at": "2026-03-03T08:00:00Z",
        "body": "The planks are here.\n\nJoerg",
        "quoted": None,
        "folder": None,
        "labels": [],
        "is_read": True,
        "is_flagged": False,
        "has_attachments": True,
        "size": len(MSG),
        "internet_message_id": "one@example.org",
        "in_reply_to": None,
    }
    plan, nails, price = rows_of(tmp_path, "attachments")
    assert (plan["name"], plan["mime_type"], plan["size"]) == ("Plan für März.txt", "text/plain", 6800)
    assert plan["text"].startswith("Nails and planks")
    assert (nails["name"], nails["mime_type"]) == ("Nails.eml", "message/rfc822")
    assert nails["text"].endswith("Subject: Nails\n\nOf iron.")
    assert "From: Zoë <zoe@example.org>" in nails["text"]
    assert (price["name"], price["text"]) == ("price.txt", "Three crowns")


def test_a_message_that_is_saved_again_is_the_same_one():
    again = compound({"spare": b"x" * 5000, **item(LETTER, RECEIVERS[:1])})
    assert message_in(MSG)["id"] == message_in(again)["id"]
    other = item({**LETTER, 0x1000: "The planks are gone."})
    assert message_in(compound(other))["id"] != message_in(MSG)["id"]


@pytest.mark.parametrize(
    ("code_page", "charset", "text"),
    [
        (1252, "cp1252", "Grüße €"),
        (1251, "cp1251", "Привет"),
        (932, "cp932", "橋の板"),
        (28592, "iso8859-2", "Žluť"),
        (65001, "utf-8", "Ÿ € ж"),
        (0, "cp1252", "Grüße"),
        (99999, "cp1252", "Grüße"),
    ],
)
def test_texts_of_old_versions_are_read_in_the_code_page_of_the_message(code_page, charset, text):
    values = {0x3FFD: code_page, 0x0037: text, 0x1000: f"{text}!"}
    receiver = {0x0C15: 1, 0x3001: text, 0x39FE: "ada@example.org"}
    message = message_in(compound(item(values, [receiver], charset=charset)))
    assert (message["subject"], message["body"]) == (text, f"{text}!")
    assert message["to"] == [f"{text} <ada@example.org>"]


def test_the_headers_of_the_servers_say_more_than_the_properties():
    headers = "Message-ID: <two@example.org>\r\nReferences: <zero@example.org>\r\n <one@example.org>\r\n"
    sent = "In-Reply-To: <one@example.org>\r\nDate: Tue, 3 Mar 2026 12:30:00 +0200\r\n"
    message = message_in(compound(item({0x007D: headers + sent, 0x0037: "Re: x", 0x1090: 2})))
    assert (message["internet_message_id"], message["in_reply_to"]) == ("two@example.org", "one@example.org")
    assert message["sent_at"] == "2026-03-03T10:30:00Z"
    assert (message["is_read"], message["is_flagged"]) == (False, True)


def test_a_sender_without_an_address_has_the_one_of_the_headers():
    values = {0x0C1A: "Charles", 0x0C1F: "/O=CLUB/CN=CHARLES", 0x1000: "Hi"}
    assert message_in(compound(item(values)))["from"] == "Charles <CHARLES>"
    values[0x007D] = 'From: "Babbage, C." <cb@example.org>\r\nContent-Type: multipart/mixed; boundary=x\r\n'
    assert message_in(compound(item(values)))["from"] == "Babbage, C. <cb@example.org>"


def test_html_is_read_where_there_is_no_plain_text():
    html = (
        "<p>Für <b>Ada</b></p><div class=gmail_quote>On Monday Zoe wrote:<blockquote>old</blockquote></div>"
    )
    message = message_in(compound(item({0x3FDE: 28591, 0x1013: html.encode("iso8859-1")})))
    assert message["body"] == "Für Ada"
    assert "old" in message["quoted"]


def packed(text: bytes) -> bytes:
    """Pack rich text as Outlook does, referring to what came before where that is longer."""
    common = (
        rb"{\rtf1\ansi\mac\deff0\deftab720{\fonttbl;}{\f0\fnil \froman \fswiss \fmodern \fscript \fdecor MS Sans Serif"
        rb"SymbolArialTimes New RomanCourier{\colortbl\red0\green0\blue0"
        b"\r\n"
        rb"\par \pard\plain\f0\fs20\b\i\u\tab\tx"
    )
    whole, at = common + text, len(common)
    steps: list[bytes] = []
    while at < len(whole):
        longest = next(
            (
                size
                for size in range(17, 1, -1)
                if whole.find(whole[at : at + size], 0, at) >= 0 and at + size <= len(whole)
            ),
            0,
        )
        if longest:
            place = whole.find(whole[at : at + longest], 0, at)
            steps.append(struct.pack(">H", place % 4096 << 4 | longest - 2))
            at += longest
        else:
            steps.append(whole[at : at + 1])
            at += 1
    steps.append(struct.pack(">H", at % 4096 << 4))
    content = b""
    for first in range(0, len(steps), 8):
        group = steps[first : first + 8]
        content += bytes([sum((len(one) == 2) << bit for bit, one in enumerate(group))]) + b"".join(group)
    return struct.pack("<II4sI", len(content) + 12, len(text), b"LZFu", 0) + content


RICH = rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fswiss Arial;}}\pard The gate is closed, closed, closed.\par Caf\'e9}"


@pytest.mark.parametrize(
    "rich", [packed(RICH), struct.pack("<II4sI", len(RICH) + 12, len(RICH), b"MELA", 0) + RICH]
)
def test_rich_text_is_unpacked_where_there_is_nothing_else(rich):
    body = message_in(compound(item({0x1009: rich})))["body"]
    assert body == "The gate is closed, closed, closed.\nCafé"


def test_a_message_of_outlook_that_is_attached_to_a_mail_is_text_too(tmp_path):
    mail = EmailMessage()
    mail["Subject"] = "See below"
    mail.set_content("Look")
    mail.add_attachment(MSG, maintype="application", subtype="vnd.ms-outlook", filename="letter.msg")
    assert read_one(tmp_path, mail.as_bytes())["has_attachments"]
    (attached,) = rows_of(tmp_path, "attachments")
    assert "The planks are here." in attached["text"]


@pytest.mark.parametrize(
    ("kind", "advice"),
    [("IPM.Contact", ".vcf"), ("IPM.Appointment", ".ics"), ("IPM.StickyNote", "text"), ("IPM.Task", "text")],
)
def test_what_is_no_mail_is_rejected_with_what_to_do(kind, advice):
    (reject,) = read(compound(item({**LETTER, 0x001A: kind})))
    assert isinstance(reject, Reject)
    assert advice in reject.reason
    assert message_in(compound(item({**LETTER, 0x001A: "IPM.Schedule.Meeting.Request"})))


# What was made to do harm


def damaged_in(raw: bytes, at: int, content: bytes) -> bytes:
    return raw[:at] + content + raw[at + len(content) :]


def table_at(raw: bytes) -> int:
    return (struct.unpack_from("<I", raw, 76)[0] + 1) * 512


def entries_at(raw: bytes) -> int:
    return (struct.unpack_from("<I", raw, 48)[0] + 1) * 512


CIRCLE = damaged_in(MSG, table_at(MSG), struct.pack("<I", 0) * 60)
TABLES = damaged_in(MSG, 76, MSG[76:80] * 109)


@pytest.mark.parametrize(
    "raw",
    [
        CIRCLE,
        TABLES,
        MSG[:600],
        MSG[:-512],
        MSG[:100],
        MSG[:4],
        compound({}),
        compound({"__properties_version1.0": {}}),
        damaged_in(MSG, 30, b"\x1f\x00"),
        damaged_in(MSG, 68, b"\x00\x00\x00\x00"),
        damaged_in(MSG, 68, b"\x00\x00\x00\x10"),
        damaged_in(MSG, 48, b"\xff\xff\xff\x0f"),
    ],
)
def test_a_damaged_file_of_outlook_is_rejected(raw):
    (reject,) = read(raw)
    assert isinstance(reject, Reject)
    assert reject.place == "a.msg"


def test_storages_that_hold_each_other_are_rejected():
    raw = bytearray(compound({"a": item(LETTER), "b": b"x"}))
    at = entries_at(bytes(raw)) + 128
    # The child of the first storage is the storage itself.
    struct.pack_into("<I", raw, at + 76, 1)
    (reject,) = read(bytes(raw))
    assert isinstance(reject, Reject)
    assert "hold each other" in reject.reason


def test_streams_that_share_their_sectors_take_no_more_than_the_file():
    raw = bytearray(
        compound({f"{number:03}": b"x" * (500_000 if not number else 0) for number in range(400)})
    )
    first, size = struct.unpack_from("<II", raw, entries_at(bytes(raw)) + 128 + 116)
    for number in range(2, 401):
        struct.pack_into("<II", raw, entries_at(bytes(raw)) + 128 * number + 116, first, size)
    tracemalloc.start()
    try:
        (reject,) = read(bytes(raw))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(reject, Reject)
    assert "larger than the file" in reject.reason
    assert peak < 8 * len(raw)


def test_messages_inside_messages_end_after_a_few():
    inner = FORWARDED
    for level in range(12):
        inner = item({0x0037: f"Level {level}"}, [], [{0x3705: 5, 0x3701: inner}], head=24)
    names = [
        one.data["name"]
        for one in read(compound(inner | item({0x0037: "Outer"}, [], [{0x3701: inner}])))[2:]
        if isinstance(one, Row)
    ]
    assert names
    assert len(names) < 8


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_change_of_a_file_is_read_or_rejected(data):
    raw = bytearray(MSG)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw) - 1))
        change = data.draw(st.one_of(st.binary(max_size=20), st.just(b"\xff" * 8), st.just(b"\0" * 8)))
        raw[at : at + len(change)] = change
    read(bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw))


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=200))
@example(struct.pack("<II4sI", 0, 0, b"LZFu", 0) + b"\xff" * 400_000)
@example(b"")
def test_any_rich_text_is_unpacked_as_far_as_it_goes(rich):
    assert len(message_in(compound(item({0x1009: rich, 0x0037: "x"})))["body"] or "") <= 1_000_000


def test_an_attachment_without_a_name_or_content_is_a_row():
    (_, _, row) = read(compound(item(LETTER, [], [{0x370E: "x"}])))
    assert isinstance(row, Row)
    assert (row.data["name"], row.data["size"]) == (None, 0)
    assert PLAN
