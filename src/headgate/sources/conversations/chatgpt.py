"""The export of ChatGPT: `conversations.json`, a list of conversations, each a tree of messages.

The current branch is the way from the current message up to the root. Messages of other branches, which came before
an edit or a second answer, are given after it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.shape import TurnContent, as_text, message_fields
from headgate.sources.identity import digest_of
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import json_values, list_of, object_of, objects_of
from headgate.sources.protocol import Reject, Row
from headgate.sources.values import id_of, text_of, time_of_seconds, without_empty

SERVICE = "ChatGPT"
_ITEMS = frozenset({"item"})
_TOOL_TEXT = frozenset({"execution_output", "tether_browsing_display", "tether_quote", "system_error"})


def is_export(file: InputFile) -> bool:
    """Recognise the file by its name and first members; large exports have several, with numbers."""
    name = file.name.rpartition("/")[2]
    return name.startswith("conversations") and file.suffix == ".json" and b'"mapping"' in file.head


def read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    for number, found in enumerate(json_values(content, _ITEMS), 1):
        place = f"{file.name}, conversation {number}"
        one = object_of(found.value)
        nodes = {name: object_of(node) for name, node in object_of(one.get("mapping")).items()}
        if found.problem is not None or not nodes:
            yield Reject(place, found.problem or "The conversation has no messages.")
        else:
            yield from _conversation(one, nodes, place)


def _conversation(
    one: Mapping[str, Any], nodes: Mapping[str, dict[str, Any]], place: str
) -> Iterator[Row | Reject]:
    key = text_of(one.get("conversation_id")) or text_of(one.get("id"))
    known = {
        "conversation_id": id_of(key) if key else digest_of(one.get("title"), one.get("create_time")),
        "conversation": text_of(one.get("title")),
        "sent_at": time_of_seconds(one.get("create_time")),
    }
    messages = list(_messages(one, nodes, known))
    data = {
        "id": known["conversation_id"],
        "title": known["conversation"],
        "service": SERVICE,
        "started_at": known["sent_at"],
        "updated_at": time_of_seconds(one.get("update_time")),
        "model": text_of(one.get("default_model_slug")),
        "message_count": len(messages),
        "is_archived": one.get("is_archived") is True,
    }
    yield Row("conversations", without_empty(data), place=place)
    yield from (Row("messages", message, place=place) for message in messages)


def _messages(
    one: Mapping[str, Any], nodes: Mapping[str, dict[str, Any]], known: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    branch = _way_up(str(one.get("current_node")), nodes)
    depths = _depths(nodes)
    current = frozenset(branch)
    others = sorted((name for name in nodes if name not in current), key=lambda name: depths[name])
    for name in (*reversed(branch), *others):
        message = object_of(nodes[name].get("message"))
        content = _content(object_of(message.get("content")), object_of(message.get("metadata")))
        if not message or content.is_empty:
            continue
        parent = text_of(nodes[name].get("parent"))
        data = {
            "id": f"{known['conversation_id']}-{id_of(name)}",
            **known,
            "sent_at": time_of_seconds(message.get("create_time")) or known["sent_at"],
            "author": text_of(object_of(message.get("author")).get("role")),
            "model": text_of(object_of(message.get("metadata")).get("model_slug")),
            "parent_id": f"{known['conversation_id']}-{id_of(parent)}" if parent else None,
            "position": depths[name],
            "is_current": name in current,
        }
        tool = text_of(object_of(message.get("author")).get("name")) or text_of(message.get("recipient"))
        if tool is not None and tool != "all":
            content.tools.append(tool)
        yield message_fields(data, content)


def _way_up(name: str, nodes: Mapping[str, dict[str, Any]]) -> list[str]:
    way: dict[str, None] = {}
    while name in nodes and name not in way:
        way[name] = None
        name = str(nodes[name].get("parent"))
    return list(way)


def _depths(nodes: Mapping[str, dict[str, Any]]) -> dict[str, int]:
    """Count the messages above each one; each is visited once, and a ring of parents ends where it closes."""
    depths: dict[str, int] = {}
    for start in nodes:
        way: dict[str, None] = {}
        name = start
        while name in nodes and name not in depths and name not in way:
            way[name] = None
            name = str(nodes[name].get("parent"))
        first = depths.get(name, -1) + 1
        depths.update({step: depth for depth, step in enumerate(reversed(way), first)})
    return depths


def _content(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> TurnContent:
    found = TurnContent()
    kind = content.get("content_type")
    text = text_of(content.get("text")) or text_of(content.get("result"))
    if kind in _TOOL_TEXT:
        found.tool_output.extend(filter(None, (text_of(content.get("title")), text)))
    elif kind == "code" and text is not None:
        found.tool_input.append(text)
    elif kind == "thoughts":
        thoughts = objects_of(content.get("thoughts"))
        found.reasoning.extend(filter(None, (text_of(thought.get("content")) for thought in thoughts)))
    elif kind == "user_editable_context":
        parts = (content.get("user_profile"), content.get("user_instructions"))
        found.texts.extend(filter(None, map(text_of, parts)))
    elif kind != "reasoning_recap":
        found.texts.extend(filter(None, (text, *map(_part, list_of(content.get("parts"))))))
    names = (text_of(file.get("name")) for file in objects_of(metadata.get("attachments")))
    found.files.extend(filter(None, names))
    return found


def _part(part: Any) -> str | None:
    """Read one part of a message; pictures are named only by an address inside the service."""
    if isinstance(part, str):
        return text_of(part)
    one = object_of(part)
    return text_of(one.get("text")) or (as_text(one) if one and "content_type" not in one else None)
