"""Chats of Messenger and Instagram in the JSON copy of an account: a directory for each, with `message_1.json` and on.

The older form writes each byte of UTF-8 as a character; chats with end-to-end encryption have a newer form with other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import IO, Any

from headgate.sources.chat.streams import ChatFormat, MediaFiles, directory
from headgate.sources.formats.json_values import json_values, list_of, object_of, objects_of
from headgate.sources.formats.values import RowKeys, digest_of, integer_of, iso_us, text_of, without_empty
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Reject, Row

_HEAD = frozenset({"title", "threadName", "thread_path", "participants.item"})
_FORMS = ((b'"sender_name"', b'"timestamp_ms"'), (b'"senderName"', b'"threadName"'))
_FILES = ("photos", "videos", "audio_files", "audio", "gifs", "files", "media")


def _find(service: str, tree: InputTree) -> Iterator[tuple[dict[str, str], list[InputFile]]]:
    chats = {file.name: service for file in tree.files if _service(tree, file) == service}
    media = tuple(f"{directory(name)}{folder}/" for name in chats for folder in _FILES)
    if chats:
        yield chats, [file for file in tree.files if file.name.startswith(media) and file.name not in chats]


def _service(tree: InputTree, file: InputFile) -> str | None:
    head = file.head if file.suffix == ".json" else b""
    if b'"participants"' not in head or not any(all(name in head for name in form) for form in _FORMS):
        return None
    is_instagram = "instagram" in f"{tree.label}/{file.name}".lower() or b"your_instagram_activity" in head
    return "Instagram" if is_instagram else "Messenger"


def _text(value: Any) -> str | None:
    """Read a text, also one whose UTF-8 was written as if each byte were a character."""
    text = text_of(value)
    try:
        return text_of(text.encode("latin-1").decode()) if text else None
    except ValueError:
        return text


def _chat(file: InputFile, content: IO[bytes], service: str, media: MediaFiles) -> Iterator[Row | Reject]:
    channel, keys = _channel(file, service), RowKeys()
    yield Row("channels", channel, place=file.name)
    for number, entry in enumerate(json_values(content, frozenset({"messages.item"})), 1):
        place, message = f"{file.name}, message {number}", object_of(entry.value)
        milliseconds = integer_of(message.get("timestamp_ms", message.get("timestamp"))) or 0
        sent_at = iso_us(milliseconds * 1000)
        if not milliseconds or sent_at is None:
            yield Reject(place, entry.problem or "The message has no time.")
            continue
        data = {
            "channel_id": channel["id"],
            "channel": channel["name"],
            "sent_at": sent_at,
            **_content(message),
        }
        key = keys.key(channel["id"], sent_at, data["author"], data["text"], data["files"])
        files = [f"{directory(file.name)}{'/'.join(path.split('/')[-2:])}" for path in data["files"]]
        whole = {"id": key, **data, "files": [path.rpartition("/")[2] for path in files]}
        yield Row("messages", without_empty(whole), media.attachments(files[0] if files else None), place)


def _channel(file: InputFile, service: str) -> dict[str, Any]:
    """Read the facts of the chat; some of them stand behind the messages."""
    facts: dict[str, str | None] = {}
    people: list[str] = []
    with file.open() as content:
        for entry in json_values(content, _HEAD):
            if entry.path == "participants.item":
                people += filter(None, [_text(object_of(entry.value).get("name")) or _text(entry.value)])
            else:
                facts[entry.path] = _text(entry.value)
    # The newer form has the number of the chat behind its name.
    name, _, _ = (facts.get("threadName") or "").rpartition("_")
    data = {
        "id": f"{service.lower()}-{digest_of(facts.get('thread_path') or facts.get('threadName') or file.name)}",
        "name": name or facts.get("title") or ", ".join(people) or service,
        "service": service,
        "kind": "group" if len(people) > 2 else "direct",  # noqa: PLR2004 - the two that talk
        "participants": people,
    }
    return without_empty(data)


def _content(message: Mapping[str, Any]) -> dict[str, Any]:
    parts = (message.get("content"), message.get("text"), object_of(message.get("share")).get("link"))
    text = "\n".join(dict.fromkeys(filter(None, map(_text, parts)))) or None
    paths = (text_of(file.get("uri")) for name in _FILES for file in objects_of(message.get(name)))
    return {
        "author": _text(message.get("sender_name", message.get("senderName"))),
        "text": text,
        "kind": "notice" if "call_duration" in message else "message" if text else "media",
        "reactions": len(list_of(message.get("reactions"))) or None,
        "files": list(filter(None, paths)),
    }


MESSENGER = ChatFormat("Messenger", partial(_find, "Messenger"), _chat)
INSTAGRAM = ChatFormat("Instagram", partial(_find, "Instagram"), _chat)
