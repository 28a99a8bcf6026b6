"""Messages of Apple's Messages: the database `chat.db` of a Mac, or one that a backup of a phone has as `sms.db`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.errors import InvalidRequest
from headgate.model.instants import iso
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.databases import HEADER, DatabaseError, ForeignDatabase, opened
from headgate.sources.formats.texts import clean, one_line
from headgate.sources.formats.values import decoded, id_of, without_empty
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_NAMES = frozenset({"chat.db", "sms.db"})
_TABLES = frozenset({"message", "handle", "chat", "chat_message_join"})
_NEEDED = frozenset({"guid", "text", "date", "is_from_me", "handle_id"})
#: Columns that not every version has.
_OPTIONAL = ("attributedBody", "item_type", "associated_message_type", "thread_originator_guid")
_EPOCH_US = 978_307_200_000_000  # 2001-01-01
#: Older versions count seconds, newer ones nanoseconds.
_SECONDS_BELOW = 10**11
_MAX_BLOB = 1024 * 1024
_MAX_NAME = 300
_GROUP_STYLE = 43
_MARK = b"NSString"
_BEFORE_LENGTH = 5
_LONGER = {0x81: 2, 0x82: 4}
_LAST_US = 253_402_300_799_000_000  # The year 9999.


def _is_database(file: InputFile) -> bool:
    """Recognise the database by its name, and by its tables when it is read."""
    return file.name.rpartition("/")[2] in _NAMES and file.head.startswith(HEADER)


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    del content
    try:
        with file.on_disk() as path, opened(path) as database:
            columns = set(database.columns("message"))
            if not set(database.tables()) >= _TABLES or not columns >= _NEEDED:
                yield Reject(file.name, "It is no database of Messages that is known here.")
                return
            names: dict[str, str] = {}
            for channel in _channels(database):
                names[channel["id"]] = channel["name"]
                yield Row("channels", channel, place=file.name)
            yield from _messages(file.name, database, columns, names)
    except (InvalidRequest, DatabaseError):
        yield Reject(file.name, "The database is damaged; the rest of it cannot be read.")


def _channels(database: ForeignDatabase) -> Iterator[dict[str, Any]]:
    query = (
        "SELECT c.guid, CAST(c.display_name AS BLOB), CAST(c.chat_identifier AS BLOB), c.style, "
        "(SELECT group_concat(h.id, char(10)) FROM chat_handle_join j JOIN handle h ON h.ROWID = j.handle_id "
        "WHERE j.chat_id = c.ROWID) FROM chat c ORDER BY c.ROWID"
    )
    if "chat_handle_join" not in database.tables():
        query = query.partition("(SELECT")[0] + "NULL FROM chat c ORDER BY c.ROWID"
    for guid, name, identifier, style, people in database.rows(query):
        label = _text(name, _MAX_NAME) or _text(identifier, _MAX_NAME) or str(guid)
        yield without_empty(
            {
                "id": _channel_id(guid),
                "name": label,
                "service": "iMessage",
                "kind": "group" if style == _GROUP_STYLE else "direct",
                "participants": sorted(str(people).split("\n")) if people else None,
            }
        )


def _messages(
    place: str, database: ForeignDatabase, columns: set[str], names: Mapping[str, str]
) -> Iterator[Row | Reject]:
    more = ", ".join(
        (f"substr(m.{name}, 1, {_MAX_BLOB})" if name == "attributedBody" else f"m.{name}")
        if name in columns
        else "NULL"
        for name in _OPTIONAL
    )
    # Texts come as bytes, so that one that is not UTF-8 spoils nothing but itself.
    query = (
        f"SELECT m.guid, CAST(m.text AS BLOB), m.date, m.is_from_me, CAST(h.id AS BLOB), c.guid, {more} "  # noqa: S608 - our own names
        "FROM message m JOIN chat_message_join j ON j.message_id = m.ROWID JOIN chat c ON c.ROWID = j.chat_id "
        "LEFT JOIN handle h ON h.ROWID = m.handle_id ORDER BY m.ROWID, c.ROWID"
    )
    for number, (guid, text, date, is_mine, author, chat, body, kind, reaction, thread) in enumerate(
        database.rows(query), 1
    ):
        sent_at = _time(date)
        if not isinstance(guid, str) or not guid or sent_at is None:
            yield Reject(f"{place}, message {number}", "It has no id or no time.")
        elif not reaction:
            visible = clean(_plain(text) or (_styled(body) if isinstance(body, bytes) else None))
            data = {
                "id": id_of(guid),
                "channel_id": _channel_id(chat),
                "channel": names.get(_channel_id(chat)),
                "author": "me" if is_mine else _text(author, _MAX_NAME),
                "sent_at": sent_at,
                "text": visible,
                "kind": "notice" if kind else "message" if visible else "media",
                "answers_id": id_of(thread) if isinstance(thread, str) and thread else None,
            }
            yield Row("messages", without_empty(data), place=f"{place}, message {number}")


def _channel_id(guid: Any) -> str:
    return f"imessage-{id_of(str(guid))}"


def _plain(text: Any) -> str | None:
    # The sign stands for an attachment.
    return decoded(text).replace("\ufffc", "").strip() if isinstance(text, bytes) else None


def _text(value: Any, limit: int) -> str | None:
    return one_line(decoded(value), limit) if isinstance(value, bytes) else None


def _styled(body: bytes) -> str | None:
    """Take the text from a styled one, which newer versions store alone: its length stands before it."""
    at = body.find(_MARK)
    if at < 0:
        return None
    at += len(_MARK) + _BEFORE_LENGTH
    size, width = int.from_bytes(body[at : at + 1]), 1
    if size in _LONGER:
        width = 1 + _LONGER[size]
        size = int.from_bytes(body[at + 1 : at + width], "little")
    text = body[at + width : at + width + size]
    return _plain(text) if len(text) == size else None


def _time(value: Any) -> str | None:
    if not isinstance(value, int) or value <= 0:
        return None
    microseconds = _EPOCH_US + (value * 1_000_000 if value < _SECONDS_BELOW else value // 1000)
    return iso(microseconds) if microseconds <= _LAST_US else None


IMESSAGE = FileFormat("iMessage", _is_database, _read)
