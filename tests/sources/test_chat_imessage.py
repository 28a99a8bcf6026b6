"""The database of Messages: chats and texts, also styled ones, of old and new versions."""

from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings, strategies as st

from headgate.sources.chat import imessage
from headgate.sources.protocol import Mark, Reject
from headgate.sources.registry import CHAT
from tests.sources.reading import check_resume, only, read_all, rejects_of, rows_of, tree_from

#: Nanoseconds since 2001 of 2026-03-01T08:00:00Z, and the same in seconds.
NANO = 794_044_800_000_000_000
TABLES = """
CREATE TABLE message(ROWID INTEGER PRIMARY KEY, guid, text, attributedBody, handle_id, date, is_from_me, item_type,
  associated_message_type, thread_originator_guid);
CREATE TABLE handle(ROWID INTEGER PRIMARY KEY, id);
CREATE TABLE chat(ROWID INTEGER PRIMARY KEY, guid, chat_identifier, display_name, style);
CREATE TABLE chat_message_join(chat_id, message_id);
CREATE TABLE chat_handle_join(chat_id, handle_id);
INSERT INTO handle VALUES (1, '+431234'), (2, 'sam@example.org');
INSERT INTO chat VALUES (1, 'iMessage;-;+431234', '+431234', '', 45), (2, 'iMessage;+;chat7', 'chat7', 'Garden', 43);
INSERT INTO chat_handle_join VALUES (1, 1), (2, 1), (2, 2);
"""


def styled(text: str) -> bytes:
    raw = text.encode()
    length = bytes([len(raw)]) if len(raw) < 0x80 else b"\x81" + len(raw).to_bytes(2, "little")
    return (
        b"\x04\x0bstreamtyped\x81\xe8\x03\x84\x01@\x84NSString\x01\x94\x84\x01+" + length + raw + b"\x86\x84"
    )


MESSAGES = [
    (1, "A", "The gate is open", None, 1, NANO, 0, 0, 0, None),
    (2, "B", None, styled("Grüße"), 0, NANO + 10**9, 1, 0, 0, "A"),
    (3, "C", None, styled("long " * 60), 2, 794_044_800, 0, 0, 0, None),
    (4, "D", "Loved it", None, 1, NANO, 0, 0, 2000, None),
    (5, "E", None, None, 2, NANO, 0, 2, 0, None),
    (6, "F", "\ufffc", None, 2, NANO, 0, 0, 0, None),
    (7, "G", "no time", None, 2, 0, 0, 0, 0, None),
]


@pytest.fixture(scope="module")
def content(tmp_path_factory) -> bytes:
    path = tmp_path_factory.mktemp("messages") / "chat.db"
    return database(path)


def database(path: Path, tables: str = TABLES) -> bytes:
    made = apsw.Connection(str(path))
    made.execute(tables)
    made.executemany(f"INSERT INTO message VALUES ({', '.join('?' * 10)})", MESSAGES)
    chats = [(1 if one[0] < 3 else 2, one[0]) for one in MESSAGES]
    made.executemany("INSERT INTO chat_message_join VALUES (?, ?)", chats)
    made.close()
    return path.read_bytes()


def test_chats_and_messages_are_read(content):
    found = only(CHAT, {"chat.db": content})
    items = read_all(CHAT, found)
    direct, group = rows_of(items, "channels")
    assert (direct["name"], direct["kind"], direct["participants"]) == ("+431234", "direct", ["+431234"])
    assert (group["name"], group["kind"]) == ("Garden", "group")
    rows = {row["id"]: row for row in rows_of(items, "messages")}
    assert rows["A"] == {
        "id": "A",
        "channel_id": direct["id"],
        "channel": "+431234",
        "author": "+431234",
        "sent_at": "2026-03-01T08:00:00Z",
        "text": "The gate is open",
        "kind": "message",
    }
    assert (rows["B"]["text"], rows["B"]["author"], rows["B"]["answers_id"]) == ("Grüße", "me", "A")
    assert (rows["C"]["text"], rows["C"]["sent_at"]) == (("long " * 60).strip(), "2026-03-01T08:00:00Z")
    assert (rows["E"]["kind"], rows["F"]["kind"], "D" in rows) == ("notice", "media", False)
    assert [reject.reason for reject in rejects_of(items)] == ["It has no id or no time."]
    check_resume(CHAT, found)


def test_a_database_of_something_else_is_rejected(tmp_path):
    made = apsw.Connection(str(tmp_path / "chat.db"))
    made.execute("CREATE TABLE message(a)")
    made.close()
    items = read_all(CHAT, only(CHAT, {"chat.db": (tmp_path / "chat.db").read_bytes()}))
    assert [type(item) for item in items] == [Reject, Mark]


@settings(max_examples=40, deadline=None)
@given(at=st.integers(0, 60_000), noise=st.one_of(st.none(), st.binary(min_size=1, max_size=200)))
def test_a_damaged_database_gives_rows_that_can_be_stored_or_rejects(content, at, noise):
    at %= len(content)
    broken = content[:at] if noise is None else content[:at] + noise + content[at + len(noise) :]
    for found in CHAT.detect(tree_from({"chat.db": broken})):
        read_all(CHAT, found)


@given(st.binary(max_size=60))
def test_any_bytes_of_a_styled_text_are_text_or_nothing(body):
    found = imessage._styled(b"NSString" + body)
    assert found is None or isinstance(found, str)
