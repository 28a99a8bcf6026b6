"""Chats of Messenger and Instagram, in the two forms in which their copies are written."""

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


def escaped(text: str) -> str:
    """Write each byte of UTF-8 as a character, as the copies do."""
    return text.encode().decode("latin-1")


OLD = {
    "participants": [{"name": escaped("Zoë Łoś")}, {"name": "Ada"}],
    "messages": [
        {
            "sender_name": "Ada",
            "timestamp_ms": 1772352060123,
            "content": escaped("Grüße 🚤"),
            "reactions": [{"reaction": "x"}],
        },
        {
            "sender_name": escaped("Zoë Łoś"),
            "timestamp_ms": 1772352000000,
            "photos": [{"uri": "your/messages/inbox/zoe_1/photos/gate.jpg"}],
        },
        {
            "sender_name": "Ada",
            "timestamp_ms": 1772351990000,
            "content": "Look",
            "share": {"link": "https://weir.example/"},
        },
        {"sender_name": "Ada", "timestamp_ms": 1772351980000, "content": "Ada called", "call_duration": 12},
        {"sender_name": "Ada", "content": "when?"},
    ],
    "title": escaped("Zoë Łoś"),
    "thread_path": "inbox/zoe_1",
}
NEW = {
    "participants": ["Ada", "Zoë", "Bo"],
    "threadName": "Boat club_7",
    "messages": [
        {"senderName": "Zoë", "text": "café", "timestamp": 1772352060123, "type": "text", "media": []},
        {"senderName": "Ada", "text": "", "timestamp": 1772352070000, "media": [{"uri": "./media/gate.jpg"}]},
    ],
}
FILES = {
    "messages/inbox/zoe_1/message_1.json": json.dumps(OLD),
    "e2ee/Boat club_7.json": json.dumps(NEW, ensure_ascii=False),
}


def test_a_chat_of_messenger_is_read_with_its_letters_and_its_files():
    files = {
        "messages/inbox/zoe_1/message_1.json": json.dumps(OLD),
        "messages/inbox/zoe_1/photos/gate.jpg": "JPG",
    }
    items = items_of(CHAT, files)
    rows = by_stream(items)
    (channel,) = rows["channels"]
    assert (channel["name"], channel["service"], channel["kind"]) == ("Zoë Łoś", "Messenger", "direct")
    assert channel["participants"] == ["Zoë Łoś", "Ada"]
    assert [(one["author"], one["kind"], one.get("text")) for one in rows["messages"]] == [
        ("Ada", "message", "Grüße 🚤"),
        ("Zoë Łoś", "media", None),
        ("Ada", "message", "Look\nhttps://weir.example/"),
        ("Ada", "notice", "Ada called"),
    ]
    assert (rows["messages"][0]["sent_at"], rows["messages"][0]["reactions"]) == (
        "2026-03-01T08:01:00.123000Z",
        1,
    )
    (with_file,) = [item for item in items if isinstance(item, Row) and item.attachments]
    assert (with_file.data["files"], with_file.attachments["file"]) == (
        ["gate.jpg"],
        Attachment(b"JPG", "image/jpeg"),
    )
    assert [reject.reason for reject in rejects_of(CHAT, files)] == ["The message has no time."]


def test_a_chat_with_end_to_end_encryption_is_read():
    files = {"Boat club_7.json": json.dumps(NEW, ensure_ascii=False), "media/gate.jpg": "JPG"}
    rows = rows_of(CHAT, files)
    (channel,) = rows["channels"]
    assert (channel["name"], channel["kind"], channel["participants"]) == (
        "Boat club",
        "group",
        ["Ada", "Zoë", "Bo"],
    )
    assert [(one["author"], one.get("text"), one.get("files")) for one in rows["messages"]] == [
        ("Zoë", "café", None),
        ("Ada", None, ["gate.jpg"]),
    ]


def test_the_parts_of_a_chat_are_one_channel_and_a_later_copy_adds_only_what_is_new():
    first = rows_of(
        CHAT, {"inbox/zoe_1/message_1.json": json.dumps({**OLD, "messages": OLD["messages"][1:4]})}
    )
    parts = {
        "inbox/zoe_1/message_1.json": json.dumps({**OLD, "messages": OLD["messages"][:2]}),
        "inbox/zoe_1/message_2.json": json.dumps({**OLD, "messages": OLD["messages"][2:4]}),
    }
    later = rows_of(CHAT, parts)
    assert len({one["id"] for one in later["channels"]}) == 1
    before, after = ({one["id"] for one in rows["messages"]} for rows in (first, later))
    assert (before < after, len(after)) == (True, 4)


def test_instagram_and_messenger_are_two_connections_and_other_files_beside_chats_are_not_taken():
    files = {
        "your_instagram_activity/messages/inbox/zoe_1/message_1.json": json.dumps(OLD),
        "facebook/inbox/zoe_1/message_1.json": json.dumps(OLD),
        "facebook/inbox/zoe_1/note.md": "# Mine",
    }
    found = {one.title: [file.name for file in one.files] for one in detect(tree_with(files), BUILT_IN)}
    assert found == {
        "Instagram": ["your_instagram_activity/messages/inbox/zoe_1/message_1.json"],
        "Messenger": ["facebook/inbox/zoe_1/message_1.json"],
        "Notes: export": ["facebook/inbox/zoe_1/note.md"],
    }


@pytest.mark.parametrize("name", FILES)
def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same(name: str):
    check_all(CHAT, {name: FILES[name]})


@settings(max_examples=30, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(FILES)))
def test_a_broken_copy_gives_rows_that_can_be_stored_or_rejects(data, name: str):
    check_all(CHAT, {name: data.draw(hostile(FILES[name].encode()))})
