"""An export of Telegram Desktop: `result.json` with one chat or with all, and files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.chat.streams import ChatFormat, MediaFiles, directory, reaction_count
from headgate.sources.formats.json_values import JsonValue, json_values, list_of, object_of
from headgate.sources.formats.values import (
    clean,
    integer_of,
    text_of,
    time_of_seconds,
    time_of_text,
    without_empty,
)
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Reject, Row

_FOLDERS = ("chats", "photos", "files", "video_files", "voice_messages")
_CHATS = ("", "chats.list.item.", "left_chats.list.item.")
_MEMBERS = ("name", "type", "id", "messages.item")
_BEGUN = frozenset(chat.removesuffix(".") for chat in _CHATS)
_WANTED = frozenset(chat + member for chat in _CHATS for member in _MEMBERS)
_KINDS = {
    "personal_chat": "direct",
    "bot_chat": "direct",
    "saved_messages": "saved messages",
    "private_group": "group",
    "private_supergroup": "group",
    "public_supergroup": "group",
    "private_channel": "channel",
    "public_channel": "channel",
}
_NOT_INCLUDED = "("


def _find(tree: InputTree) -> Iterator[tuple[dict[str, str], list[InputFile]]]:
    """Recognise `result.json` files by their first members; messages name other files from its directory on."""
    for result in filter(_is_result, tree.files):
        root = directory(result.name)
        beside = tuple(f"{root}{folder}/" for folder in _FOLDERS)
        yield {result.name: root}, [file for file in tree.files if file.name.startswith(beside)]


def _is_result(file: InputFile) -> bool:
    if file.suffix != ".json":
        return False
    head = file.head[:4096]
    is_one = (
        b'"messages"' in head and b'"type"' in head and b'"id"' in head and b'"date_unixtime"' in file.head
    )
    is_old = b'"messages"' in head and b'"from_id"' in file.head
    is_all = b"exported from Telegram" in head or (b'"personal_information"' in head and b'"user_id"' in head)
    return is_one or is_old or is_all


class _Chats:
    """Where the reading is: the chat whose messages come."""

    def __init__(self, file: InputFile, root: str, media: MediaFiles) -> None:
        self._file = file
        self._root = root
        self._media = media
        self._chat: dict[str, Any] = {}
        self._is_given = False

    def read(self, content: IO[bytes]) -> Iterator[Row | Reject]:
        number = 0
        for value in json_values(content, _WANTED, _BEGUN):
            if value.problem is not None or value.path.endswith("messages.item"):
                number += 1
                yield from self._channel()
                yield self._message(value, f"{self._file.name}, message {number}")
            elif value.path in _BEGUN:
                yield from self._channel()
                self._chat, self._is_given = {}, False
            else:
                self._chat[value.path.rpartition(".")[2]] = value.value
        yield from self._channel()

    @property
    def _id(self) -> str:
        return str(integer_of(self._chat.get("id")) or 0)

    @property
    def _name(self) -> str:
        return text_of(self._chat.get("name")) or str(self._chat.get("type") or "chat").replace("_", " ")

    def _channel(self) -> Iterator[Row]:
        if self._is_given or "id" not in self._chat:
            return
        self._is_given = True
        kind = text_of(self._chat.get("type"))
        data = {
            "id": self._id,
            "name": clean(self._name),
            "service": "Telegram",
            "kind": _KINDS.get(kind or "", kind),
        }
        yield Row("channels", without_empty(data), place=f"{self._file.name}, chat {self._id}")

    def _message(self, entry: JsonValue, place: str) -> Row | Reject:
        if entry.problem is not None:
            return Reject(place, entry.problem)
        message = object_of(entry.value)
        number = integer_of(message.get("id"))
        sent_at = time_of_seconds(message.get("date_unixtime")) or time_of_text(message.get("date"))
        if number is None or sent_at is None:
            return Reject(place, "The message has no number or no time.")
        path = next((text for name in ("photo", "file") if (text := text_of(message.get(name)))), None)
        is_there = path is not None and not path.startswith(_NOT_INCLUDED)
        name = text_of(message.get("file_name")) or (path.rpartition("/")[2] if path and is_there else None)
        data = {
            "id": f"{self._id}-{number}",
            "channel_id": self._id,
            "channel": clean(self._name),
            "sent_at": sent_at,
            **_content(message, self._id),
            "files": [name] if name else None,
        }
        attachments = self._media.attachments(f"{self._root}{path}") if is_there else {}
        return Row("messages", without_empty(data), attachments, place)


def _content(message: Mapping[str, Any], chat: str) -> dict[str, Any]:
    is_service = message.get("type") == "service"
    text = _service_text(message) if is_service else _text(message.get("text"))
    answered = integer_of(message.get("reply_to_message_id"))
    return {
        "author": text_of(message.get("from"))
        or text_of(message.get("actor"))
        or text_of(message.get("from_id")),
        "text": text,
        "kind": "notice" if is_service else "message" if text else "media",
        "answers_id": f"{chat}-{answered}" if answered is not None else None,
        "forwarded_from": text_of(message.get("forwarded_from")),
        "edited_at": time_of_seconds(message.get("edited_unixtime")) or time_of_text(message.get("edited")),
        "reactions": reaction_count(message.get("reactions")),
    }


def _text(value: Any) -> str | None:
    """Join a text that is a list of plain parts and of parts with a style or link."""
    if isinstance(value, str):
        return text_of(value)
    parts = (part if isinstance(part, str) else object_of(part).get("text") for part in list_of(value))
    return text_of("".join(part for part in parts if isinstance(part, str)))


def _service_text(message: Mapping[str, Any]) -> str:
    action = (text_of(message.get("action")) or "service message").replace("_", " ")
    people = [name for name in list_of(message.get("members")) if isinstance(name, str)]
    more = [text_of(message.get("title")), *map(text_of, people)]
    return ": ".join(filter(None, (action, ", ".join(filter(None, more)))))


TELEGRAM = ChatFormat(
    "Telegram", _find, lambda file, content, root, media: _Chats(file, root, media).read(content)
)
