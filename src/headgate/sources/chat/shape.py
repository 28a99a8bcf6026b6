"""What chats look like, whichever program they come from: channels, their messages, and members."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from typing import Any

from headgate.sources.declaring import BOOLEAN, FILE, INTEGER, LIST, TEXT, TIME, StreamSpec
from headgate.sources.inputs.tree import InputFile
from headgate.sources.json_values import objects_of
from headgate.sources.protocol import Attachment
from headgate.sources.values import integer_of

#: A number that every reader of JSON can hold.
_MAX_REACTIONS = 2**53
_MAX_MEDIA_BYTES = 25 * 1024 * 1024

_MESSAGE_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "channel_id": TEXT,
    "channel": {**TEXT, "description": "The name of the channel or chat."},
    "author": TEXT,
    "sent_at": {
        **TIME,
        "description": "WhatsApp, Signal and old Telegram exports name no time zone: such a time is that of the "
        "phone or computer, and is compared as if it were UTC.",
    },
    "text": TEXT,
    "kind": {
        **TEXT,
        "description": "message, media (without text) or notice (a person joined, a name changed).",
    },
    "thread_id": {**TEXT, "description": "The id of the message that began the thread."},
    "answers_id": {**TEXT, "description": "The id of the message that this one answers."},
    "forwarded_from": TEXT,
    "edited_at": TIME,
    "reactions": {**INTEGER, "description": "How many reactions it has."},
    "replies": {**INTEGER, "description": "How many messages its thread has."},
    "files": {**LIST, "description": "The names of the files that came with it."},
    "file": FILE,
}
_CHANNEL_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "name": TEXT,
    "service": {**TEXT, "description": "Slack, WhatsApp, Telegram, Signal or iMessage."},
    "kind": {**TEXT, "description": "channel, group, direct, or what the program calls it."},
    "topic": TEXT,
    "purpose": TEXT,
    "participants": LIST,
    "created_at": TIME,
    "is_archived": BOOLEAN,
}
_MEMBER_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "name": TEXT,
    "user": {**TEXT, "description": "The short name in the workspace."},
    "email": TEXT,
    "job": TEXT,
    "is_bot": BOOLEAN,
    "is_deleted": BOOLEAN,
}
_CONTENT = frozenset({"text", "files", "file"})

CHANNELS = StreamSpec(
    name="channels",
    label="Channels",
    detail="One channel, group or direct chat, with its messages.",
    fields=_CHANNEL_FIELDS,
    title="name",
    words=("name", "topic", "purpose"),
    groups=("kind", "service"),
    views=(("names", "Names only", ("id", "name", "service", "kind")),),
    children=(("messages", "channel_id"),),
)
MESSAGES = StreamSpec(
    name="messages",
    label="Messages",
    detail="One message of a channel or chat.",
    fields=_MESSAGE_FIELDS,
    time="sent_at",
    title="text",
    words=("text", "channel"),
    groups=("channel", "author", "kind"),
    views=(
        (
            "without_texts",
            "Who wrote where and when, without texts and files",
            tuple(name for name in _MESSAGE_FIELDS if name not in _CONTENT),
        ),
        (
            "without_files",
            "Everything but files",
            tuple(name for name in _MESSAGE_FIELDS if name not in {"files", "file"}),
        ),
    ),
)
MEMBERS = StreamSpec(
    name="members",
    label="Members",
    detail="One person or bot of a workspace.",
    fields=_MEMBER_FIELDS,
    title="name",
    words=("name", "job"),
    groups=("is_bot", "is_deleted"),
    views=(("names", "Names only", ("id", "name", "user")),),
)


class MediaFiles:
    """The files that an export has beside its messages, by the name that messages call them."""

    def __init__(self, files: Sequence[InputFile]) -> None:
        self._files = {file.name: file for file in files}

    def attachments(self, name: str | None) -> dict[str, Attachment]:
        """Return the file of a message as its attachment, if the export has it and it is not too large."""
        file = self._files.get(name or "")
        if file is None or not 0 < file.size_bytes <= _MAX_MEDIA_BYTES:
            return {}
        with file.open() as content:
            found = content.read(_MAX_MEDIA_BYTES)
        return {"file": Attachment(found, mimetypes.guess_type(file.name)[0] or "application/octet-stream")}


def reaction_count(reactions: Any) -> int | None:
    """Add up a message's reactions; nothing if it has none."""
    counts = (integer_of(made.get("count")) or 0 for made in objects_of(reactions))
    return min(sum(counts), _MAX_REACTIONS) or None


def directory(name: str) -> str:
    """Return the directory of a file's name with its ``/``, or nothing."""
    return name[: name.rfind("/") + 1]
