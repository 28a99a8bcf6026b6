"""What mail looks like to agents: messages, their attachments, and threads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.sources.declaring import (
    BOOLEAN,
    FILE,
    INTEGER,
    LIST,
    TEXT,
    TIME,
    StreamSpec,
    declaration,
)

_HEADERS = ("id", "thread_id", "subject", "from", "from_address", "to", "cc", "bcc", "sent_at")
_MESSAGE: dict[str, Mapping[str, Any]] = {
    "id": TEXT,
    "thread_id": TEXT,
    "subject": TEXT,
    "from": TEXT,
    "from_address": TEXT,
    "to": LIST,
    "cc": LIST,
    "bcc": LIST,
    "sent_at": TIME,
    "body": TEXT,
    "quoted": TEXT,
    "folder": TEXT,
    "labels": LIST,
    "is_read": BOOLEAN,
    "is_flagged": BOOLEAN,
    "has_attachments": BOOLEAN,
    "size": INTEGER,
    "internet_message_id": TEXT,
    "in_reply_to": TEXT,
}
_ATTACHMENT: dict[str, Mapping[str, Any]] = {
    "id": TEXT,
    "message_id": TEXT,
    "name": TEXT,
    "mime_type": TEXT,
    "size": INTEGER,
    "sent_at": TIME,
    "text": TEXT,
    "file": FILE,
}
_MESSAGES = StreamSpec(
    name="messages",
    label="Messages",
    detail="A mail: who wrote to whom and when, its subject and its text, with quoted replies apart.",
    fields=_MESSAGE,
    time="sent_at",
    title="subject",
    words=("subject", "from", "body", "quoted"),
    groups=("from_address", "folder", "thread_id", "is_read", "is_flagged", "has_attachments"),
    views=(
        ("headers", "Headers only", _HEADERS),
        ("no_bodies", "No bodies", tuple(name for name in _MESSAGE if name not in {"body", "quoted"})),
    ),
    children=(("attachments", "message_id"),),
)
_ATTACHMENTS = StreamSpec(
    name="attachments",
    label="Attachments",
    detail="A file that was sent with a mail, and the words in it.",
    fields=_ATTACHMENT,
    time="sent_at",
    title="name",
    words=("name", "text"),
    groups=("mime_type", "message_id"),
    views=(("names", "Names only", ("id", "message_id", "name", "mime_type", "size", "sent_at")),),
)
_THREADS = StreamSpec(
    name="threads",
    label="Threads",
    detail="Messages that answer each other.",
    fields={"id": TEXT, "subject": TEXT},
    title="subject",
    words=("subject",),
    children=(("messages", "thread_id"),),
    # The first of a thread's messages names it; later ones change nothing.
    is_append_only=True,
)


def mail_declaration(source: str, title: str) -> dict[str, Any]:
    """Make the document of a source of mail."""
    return declaration(source, title, (_MESSAGES, _ATTACHMENTS, _THREADS))
