"""Transcripts of Codex: a file of JSON lines, `rollout-….jsonl`, for each session.

Newer versions wrap each item with its time and kind; older ones write the items bare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.shape import (
    CodingSession,
    TurnContent,
    as_text,
    message_fields,
    output_text,
)
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import json_line, object_of, objects_of
from headgate.sources.protocol import Reject, Row
from headgate.sources.texts import byte_lines
from headgate.sources.values import id_of, text_of, time_of_text

SERVICE = "Codex"
_NAME = "rollout-"


def is_transcript(file: InputFile) -> bool:
    """Recognise a transcript by its name and first line."""
    if file.suffix != ".jsonl" or not file.head.lstrip().startswith(b"{"):
        return False
    return b'"session_meta"' in file.head[:4096] or file.name.rpartition("/")[2].startswith(_NAME)


def read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    """Read line by line; the session itself comes last, when all of it is known."""
    session = CodingSession(SERVICE, id=id_of(file.stem))
    for number, raw in enumerate(byte_lines(content), 1):
        place = f"{file.name}, line {number}"
        line = json_line(raw)
        if line is None:
            if raw.strip():
                yield Reject(place, "The line is no JSON object.")
            continue
        item = object_of(line["payload"]) if "payload" in line else line
        _note(session, line, item)
        if line.get("type") != "event_msg":  # Events repeat what the items hold.
            message = _message(item, time_of_text(line.get("timestamp")), session, number)
            if message is not None:
                yield Row("messages", message, place=place)
    if session.message_count:
        yield Row("conversations", session.record(), place=file.name)


def _note(session: CodingSession, line: Mapping[str, Any], item: Mapping[str, Any]) -> None:
    kind = line.get("type")
    if kind == "session_meta" or (kind is None and "id" in item):
        own = text_of(item.get("id"))
        session.id = id_of(own) if own and session.message_count == 0 else session.id
        session.branch = session.branch or text_of(object_of(item.get("git")).get("branch"))
        session.started_at = session.started_at or time_of_text(item.get("timestamp"))
    session.folder = session.folder or text_of(item.get("cwd"))
    if kind == "turn_context":
        session.model = text_of(item.get("model")) or session.model


def _message(
    item: Mapping[str, Any], sent_at: str | None, session: CodingSession, number: int
) -> dict[str, Any] | None:
    author, content = _content(item)
    if author is None or content.is_empty:
        return None
    sent_at = sent_at or session.updated_at or session.started_at
    text = content.fields().get("text")
    # The first texts in the person's name hold the surroundings, in tags.
    is_typed = text is not None and not text.startswith("<")
    session.note_message(author, text if is_typed else None, sent_at)
    data = {
        "id": f"{session.id}-{number}",
        "conversation_id": session.id,
        "conversation": session.shown_title,
        "author": author,
        "sent_at": sent_at,
        "model": session.model if author == "assistant" else None,
        "position": session.message_count - 1,
        "is_current": True,
    }
    return message_fields(data, content)


def _content(item: Mapping[str, Any]) -> tuple[str | None, TurnContent]:
    kind, found = str(item.get("type")), TurnContent()
    if kind == "message":
        texts = (text_of(part.get("text")) for part in objects_of(item.get("content")))
        found.texts.extend(filter(None, texts))
        return text_of(item.get("role")), found
    if kind == "reasoning":
        parts = (*objects_of(item.get("summary")), *objects_of(item.get("content")))
        found.reasoning.extend(filter(None, (text_of(part.get("text")) for part in parts)))
        return "assistant", found
    if kind.endswith("_call_output"):
        output = item.get("output")
        found.tool_output.extend(filter(None, [_output(output)]))
        return "tool", found
    if kind.endswith("_call"):
        found.tools.append(text_of(item.get("name")) or kind.removesuffix("_call").replace("_", " "))
        given = (item.get(name) for name in ("arguments", "input", "action"))
        found.tool_input.extend(filter(None, map(as_text, given)))
        return "assistant", found
    return None, found


def _output(output: Any) -> str | None:
    """Read what a tool answered; some versions write it as JSON inside a text."""
    if isinstance(output, str) and output.startswith("{"):
        inner = json_line(output.encode("utf-8", "replace"))
        return text_of(object_of(inner).get("output")) or output
    one = object_of(output)
    return output_text(one["content"]) if "content" in one else output_text(output)
