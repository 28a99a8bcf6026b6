"""Chats of Signal as the program signal-export writes them: a directory for each chat with a `data.json` of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.chat.streams import ChatFormat, MediaFiles, directory
from headgate.sources.formats.json_values import json_line, list_of, object_of, objects_of
from headgate.sources.formats.texts import byte_lines
from headgate.sources.formats.values import RowKeys, clean, digest_of, text_of, time_of_text, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Reject, Row

#: What the program writes beside a chat's lines: the same messages as pages.
_PAGES = ("chat.md", "index.md", "index.html")
_MEMBERS = (b'{"date": "', b'"sender": ', b'"body": ', b'"quote": ')


def _find(tree: InputTree) -> Iterator[tuple[dict[str, str], list[InputFile]]]:
    """Recognise the files by their name and their first line; a chat is called as its directory."""
    folders = {file.name: directory(file.name) for file in tree.files if _is_chat(file)}
    media = tuple(f"{folder}media/" for folder in folders.values())
    pages = {f"{folder}{name}" for folder in folders.values() for name in _PAGES}
    names = {
        name: clean(folder.rstrip("/").rpartition("/")[2] or tree.label) for name, folder in folders.items()
    }
    if names:
        yield names, [file for file in tree.files if file.name.startswith(media) or file.name in pages]


def _is_chat(file: InputFile) -> bool:
    if file.name.rpartition("/")[2] != "data.json":
        return False
    first = file.head.partition(b"\n")[0]
    return first.startswith(_MEMBERS[0]) and all(member in first for member in _MEMBERS)


def _chat(file: InputFile, content: IO[bytes], name: str, media: MediaFiles) -> Iterator[Row | Reject]:
    channel = {"id": f"signal-{digest_of(name)}", "name": name, "service": "Signal", "kind": "chat"}
    yield Row("channels", channel, place=file.name)
    keys, time = RowKeys(), ""
    for number, line in enumerate(byte_lines(content), 1):
        place = f"{file.name}, line {number}"
        message = json_line(line)
        sent_at = time_of_text(message.get("date")) if message is not None else None
        if message is None or sent_at is None:
            yield Reject(place, "The line is no message with a time.")
            continue
        if sent_at != time:
            keys, time = RowKeys(), sent_at
        data = {
            "id": "",
            "channel_id": channel["id"],
            "channel": name,
            "sent_at": sent_at,
            **_content(message),
        }
        data["id"] = keys.key(name, sent_at, data["author"], data["text"])
        path = next(
            (text_of(attached.get("path")) for attached in objects_of(message.get("attachments"))), None
        )
        attachments = media.attachments(f"{directory(file.name)}{path}") if path else {}
        yield Row("messages", without_empty(data), attachments, place)


def _content(message: Mapping[str, Any]) -> dict[str, Any]:
    text = "".join(part for part in (text_of(message.get("quote")), text_of(message.get("body"))) if part)
    sticker = text_of(object_of(message.get("sticker")).get("emoji"))
    names = (text_of(file.get("name") or file.get("path")) for file in objects_of(message.get("attachments")))
    is_system = message.get("call") is True or message.get("deleted") is True
    visible = text or sticker or ("(deleted)" if message.get("deleted") is True else None)
    return {
        "author": text_of(message.get("sender")),
        "text": visible,
        "kind": "notice" if is_system else "message" if visible else "media",
        "reactions": len(list_of(message.get("reactions"))) or None,
        "files": [name for name in names if name],
    }


SIGNAL = ChatFormat("Signal", _find, _chat)
