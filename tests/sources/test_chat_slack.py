"""Exports of Slack workspaces."""

from __future__ import annotations

import json

from hypothesis import given, settings

from headgate.sources.planning import detect
from headgate.sources.registry import CHAT
from headgate.sources.tables.source import TABLES
from tests.sources.source_checks import check_all, hostile, rejects_of, rows_of, tree_with

USERS = [
    {
        "id": "U1",
        "name": "ines",
        "profile": {"real_name": "Ines Albrecht", "email": "ines@example.org", "title": "Mate"},
    },
    {"id": "U2", "name": "sam", "real_name": "Sam Okafor", "deleted": True, "profile": {}},
    {"id": "U3", "name": "pump", "is_bot": True, "profile": {"display_name": "Pump"}},
]
CHANNELS = [
    {
        "id": "C1",
        "name": "boat-club",
        "created": 1700000000,
        "members": ["U1", "U2"],
        "topic": {"value": "Boats"},
        "purpose": {"value": ""},
    }
]
DIRECT = [{"id": "D1", "created": 1700000001, "members": ["U1", "U2"]}]
DAY = [
    {
        "type": "message",
        "user": "U1",
        "ts": "1700000100.000100",
        "text": "Hi <@U2>, see <#C1|boat-club> &amp; <https://x.example|plan>",
        "thread_ts": "1700000100.000100",
        "reply_count": 1,
        "reactions": [{"name": "wave", "users": ["U2"], "count": 2}],
    },
    {
        "type": "message",
        "user": "U2",
        "ts": "1700000160.000200",
        "text": "Done",
        "thread_ts": "1700000100.000100",
        "edited": {"user": "U2", "ts": "1700000170.000000"},
        "files": [{"id": "F1", "name": "pump.pdf", "url_private": "https://files.example/x?t=secret"}],
    },
    {
        "type": "message",
        "subtype": "channel_join",
        "user": "U2",
        "ts": "1700000050.000000",
        "text": "<@U2> has joined",
    },
    {
        "type": "message",
        "subtype": "bot_message",
        "bot_id": "B9",
        "username": "Pump",
        "ts": "1700000200.000000",
        "text": "",
        "attachments": [{"fallback": "Water is high."}],
    },
]
FILES = {
    "users.json": json.dumps(USERS),
    "channels.json": json.dumps(CHANNELS),
    "dms.json": json.dumps(DIRECT),
    "integration_logs.json": '[{"user_id": "U1", "date": "1700000000"}]',
    "boat-club/2023-11-14.json": json.dumps(DAY),
    "D1/2023-11-14.json": json.dumps([{"user": "U1", "ts": "1700000300.000000", "text": "Only for you"}]),
}


def test_a_file_of_an_older_export_is_named_and_what_lies_beside_it_is_no_table():
    old = [
        {
            "user": "U1",
            "ts": "1488368000.000001",
            "text": "See",
            "subtype": "file_share",
            "file": {"name": "a.png"},
        }
    ]
    files = {**FILES, "boat-club/2017-03-01.json": json.dumps(old), "canvases.json": '[{"id": "F1"}]'}
    assert [one["files"] for one in rows_of(CHAT, files)["messages"] if one["text"] == "See"] == [["a.png"]]
    (export,) = detect(tree_with(files), [CHAT, TABLES])
    assert {file.name for file in export.files} == files.keys()


def test_people_and_channels_have_their_names():
    rows = rows_of(CHAT, FILES)
    assert [(one["name"], one["user"], one["is_bot"], one["is_deleted"]) for one in rows["members"]] == [
        ("Ines Albrecht", "ines", False, False),
        ("Sam Okafor", "sam", False, True),
        ("Pump", "pump", True, False),
    ]
    club, direct = rows["channels"]
    assert club == {
        "id": "C1",
        "name": "boat-club",
        "service": "Slack",
        "kind": "channel",
        "topic": "Boats",
        "participants": ["Ines Albrecht", "Sam Okafor"],
        "created_at": "2023-11-14T22:13:20Z",
        "is_archived": False,
    }
    assert (direct["id"], direct["name"], direct["kind"]) == ("D1", "Ines Albrecht, Sam Okafor", "direct")


def test_messages_have_names_in_place_of_ids_and_know_their_thread():
    private, first, answer, joined, bot = rows_of(CHAT, FILES)["messages"]
    assert first == {
        "id": "C1-1700000100.000100",
        "channel_id": "C1",
        "channel": "boat-club",
        "author": "Ines Albrecht",
        "sent_at": "2023-11-14T22:15:00.000100Z",
        "text": "Hi @Sam Okafor, see #boat-club & plan (https://x.example)",
        "kind": "message",
        "thread_id": "C1-1700000100.000100",
        "reactions": 2,
        "replies": 1,
    }
    assert (answer["thread_id"], answer["files"]) == (first["id"], ["pump.pdf"])
    assert answer["edited_at"] == "2023-11-14T22:16:10Z"
    assert (joined["kind"], joined["text"]) == ("notice", "@Sam Okafor has joined")
    assert (bot["author"], bot["text"]) == ("Pump", "Water is high.")
    assert (private["channel_id"], private["channel"]) == ("D1", "Ines Albrecht, Sam Okafor")


def test_the_secret_addresses_of_files_are_left_out():
    assert "secret" not in str(rows_of(CHAT, FILES))


def test_the_connection_is_named_by_the_workspace():
    label = "Boat club Slack export Nov 1 2023 - Dec 1 2023"
    assert [one.title for one in CHAT.detect(tree_with(FILES, label))] == ["Slack: Boat club"]
    nested = {f"{label}/{name}": content for name, content in FILES.items()}
    (found,) = CHAT.detect(tree_with(nested))
    assert (found.title, len(found.files)) == ("Slack: Boat club", 6)


def test_a_list_of_users_alone_is_no_export():
    assert CHAT.detect(tree_with({"users.json": json.dumps(USERS)})) == []


def test_broken_entries_are_rejected_with_their_place():
    day = json.dumps([{"text": "no time"}, "text", *DAY])[:-1]
    reasons = [
        (one.place, one.reason) for one in rejects_of(CHAT, {**FILES, "boat-club/2023-11-14.json": day})
    ]
    assert reasons == [
        ("boat-club/2023-11-14.json, entry 1", "The message has no time."),
        ("boat-club/2023-11-14.json, entry 2", "The message has no time."),
        ("boat-club/2023-11-14.json, entry 7", "The rest is not JSON; the file may be cut."),
    ]


def test_every_row_can_be_stored_and_reading_again_or_from_a_mark_gives_the_same():
    check_all(CHAT, FILES)


@settings(max_examples=40, deadline=None)
@given(hostile(json.dumps(DAY).encode()), hostile(json.dumps(USERS).encode()))
def test_a_broken_export_gives_rows_that_can_be_stored_or_rejects(day, users):
    check_all(CHAT, {**FILES, "boat-club/2023-11-14.json": day, "users.json": users})
