"""Transcripts of coding agents, Claude Code and Codex: a file of JSON lines for each session."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from headgate.sources.conversations.streams import (
    CodingSession,
    TurnContent,
    anthropic_content,
    as_text,
    message_fields,
    output_text,
)
from headgate.sources.file_source import FileFormat, ReadFile
from headgate.sources.formats.json_values import json_line, object_of, objects_of
from headgate.sources.formats.texts import byte_lines
from headgate.sources.formats.values import id_of, text_of, time_of_text
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row

_MESSAGES = frozenset({"user", "assistant"})
_MARKS = (b'"parentUuid"', b'"leafUuid"', b'"isSidechain"')

#: Notes what a line, with its number, says of the session, and gives the record of its message if it is one.
_TakeLine = Callable[[CodingSession, Mapping[str, Any], int], dict[str, Any] | None]


def _reader(service: str, take_line: _TakeLine) -> ReadFile:
    """Read line by line; the session itself comes last, when all of it is known."""

    def read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
        session = CodingSession(service, id=id_of(file.stem))
        for number, raw in enumerate(byte_lines(content), 1):
            place = f"{file.name}, line {number}"
            line = json_line(raw)
            if line is None:
                if raw.strip():
                    yield Reject(place, "The line is no JSON object.")
            elif (message := take_line(session, line, number)) is not None:
                yield Row("messages", message, place=place)
        # The file of a side task belongs to the session that began it, which has a file too.
        if session.message_count and not session.is_side_task:
            yield Row("conversations", session.record(), place=file.name)

    return read


def _begins_with_object(file: InputFile) -> bool:
    return file.suffix == ".jsonl" and file.head.lstrip().startswith(b"{")


def _is_claude_code(file: InputFile) -> bool:
    """Recognise a transcript by the members of its first lines."""
    return _begins_with_object(file) and any(mark in file.head for mark in _MARKS)


def _claude_code_line(session: CodingSession, line: Mapping[str, Any], number: int) -> dict[str, Any] | None:
    session.title = text_of(line.get("summary")) or text_of(line.get("customTitle")) or session.title
    session.folder = session.folder or text_of(line.get("cwd"))
    session.branch = session.branch or text_of(line.get("gitBranch"))
    if (own := text_of(line.get("sessionId"))) is not None and session.message_count == 0:
        session.id = id_of(own)
    if line.get("type") not in _MESSAGES:
        return None
    if session.message_count == 0 and line.get("isSidechain") is True:
        session.is_side_task = True
    return _claude_code_message(line, session, number)


def _claude_code_message(
    line: Mapping[str, Any], session: CodingSession, number: int
) -> dict[str, Any] | None:
    written = object_of(line.get("message"))
    content = anthropic_content(written.get("content"))
    if content.is_empty:
        return None
    author = "tool" if content.tool_output and not content.texts else text_of(line.get("type"))
    sent_at = time_of_text(line.get("timestamp"))
    model = text_of(written.get("model"))
    session.model = session.model or model
    typed = content.fields().get("text") if line.get("isMeta") is not True else None
    session.note_message(author, typed, sent_at)
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


CLAUDE_CODE = FileFormat("Claude Code", _is_claude_code, _reader("Claude Code", _claude_code_line))


def _is_codex(file: InputFile) -> bool:
    """Recognise a transcript by its name, ``rollout-….jsonl``, and first line."""
    is_named = file.name.rpartition("/")[2].startswith("rollout-")
    return _begins_with_object(file) and (b'"session_meta"' in file.head[:4096] or is_named)


def _codex_line(session: CodingSession, line: Mapping[str, Any], number: int) -> dict[str, Any] | None:
    # Newer versions wrap each item with its time and kind; older ones write the items bare.
    item = object_of(line["payload"]) if "payload" in line else line
    kind = line.get("type")
    if kind == "session_meta" or (kind is None and "id" in item):
        own = text_of(item.get("id"))
        session.id = id_of(own) if own and session.message_count == 0 else session.id
        session.branch = session.branch or text_of(object_of(item.get("git")).get("branch"))
        session.started_at = session.started_at or time_of_text(item.get("timestamp"))
    session.folder = session.folder or text_of(item.get("cwd"))
    if kind == "turn_context":
        session.model = text_of(item.get("model")) or session.model
    if kind == "event_msg":  # Events repeat what the items hold.
        return None
    return _codex_message(item, time_of_text(line.get("timestamp")), session, number)


def _codex_message(
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
    kind, turn = str(item.get("type")), TurnContent()
    if kind == "message":
        texts = (text_of(part.get("text")) for part in objects_of(item.get("content")))
        turn.texts.extend(filter(None, texts))
        return text_of(item.get("role")), turn
    if kind == "reasoning":
        parts = (*objects_of(item.get("summary")), *objects_of(item.get("content")))
        turn.reasoning.extend(filter(None, (text_of(part.get("text")) for part in parts)))
        return "assistant", turn
    if kind.endswith("_call_output"):
        output = item.get("output")
        turn.tool_output.extend(filter(None, [_output(output)]))
        return "tool", turn
    if kind.endswith("_call"):
        turn.tools.append(text_of(item.get("name")) or kind.removesuffix("_call").replace("_", " "))
        inputs = (item.get(name) for name in ("arguments", "input", "action"))
        turn.tool_input.extend(filter(None, map(as_text, inputs)))
        return "assistant", turn
    return None, turn


def _output(output: Any) -> str | None:
    """Read what a tool answered; some versions write it as JSON inside a text."""
    if isinstance(output, str) and output.startswith("{"):
        inner = json_line(output.encode("utf-8", "replace"))
        return text_of(object_of(inner).get("output")) or output
    answer = object_of(output)
    return output_text(answer["content"]) if "content" in answer else output_text(output)


CODEX = FileFormat("Codex", _is_codex, _reader("Codex", _codex_line))
