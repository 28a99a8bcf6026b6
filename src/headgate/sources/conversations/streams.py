"""The streams of conversations with assistants, and what their formats share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from headgate.sources.declaring import StreamSpec, all_but, fields
from headgate.sources.formats.json_values import list_of, object_of
from headgate.sources.formats.values import clean, text_of, without_empty

_TITLE_CHARS = 100

_MESSAGE_FIELDS = fields(
    "id conversation_id conversation author sent_at:time text reasoning tools:list tool_input tool_output model "
    "files:list attached_text parent_id position:integer is_current:boolean",
    conversation="The title of the conversation.",
    author="user, assistant, tool or system; developer is the program around the model of Codex.",
    reasoning="What the assistant thought before it answered.",
    tools="The names of the tools that it called.",
    tool_output="What a tool answered, whole.",
    files="The names of the files that came with it.",
    attached_text="The text of files that came with it.",
    parent_id="The id of the message before it.",
    position="How many messages are before it in its branch, or in its file.",
    is_current="False in a branch that was left (an answer made again, a text edited) and in a side task.",
)
_TOOL_FIELDS = ("reasoning", "tools", "tool_input", "tool_output")

_CONVERSATIONS = StreamSpec(
    name="conversations",
    label="Conversations",
    detail="One conversation with an assistant, with its messages.",
    fields=fields(
        "id title service started_at:time updated_at:time model message_count:integer folder branch summary "
        "is_archived:boolean",
        service="ChatGPT, Claude, Claude Code or Codex.",
        folder="The directory that a coding session worked in.",
        branch="The git branch of a coding session.",
    ),
    time="started_at",
    times="UTC",
    title="title",
    words=("title", "summary"),
    groups=("service", "model", "folder"),
    views=(("titles", "Titles and times only", ("id", "title", "service", "started_at", "updated_at")),),
    children=(("messages", "conversation_id"),),
)
_MESSAGES = StreamSpec(
    name="messages",
    label="Messages",
    detail="One message of a person, an assistant or a tool.",
    fields=_MESSAGE_FIELDS,
    time="sent_at",
    times="UTC",
    title="text",
    words=("text", "conversation", "attached_text"),
    groups=("author", "model", "conversation", "is_current"),
    views=(
        (
            "without_texts",
            "Who wrote when, without any texts",
            all_but(_MESSAGE_FIELDS, *_TOOL_FIELDS, "text", "files", "attached_text"),
        ),
        ("without_tools", "Texts, without tools and reasoning", all_but(_MESSAGE_FIELDS, *_TOOL_FIELDS)),
    ),
)


CONVERSATION_STREAMS = (_CONVERSATIONS, _MESSAGES)


@dataclass(slots=True)
class TurnContent:
    """What one message holds, collected from its parts."""

    texts: list[str] = field(default_factory=list[str])
    reasoning: list[str] = field(default_factory=list[str])
    tools: list[str] = field(default_factory=list[str])
    tool_input: list[str] = field(default_factory=list[str])
    tool_output: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    attached: list[str] = field(default_factory=list[str])

    @property
    def is_empty(self) -> bool:
        return not self.fields()

    def fields(self) -> dict[str, Any]:
        return without_empty(
            {
                "text": _joined(self.texts),
                "reasoning": _joined(self.reasoning),
                "tools": [clean(name) for name in self.tools],
                "tool_input": _joined(self.tool_input),
                "tool_output": _joined(self.tool_output),
                "files": [clean(name) for name in self.files],
                "attached_text": _joined(self.attached),
            }
        )


def anthropic_content(value: Any) -> TurnContent:
    """Read the content of a message as Claude writes it: a text, or a list of blocks."""
    turn = TurnContent()
    if isinstance(value, str):
        turn.texts.append(value)
    for block in map(object_of, list_of(value)):
        kind = block.get("type")
        if kind == "text":
            _add(turn.texts, block.get("text"))
        elif kind == "thinking":
            _add(turn.reasoning, block.get("thinking"))
        elif kind in {"tool_use", "server_tool_use"}:
            _add(turn.tools, block.get("name"))
            _add(turn.tool_input, as_text(block.get("input")))
        elif isinstance(kind, str) and kind.endswith("tool_result"):
            _add(turn.tool_output, output_text(block.get("content")))
    return turn


def output_text(value: Any) -> str | None:
    """Read what a tool answered: a text, or a list of blocks with texts."""
    if isinstance(value, str):
        return value
    texts = (object_of(block).get("text") for block in list_of(value))
    lines = [text for text in texts if isinstance(text, str)]
    return "\n".join(lines) if lines else as_text(value)


def as_text(value: Any) -> str | None:
    """Write what a tool was given as text."""
    if value is None or isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return None


def title_of(text: Any) -> str | None:
    whole = text_of(text)
    if whole is None:
        return None
    line = whole.strip().splitlines()[0].strip()
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"


def message_fields(data: Mapping[str, Any], content: TurnContent) -> dict[str, Any]:
    return without_empty({**data, **content.fields()})


def _add(texts: list[str], value: Any) -> None:
    if isinstance(value, str) and value.strip():
        texts.append(value)


def _joined(texts: Iterable[str]) -> str | None:
    return text_of("\n\n".join(texts))


@dataclass(slots=True)
class CodingSession:
    """A session: what is known of it after the lines that were read."""

    service: str
    id: str = ""
    title: str | None = None
    first_text: str | None = None
    started_at: str | None = None
    updated_at: str | None = None
    model: str | None = None
    folder: str | None = None
    branch: str | None = None
    message_count: int = 0
    is_side_task: bool = False

    @property
    def shown_title(self) -> str | None:
        """The title that the program gave, or the beginning of the person's first text."""
        return self.title or title_of(self.first_text)

    def note_message(self, author: str | None, text: str | None, time: str | None) -> None:
        self.message_count += 1
        if author == "user" and self.first_text is None:
            self.first_text = text
        if time is not None:
            self.started_at = self.started_at or time
            self.updated_at = time

    def record(self) -> dict[str, Any]:
        return without_empty(
            {
                "id": self.id,
                "title": self.shown_title,
                "service": self.service,
                "started_at": self.started_at,
                "updated_at": self.updated_at,
                "model": self.model,
                "message_count": self.message_count,
                "folder": self.folder,
                "branch": self.branch,
            }
        )
