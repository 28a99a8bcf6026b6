"""Transcripts of Claude Code: a file of JSON lines for each session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.shape import CodingSession, anthropic_content, message_fields
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import json_line, object_of
from headgate.sources.protocol import Reject, Row
from headgate.sources.texts import byte_lines
from headgate.sources.values import id_of, text_of, time_of_text

SERVICE = "Claude Code"
_MESSAGES = frozenset({"user", "assistant"})
_MARKS = (b'"parentUuid"', b'"leafUuid"', b'"isSidechain"')


def is_transcript(file: InputFile) -> bool:
    """Recognise a transcript by the members of its first lines."""
    if file.suffix != ".jsonl" or not file.head.lstrip().startswith(b"{"):
        return False
    return any(mark in file.head for mark in _MARKS)


def read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    """Read line by line; the session itself comes last, when all of it is known."""
    session = CodingSession(SERVICE, id=id_of(file.stem))
    is_side_task = False
    for number, raw in enumerate(byte_lines(content), 1):
        place = f"{file.name}, line {number}"
        line = json_line(raw)
        if line is None:
            if raw.strip():
                yield Reject(place, "The line is no JSON object.")
            continue
        _note(session, line)
        if line.get("type") in _MESSAGES:
            is_side_task = is_side_task or (session.message_count == 0 and line.get("isSidechain") is True)
            message = _message(line, session, number)
            if message is not None:
                yield Row("messages", message, place=place)
    # The file of a side task belongs to the session that began it, which has a file too.
    if session.message_count and not is_side_task:
        yield Row("conversations", session.record(), place=file.name)


def _note(session: CodingSession, line: Mapping[str, Any]) -> None:
    session.title = text_of(line.get("summary")) or text_of(line.get("customTitle")) or session.title
    session.folder = session.folder or text_of(line.get("cwd"))
    session.branch = session.branch or text_of(line.get("gitBranch"))
    if (own := text_of(line.get("sessionId"))) is not None and session.message_count == 0:
        session.id = id_of(own)


def _message(line: Mapping[str, Any], session: CodingSession, number: int) -> dict[str, Any] | None:
    written = object_of(line.get("message"))
    content = anthropic_content(written.get("content"))
    if content.is_empty:
        return None
    author = "tool" if content.tool_output and not content.texts else text_of(line.get("type"))
    sent_at = time_of_text(line.get("timestamp"))
    model = text_of(written.get("model"))
    session.model = session.model or model
    shown = content.fields().get("text") if line.get("isMeta") is not True else None
    session.note_message(author, shown, sent_at)
    own, parent = text_of(line.get("uuid")), text_of(line.get("parentUuid"))
    data = {
        "id": f"{session.id}-{id_of(own) if own else number}",
        "conversation_id": session.id,
        "conversation": session.shown_title,
        "author": author,
        "sent_at": sent_at,
        "model": model,
        "parent_id": f"{session.id}-{id_of(parent)}" if parent else None,
        "position": session.message_count - 1,
        "is_current": line.get("isSidechain") is not True,
    }
    return message_fields(data, content)
