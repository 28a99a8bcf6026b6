"""Chats of Signal as the program signal-export writes them: a directory for each chat with a `data.json` of lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

from headgate.sources.chat.shape import MediaFiles, directory
from headgate.sources.identity import RowKeys, digest_of
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.json_values import json_line, list_of, object_of, objects_of
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row
from headgate.sources.texts import byte_lines
from headgate.sources.values import clean, text_of, time_of_text, without_empty

SERVICE = "Signal"
_MEMBERS = (b'{"date": "', b'"sender": ', b'"body": ', b'"quote": ')


def detect(tree: InputTree) -> Sequence[Recognised]:
    """Recognise the files by their name and their first line."""
    chats = [file for file in tree.files if _is_chat(file)]
    if not chats:
        return []
    folders = tuple(f"{directory(file.name)}media/" for file in chats)
    media = [file for file in tree.files if file.name.startswith(folders)]
    names = {file.name: directory(file.name).rstrip("/").rpartition("/")[2] or tree.label for file in chats}
    facts = {"service": SERVICE, "chats": names}
    return [Recognised("chat", SERVICE, [*chats, *media], Certainty.EXPORT, facts)]


def _is_chat(file: InputFile) -> bool:
    if file.name.rpartition("/")[2] != "data.json":
        return False
    first = file.head.partition(b"\n")[0]
    return first.startswith(_MEMBERS[0]) and all(member in first for member in _MEMBERS)


def read(found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
    """Read chat by chat, message by message."""
    names: Mapping[str, str] = found.facts["chats"]
    media = MediaFiles([file for file in found.files if file.name not in names])

    def read_one(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
        name = names.get(file.name)
        return iter(()) if name is None else _chat(file, content, clean(name), media)

    return read_each(found, resume, read_one)


def _chat(file: InputFile, content: IO[bytes], name: str, media: MediaFiles) -> Iterator[Row | Reject]:
    channel = {"id": f"signal-{digest_of(name)}", "name": name, "service": SERVICE, "kind": "chat"}
    yield Row("channels", channel, place=file.name)
    keys, time = RowKeys(), ""
    for number, line in enumerate(byte_lines(content), 1):
        place = f"{file.name}, line {number}"
        one = json_line(line)
        sent_at = time_of_text(one.get("date")) if one is not None else None
        if one is None or sent_at is None:
            yield Reject(place, "The line is no message with a time.")
            continue
        if sent_at != time:
            keys, time = RowKeys(), sent_at
        data = {"id": "", "channel_id": channel["id"], "channel": name, "sent_at": sent_at, **_content(one)}
        data["id"] = keys.key(name, sent_at, data["author"], data["text"])
        path = next((text_of(attached.get("path")) for attached in objects_of(one.get("attachments"))), None)
        attachments = media.attachments(f"{directory(file.name)}{path}") if path else {}
        yield Row("messages", without_empty(data), attachments, place)


def _content(one: Mapping[str, Any]) -> dict[str, Any]:
    text = "".join(part for part in (text_of(one.get("quote")), text_of(one.get("body"))) if part)
    sticker = text_of(object_of(one.get("sticker")).get("emoji"))
    names = (text_of(file.get("name") or file.get("path")) for file in objects_of(one.get("attachments")))
    is_system = one.get("call") is True or one.get("deleted") is True
    shown = text or sticker or ("(deleted)" if one.get("deleted") is True else None)
    return {
        "author": text_of(one.get("sender")),
        "text": shown,
        "kind": "notice" if is_system else "message" if shown else "media",
        "reactions": len(list_of(one.get("reactions"))) or None,
        "files": [name for name in names if name],
    }
