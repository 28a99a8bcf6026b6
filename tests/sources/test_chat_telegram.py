"""Exports of Telegram Desktop."""

from __future__ import annotations

import json

from hypothesis import given, settings

from headgate.sources.protocol import Attachment, Row
from headgate.sources.registry import CHAT
from tests.sources.source_checks import (
    by_stream,
    check_all,
    hostile,
    items_of,
    rejects_of,
    rows_of,
    tree_with,
)

MESSAGES = [
    {
        "id": 1,
        "type": "service",
        "date": "2024-02-01T09:00:00",
        "date_unixtime": "1706774400",
        "actor": "Ines Albrecht",
        "action": "invite_members",
        "members": ["Sam Okafor"],
        "text": "",
    },
    {
        "id": 2,
        "type": "message",
        "date": "2024-02-01T09:01:00",
        "date_unixtime": "1706774460",
        "from": "Sam Okafor",
        "from_id": "user2",
        "text": [
            "Look at ",
            {"type": "bold", "text": "this"},
            ": ",
            {"type": "link", "text": "https://x.example"},
        ],
        "reply_to_message_id": 1,
        "edited_unixtime": "1706774500",
        "forwarded_from": "Aiko Mori",
        "reactions": [{"type": "emoji", "count": 3, "emoji": "👍"}],
    },
    {
        "id": 3,
        "type": "message",
        "date": "2024-02-01T09:02:00",
        "from": "Sam Okafor",
        "from_id": "user2",
        "photo": "photos/photo_1.jpg",
        "text": "",
    },
    {
        "id": 4,
        "type": "message",
        "date": "2024-02-01T09:03:00",
        "from": None,
        "from_id": "user9",
        "file": "(File not included. Change data exporting settings to download.)",
        "file_name": "plan.pdf",
        "text": "",
    },
]
ONE = {"name": "Garden", "type": "private_group", "id": 77, "messages": MESSAGES}
ALL = {
    "about": "Here is the data you requested.",
    "personal_information": {"user_id": 1, "first_name": "Ines"},
    "chats": {
        "about": "This page lists all chats.",
        "list": [ONE, {"type": "saved_messages", "id": 5, "messages": []}, {**ONE, "name": None, "id": 78}],
    },
    "left_chats": {"list": [{**ONE, "name": "Left", "id": 79}]},
}


def test_one_chat_is_read_with_service_lines_answers_and_files():
    rows = rows_of(CHAT, {"result.json": json.dumps(ONE, indent=1), "photos/photo_1.jpg": b"picture"})
    assert rows["channels"] == [{"id": "77", "name": "Garden", "service": "Telegram", "kind": "group"}]
    service, text, photo, missing = rows["messages"]
    assert (service["kind"], service["text"]) == ("notice", "invite members: Sam Okafor")
    assert text == {
        "id": "77-2",
        "channel_id": "77",
        "channel": "Garden",
        "author": "Sam Okafor",
        "sent_at": "2024-02-01T08:01:00Z",
        "text": "Look at this: https://x.example",
        "kind": "message",
        "answers_id": "77-1",
        "forwarded_from": "Aiko Mori",
        "edited_at": "2024-02-01T08:01:40Z",
        "reactions": 3,
    }
    assert (photo["kind"], photo["files"], photo["sent_at"]) == (
        "media",
        ["photo_1.jpg"],
        "2024-02-01T09:02:00",
    )
    assert (missing["author"], missing["files"]) == ("user9", ["plan.pdf"])


def test_a_file_beside_the_messages_is_an_attachment():
    items = items_of(CHAT, {"x/result.json": json.dumps(ONE), "x/photos/photo_1.jpg": b"picture"})
    attached = [item.attachments["file"] for item in items if isinstance(item, Row) and item.attachments]
    assert attached == [Attachment(b"picture", "image/jpeg")]


def test_an_export_of_everything_has_its_chats_apart():
    rows = rows_of(CHAT, {"result.json": json.dumps(ALL)})
    assert [(one["id"], one["name"]) for one in rows["channels"]] == [
        ("77", "Garden"),
        ("5", "saved messages"),
        ("78", "private group"),
        ("79", "Left"),
    ]
    assert [one["channel_id"] for one in rows["messages"]] == ["77"] * 4 + ["78"] * 4 + ["79"] * 4
    assert len({one["id"] for one in rows["messages"]}) == 12


def test_a_message_that_nests_too_deep_is_rejected_and_the_next_one_is_read():
    deep = '{"id": 9, "text": ' + "[" * 100 + "]" * 100 + "}, "
    content = json.dumps(ONE).replace('{"id": 2', deep + '{"id": 2')
    items = items_of(CHAT, {"result.json": content})
    (reject,) = rejects_of(CHAT, {"result.json": content})
    assert len(by_stream(items)["messages"]) == 4
    assert reject.reason == "It nests deeper than 64 levels."


def test_another_json_file_is_left_alone():
    assert CHAT.detect(tree_with({"result.json": "[]", "b.json": '{"messages": [{"id": 1}]}'})) == []


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CHAT, {"result.json": json.dumps(ALL), "photos/photo_1.jpg": b"picture"})


@settings(max_examples=60, deadline=None)
@given(hostile(json.dumps(ALL).encode()))
def test_a_broken_export_gives_rows_that_can_be_stored_or_rejects(content):
    check_all(CHAT, {"result.json": content})
