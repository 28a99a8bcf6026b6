"""The source of chats: it asks each format in turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from headgate.sources.chat import imessage, signal, slack, telegram, whatsapp
from headgate.sources.chat.shape import CHANNELS, MEMBERS, MESSAGES
from headgate.sources.declaring import declaration
from headgate.sources.inputs.tree import InputTree
from headgate.sources.protocol import Item, Recognised


class _ChatFormat(Protocol):
    """A module that reads the exports of one program."""

    def detect(self, tree: InputTree) -> Sequence[Recognised]: ...

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]: ...


_FORMATS: Mapping[str, _ChatFormat] = {
    slack.SERVICE: slack,
    telegram.SERVICE: telegram,
    whatsapp.SERVICE: whatsapp,
    signal.SERVICE: signal,
    imessage.SERVICE: imessage,
}


class ChatSource:
    """Exports of chat programs; all have the same streams."""

    name = "chat"
    title = "Chat"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise exports by the names of their files and by how they begin."""
        return [found for one in _FORMATS.values() for found in one.detect(tree)]

    def declare(self, found: Recognised) -> Mapping[str, Any]:  # noqa: ARG002 - all have the same shape
        """Declare channels, messages and members."""
        return declaration(self.name, self.title, [CHANNELS, MESSAGES, MEMBERS])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read an export with the format that recognised it."""
        return _FORMATS[found.facts["service"]].read(found, resume)


CHAT = ChatSource()
