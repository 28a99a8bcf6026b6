"""The export of Claude: `conversations.json`, a list of conversations with their messages in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.shape import anthropic_content, message_fields, title_of
from headgate.sources.identity import digest_of
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import json_values, object_of, objects_of
from headgate.sources.protocol import Reject, Row
from headgate.sources.values import id_of, text_of, time_of_text, without_empty

SERVICE = "Claude"
_ITEMS = frozenset({"item"})
_AUTHORS = {"human": "user"}
#: The parent of the first message of a conversation.
_NO_MESSAGE = "00000000-0000-4000-8000-000000000000"


def is_export(file: InputFile) -> bool:
    """Recognise the file by its name and first members."""
    name = file.name.rpartition("/")[2]
    return name.startswith("conversations") and file.suffix == ".json" and b'"chat_messages"' in file.head


def read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    for number, found in enumerate(json_values(content, _ITEMS), 1):
        place = f"{file.name}, conversation {number}"
        one = object_of(found.value)
        if found.problem is not None or "chat_messages" not in one:
            yield Reject(place, found.problem or "It is no conversation.")
        else:
            yield from _conversation(one, place)


def _conversation(one: Mapping[str, Any], place: str) -> Iterator[Row]:
    key = text_of(one.get("uuid"))
    own = id_of(key) if key else digest_of(one.get("name"), one.get("created_at"))
    messages = objects_of(one.get("chat_messages"))
    title = text_of(one.get("name")) or title_of(messages[0].get("text") if messages else None)
    started_at = time_of_text(one.get("created_at"))
    data = {
        "id": own,
        "title": title,
        "service": SERVICE,
        "started_at": started_at,
        "updated_at": time_of_text(one.get("updated_at")),
        "model": text_of(one.get("model")),
        "message_count": len(messages),
        "summary": text_of(one.get("summary")),
    }
    yield Row("conversations", without_empty(data), place=place)
    branch = _branch(text_of(one.get("current_leaf_message_uuid")), messages)
    known = {"conversation_id": own, "conversation": title, "sent_at": started_at}
    for position, message in enumerate(messages):
        name = text_of(message.get("uuid"))
        is_current = branch is None or name in branch
        yield Row("messages", _message(message, known, position, is_current=is_current), place=place)


def _branch(leaf: str | None, messages: list[dict[str, Any]]) -> frozenset[str] | None:
    """Find the messages on the way to the last one; None if the export does not say which that is."""
    parents = {str(message.get("uuid")): text_of(message.get("parent_message_uuid")) for message in messages}
    way: set[str] = set()
    while leaf in parents and leaf not in way:
        way.add(leaf)
        leaf = parents[leaf]
    return frozenset(way) or None


def _message(
    message: Mapping[str, Any], known: Mapping[str, Any], position: int, *, is_current: bool
) -> dict[str, Any]:
    content = anthropic_content(message.get("content") or message.get("text"))
    if not content.texts and (text := text_of(message.get("text"))):
        content.texts.append(text)
    for file in (*objects_of(message.get("attachments")), *objects_of(message.get("files"))):
        content.files.extend(filter(None, [text_of(file.get("file_name"))]))
        content.attached.extend(filter(None, [text_of(file.get("extracted_content"))]))
    name, sender = text_of(message.get("uuid")), text_of(message.get("sender"))
    parent = text_of(message.get("parent_message_uuid")) or _NO_MESSAGE
    data = {
        "id": f"{known['conversation_id']}-{id_of(name) if name else position}",
        **known,
        "author": _AUTHORS.get(sender or "", sender),
        "sent_at": time_of_text(message.get("created_at")) or known["sent_at"],
        "parent_id": f"{known['conversation_id']}-{id_of(parent)}" if parent != _NO_MESSAGE else None,
        "position": position,
        "is_current": is_current,
    }
    return message_fields(data, content)
