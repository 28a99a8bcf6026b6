"""The exports of ChatGPT and Claude: `conversations.json`, a list of conversations, or one as extensions save it.

Of ChatGPT a conversation is a tree of messages. The current branch is the way from the current message up to the root;
messages of other branches, which came before an edit or a second answer, are given after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.streams import (
    TurnContent,
    anthropic_content,
    as_text,
    message_fields,
    title_of,
)
from headgate.sources.file_source import FileFormat
from headgate.sources.formats.json_values import json_values, list_of, object_of, objects_of
from headgate.sources.formats.values import (
    digest_of,
    id_of,
    number_of,
    text_of,
    time_of_seconds,
    time_of_text,
    without_empty,
)
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Covered, FileItem, Reject, Row

_ITEMS, _WHOLE = frozenset({"item"}), frozenset({""})
_TOOL_TEXT = frozenset({"execution_output", "tether_browsing_display", "tether_quote", "system_error"})
_DAY_CHARS = 10
_AUTHORS = {"human": "user"}
#: The parent of the first message of a conversation.
_NO_MESSAGE = "00000000-0000-4000-8000-000000000000"


def _format(
    service: str,
    member: str,
    problem: str,
    conversation: Callable[[Mapping[str, Any], str], Iterator[Row] | None],
) -> FileFormat:
    """Recognise files by their name and a member of their conversations; large exports have several, with numbers."""

    def is_export(file: InputFile) -> bool:
        name = file.name.rpartition("/")[2]
        is_named = name.startswith("conversations") and file.suffix == ".json"
        return is_named and f'"{member}"'.encode() in file.head

    def read(file: InputFile, content: IO[bytes]) -> Iterator[FileItem]:
        wanted = _WHOLE if file.head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{") else _ITEMS
        newest, is_whole = "", wanted is _ITEMS
        for number, entry in enumerate(json_values(content, wanted), 1):
            place = f"{file.name}, conversation {number}"
            rows = None if entry.problem is not None else conversation(object_of(entry.value), place)
            for row in [Reject(place, entry.problem or problem)] if rows is None else rows:
                if isinstance(row, Row):
                    newest = max(newest, str(row.data.get("sent_at") or ""))
                else:
                    is_whole = False
                yield row
        if newest and is_whole:
            # An export has all conversations up to when it was made.
            yield from (Covered(stream, end=newest[:_DAY_CHARS]) for stream in ("conversations", "messages"))

    return FileFormat(service, is_export, read)


def _chatgpt(conversation: Mapping[str, Any], place: str) -> Iterator[Row] | None:
    nodes = {name: object_of(node) for name, node in object_of(conversation.get("mapping")).items()}
    return _tree_of_messages(conversation, nodes, place) if nodes else None


def _tree_of_messages(
    conversation: Mapping[str, Any], nodes: Mapping[str, dict[str, Any]], place: str
) -> Iterator[Row]:
    key = text_of(conversation.get("conversation_id")) or text_of(conversation.get("id"))
    known = {
        "conversation_id": id_of(key)
        if key
        else digest_of(conversation.get("title"), conversation.get("create_time")),
        "conversation": text_of(conversation.get("title")),
        "sent_at": time_of_seconds(conversation.get("create_time")),
    }
    messages = list(_messages(conversation, nodes, known))
    data = {
        "id": known["conversation_id"],
        "title": known["conversation"],
        "service": "ChatGPT",
        "started_at": known["sent_at"],
        "updated_at": time_of_seconds(conversation.get("update_time")),
        "model": text_of(conversation.get("default_model_slug")),
        "message_count": len(messages),
        "is_archived": conversation.get("is_archived") is True,
    }
    yield Row("conversations", without_empty(data), place=place)
    yield from (Row("messages", message, place=place) for message in messages)


def _messages(
    conversation: Mapping[str, Any], nodes: Mapping[str, dict[str, Any]], known: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    leaf = str(conversation.get("current_node"))
    branch = _way_up(leaf if leaf in nodes else _newest(nodes), nodes)
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


def _newest(nodes: Mapping[str, dict[str, Any]]) -> str:
    """Return the last message after the one with the latest time: where a conversation that names no current one is."""
    times = {
        name: number_of(object_of(node.get("message")).get("create_time")) or 0
        for name, node in nodes.items()
    }
    name = max(reversed(times), key=lambda name: times[name])
    answers = {str(node.get("parent")): own for own, node in nodes.items()}
    passed: set[str] = set()
    while name in answers and name not in passed:
        passed.add(name)
        name = answers[name]
    return name


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
    turn = TurnContent()
    kind = content.get("content_type")
    text = text_of(content.get("text")) or text_of(content.get("result"))
    if kind in _TOOL_TEXT:
        turn.tool_output.extend(filter(None, (text_of(content.get("title")), text)))
    elif kind == "code" and text is not None:
        turn.tool_input.append(text)
    elif kind == "thoughts":
        thoughts = objects_of(content.get("thoughts"))
        turn.reasoning.extend(filter(None, (text_of(thought.get("content")) for thought in thoughts)))
    elif kind == "user_editable_context":
        parts = (content.get("user_profile"), content.get("user_instructions"))
        turn.texts.extend(filter(None, map(text_of, parts)))
    elif kind != "reasoning_recap":
        turn.texts.extend(filter(None, (text, *map(_part, list_of(content.get("parts"))))))
    names = (text_of(file.get("name")) for file in objects_of(metadata.get("attachments")))
    turn.files.extend(filter(None, names))
    return turn


def _part(part: Any) -> str | None:
    """Read one part of a message; pictures are named only by an address inside the service."""
    if isinstance(part, str):
        return text_of(part)
    value = object_of(part)
    return text_of(value.get("text")) or (as_text(value) if value and "content_type" not in value else None)


CHATGPT = _format("ChatGPT", "mapping", "The conversation has no messages.", _chatgpt)


def _list_of_messages(conversation: Mapping[str, Any], place: str) -> Iterator[Row]:
    key = text_of(conversation.get("uuid"))
    own = id_of(key) if key else digest_of(conversation.get("name"), conversation.get("created_at"))
    messages = objects_of(conversation.get("chat_messages"))
    title = text_of(conversation.get("name")) or title_of(messages[0].get("text") if messages else None)
    started_at = time_of_text(conversation.get("created_at"))
    data = {
        "id": own,
        "title": title,
        "service": "Claude",
        "started_at": started_at,
        "updated_at": time_of_text(conversation.get("updated_at")),
        "model": text_of(conversation.get("model")),
        "message_count": len(messages),
        "summary": text_of(conversation.get("summary")),
    }
    yield Row("conversations", without_empty(data), place=place)
    branch = _branch(text_of(conversation.get("current_leaf_message_uuid")), messages)
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


CLAUDE = _format(
    "Claude",
    "chat_messages",
    "It is no conversation.",
    lambda one, place: _list_of_messages(one, place) if "chat_messages" in one else None,
)
