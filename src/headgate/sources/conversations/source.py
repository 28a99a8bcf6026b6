"""The source of conversations with assistants: it asks each format in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from headgate.sources.conversations import chatgpt, claude, claude_code, codex
from headgate.sources.conversations.shape import CONVERSATIONS as _CONVERSATIONS, MESSAGES
from headgate.sources.declaring import declaration
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row


@dataclass(frozen=True, slots=True)
class _Transcripts:
    """How the files of one program are recognised and read."""

    is_one: Callable[[InputFile], bool]
    read: Callable[[InputFile, IO[bytes]], Iterator[Row | Reject]]


_FORMATS: Mapping[str, _Transcripts] = {
    chatgpt.SERVICE: _Transcripts(chatgpt.is_export, chatgpt.read),
    claude.SERVICE: _Transcripts(claude.is_export, claude.read),
    claude_code.SERVICE: _Transcripts(claude_code.is_transcript, claude_code.read),
    codex.SERVICE: _Transcripts(codex.is_transcript, codex.read),
}


class ConversationsSource:
    """Conversations with assistants; all have the same streams."""

    name = "conversations"
    title = "AI conversations"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise files by their names and by how they begin; those of one program belong together."""
        found: list[Recognised] = []
        for service, one in _FORMATS.items():
            files = [file for file in tree.files if one.is_one(file)]
            if files:
                found.append(Recognised(self.name, service, files, Certainty.EXPORT, {"service": service}))
        return found

    def declare(self, found: Recognised) -> Mapping[str, Any]:  # noqa: ARG002 - all have the same shape
        """Declare conversations and messages."""
        return declaration(self.name, self.title, [_CONVERSATIONS, MESSAGES])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read the files with the format that recognised them."""
        return read_each(found, resume, _FORMATS[found.facts["service"]].read)


CONVERSATIONS = ConversationsSource()
