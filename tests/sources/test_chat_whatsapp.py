"""Chats that WhatsApp exported as text, in the forms of several phones and regions."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.planning import detect
from headgate.sources.protocol import Attachment, Row
from headgate.sources.registry import BUILT_IN, CHAT
from tests.sources.source_checks import (
    by_stream,
    check_all,
    hostile,
    items_of,
    rejects_of,
    rows_of,
    tree_with,
)

ANDROID = (
    "31/12/2023, 21:58 - Messages and calls are end-to-end encrypted.\n"
    "31/12/2023, 21:59 - Ines Albrecht: Happy new year!\nSee you: at the bridge\n"
    "31/12/2023, 21:59 - Sam: <Media omitted>\n"
    "01/01/2024, 00:01 - Sam: IMG-20240101-WA0001.jpg (file attached)\nThe fireworks\n"
    "01/01/2024, 00:01 - Sam: ok\n01/01/2024, 00:01 - Sam: ok\n"
)
IPHONE = (
    "\ufeff[31.12.23, 21:59:03] Ines: \u200eMessages and calls are end-to-end encrypted.\r\n"
    "\u200e[31.12.23, 21:59:10] Sam: \u200e<attached: 00000002-PHOTO-2023-12-31-21-59-10.jpg>\r\n"
    "[01.01.24, 08:00:00] ~\u202fAiko Mori: Zeile eins\r\nZeile zwei\r\n"
)


def times(text: str) -> list[str]:
    return [one["sent_at"] for one in rows_of(CHAT, {"chat.txt": text})["messages"]]


def test_a_chat_of_an_android_phone_is_read_with_long_messages_and_system_lines():
    rows = rows_of(CHAT, {"WhatsApp Chat with Garden (2).txt": ANDROID})
    (channel,) = rows["channels"]
    assert (channel["name"], channel["service"]) == ("Garden", "WhatsApp")
    assert [(one.get("author"), one["kind"], one.get("text")) for one in rows["messages"]] == [
        (None, "notice", "Messages and calls are end-to-end encrypted."),
        ("Ines Albrecht", "message", "Happy new year!\nSee you: at the bridge"),
        ("Sam", "media", None),
        ("Sam", "message", "The fireworks"),
        ("Sam", "message", "ok"),
        ("Sam", "message", "ok"),
    ]
    assert rows["messages"][3]["files"] == ["IMG-20240101-WA0001.jpg"]
    assert {one["channel_id"] for one in rows["messages"]} == {channel["id"]}


def test_a_chat_of_an_iphone_is_read_with_its_brackets_and_direction_marks():
    (found,) = CHAT.detect(tree_with({"_chat.txt": IPHONE}, "WhatsApp Chat - Boat club"))
    rows = by_stream(CHAT.read(found, {}))
    assert rows["channels"][0]["name"] == "Boat club"
    first, photo, text = rows["messages"]
    assert (first["author"], first["sent_at"]) == ("Ines", "2023-12-31T21:59:03")
    assert photo["files"] == ["00000002-PHOTO-2023-12-31-21-59-10.jpg"]
    assert (text["author"], text["text"]) == ("Aiko Mori", "Zeile eins\nZeile zwei")


def test_a_file_of_the_export_is_an_attachment():
    items = items_of(CHAT, {"a.txt": ANDROID, "IMG-20240101-WA0001.jpg": b"picture", "notes.md": b"x"})
    attached = [item.attachments for item in items if isinstance(item, Row) and item.attachments]
    assert attached == [{"file": Attachment(b"picture", "image/jpeg")}]


@pytest.mark.parametrize(
    ("line", "time"),
    [
        ("12/31/23, 9:05\u202fPM - A: x", "2023-12-31T21:05:00"),
        ("12/31/23, 12:05 AM - A: x", "2023-12-31T00:05:00"),
        ("31/12/23, 9:05 p. m. - A: x", "2023-12-31T21:05:00"),
        ("31.12.23, 21:05 - A: x", "2023-12-31T21:05:00"),
        ("05.04.23 um 21:05 - A: x", "2023-04-05T21:05:00"),
        ("2023-12-31, 21:05 - A: x", "2023-12-31T21:05:00"),
        ("2023/12/31, 21.05 - A: x", "2023-12-31T21:05:00"),
        ("[31/12/2023, 9:05:06 PM] A: x", "2023-12-31T21:05:06"),
        ("5/4/23, 9:05 PM - A: x", "2023-05-04T21:05:00"),
        ("05/04/23, 21:05 - A: x", "2023-04-05T21:05:00"),
        ("31.12.2023 klo 21.05.06 - A: x", "2023-12-31T21:05:06"),
        ("31.12.23 21.05.06: A: x", "2023-12-31T21:05:06"),
        ("31. 12. 2023 21:05 - A: x", "2023-12-31T21:05:00"),
        ("2023. 12. 31. 21:05 - A: x", "2023-12-31T21:05:00"),
        ("2023/12/31 下午9:05 - A: x", "2023-12-31T21:05:00"),
        ("2023/12/31 凌晨12:05 - A: x", "2023-12-31T00:05:00"),
        ("2023年12月31日 21:05 - A: x", "2023-12-31T21:05:00"),
        ("2023. 12. 31. 오후 9:05, A : x", "2023-12-31T21:05:00"),
        ("31/12/23, ৯:০৫ PM - A: x", "2023-12-31T21:05:00"),
        ("31.12.23, 21:05 Uhr - A: x", "2023-12-31T21:05:00"),
    ],
)
def test_dates_and_clocks_of_many_regions_are_understood(line, time):
    assert times(line) == [time]


def test_a_chat_in_a_form_that_is_not_known_is_reported_and_no_note():
    files = {"WhatsApp Chat with Garden.txt": "On the 31st, in the evening, A wrote x"}
    assert [found.source for found in detect(tree_with(files), BUILT_IN)] == ["chat"]
    (reject,) = rejects_of(CHAT, files)
    assert reject.reason == "No message begins as those of WhatsApp do that are known here."
    log = {"a.txt": "2024-01-01 10:00:00: INFO: started\n"}
    assert [found.source for found in detect(tree_with(log), BUILT_IN)] == ["notes"]


def test_a_date_later_in_the_file_decides_the_order_of_all():
    assert times("02/03/24, 10:00 - A: x\n02/13/24, 10:00 - A: y")[0] == "2024-02-03T10:00:00"


def test_without_a_date_that_decides_the_order_is_that_in_which_time_goes_forward():
    lines = "01/12/23, 10:00 - A: x\n02/01/23, 10:00 - A: y\n03/02/23, 10:00 - A: z"
    assert times(lines)[1] == "2023-02-01T10:00:00"


def test_a_longer_export_of_the_same_chat_has_the_same_keys_for_the_same_messages():
    name = "WhatsApp Chat with Garden.txt"
    whole = [one["id"] for one in rows_of(CHAT, {name: ANDROID})["messages"]]
    begun = ANDROID[: ANDROID.index("01/01/2024")]
    assert [one["id"] for one in rows_of(CHAT, {name: begun})["messages"]] == whole[:3]
    assert len(set(whole)) == len(whole)


def test_lines_before_the_first_message_with_a_real_date_are_rejected():
    (reject,) = rejects_of(CHAT, {"a.txt": "45/45/2023, 10:00 - A: x\n" + ANDROID})
    assert (reject.place, reject.reason) == ("a.txt, line 1", "The line belongs to no message.")


def test_a_text_of_another_kind_is_left_alone():
    assert CHAT.detect(tree_with({"a.txt": "Dear all,\n31/12/2023, 21:58 - x: y", "b.txt": ""})) == []


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CHAT, {"a.txt": ANDROID, "b/_chat.txt": IPHONE, "IMG-20240101-WA0001.jpg": b"picture"})


@settings(max_examples=60, deadline=None)
@given(hostile((ANDROID + IPHONE).encode()))
def test_a_broken_chat_gives_rows_that_can_be_stored_or_rejects(content):
    check_all(CHAT, {"a.txt": b"31/12/2023, 21:58 - A: x\n" + content})


@settings(max_examples=60, deadline=None)
@given(st.text(alphabet="0123456789/.-:, []APMapm\u202f\u200e\nx", max_size=200))
def test_texts_that_look_like_headers_do_no_harm(text):
    check_all(CHAT, {"a.txt": "1/1/23, 1:00 - A: x\n" + text})


SIGNAL = [
    {
        "date": "2024-02-01T09:00:00.250000",
        "sender": "Me",
        "body": "Boat at nine?",
        "quote": "",
        "sticker": None,
        "reactions": [["Sam", "👍"]],
        "attachments": [{"name": "map.png", "path": "media/map.png"}],
    },
    {
        "date": "2024-02-01T09:01:00",
        "sender": "Sam",
        "body": "Yes",
        "quote": "> Boat at nine?\n",
        "sticker": None,
        "reactions": [],
        "attachments": [],
    },
    {
        "date": "2024-02-01T09:02:00",
        "sender": "Sam",
        "body": "",
        "quote": "",
        "reactions": [],
        "attachments": [],
        "sticker": {"id": "1", "emoji": "⛵"},
        "deleted": False,
    },
]
LINES = "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in SIGNAL)


def test_chats_of_signal_are_read_from_their_lines():
    rows = rows_of(CHAT, {"Sam Okafor/data.json": LINES, "Sam Okafor/media/map.png": b"map"})
    (channel,) = rows["channels"]
    assert (channel["name"], channel["service"]) == ("Sam Okafor", "Signal")
    first, second, third = rows["messages"]
    assert (first["author"], first["sent_at"]) == ("Me", "2024-02-01T09:00:00.250000")
    assert (first["reactions"], first["files"]) == (1, ["map.png"])
    assert (second["text"], third["text"]) == ("> Boat at nine?\nYes", "⛵")


@pytest.mark.parametrize("folder", ["", "Sam Okafor/", "私/Sam/"])
def test_the_pages_of_a_signal_export_are_no_notes_but_own_notes_are(folder: str):
    pages = {f"{folder}{name}": "# Boat at nine?" for name in ("chat.md", "index.md", "index.html")}
    files = {f"{folder}data.json": LINES, f"{folder}boat.md": "# My boat", "chat.md.md": "x", **pages}
    found = {one.source: {file.name for file in one.files} for one in detect(tree_with(files), BUILT_IN)}
    assert found == {"notes": {f"{folder}boat.md", "chat.md.md"}, "chat": {f"{folder}data.json", *pages}}
    (chat,) = CHAT.detect(tree_with(files))
    rows = by_stream(CHAT.read(chat, {}))
    assert (len(rows["channels"]), len(rows["messages"])) == (1, 3)


@settings(max_examples=40, deadline=None)
@given(hostile(LINES.encode()))
def test_broken_lines_of_signal_give_rows_that_can_be_stored_or_rejects(content):
    check_all(CHAT, {"Sam/data.json": LINES.encode() + content, "Sam/media/map.png": b"map"})
