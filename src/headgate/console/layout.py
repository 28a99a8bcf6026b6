"""How a record is laid out by what it is: what a person looks for first, then its text, and the rest folded away.

A kind of record is known by the fields that its stream declares, not by its source: mail of any source looks like mail.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from headgate.console.formatting import day, minute, size
from headgate.model.declaration import StreamDeclaration
from headgate.model.ids import BlobId, ConnectionId
from headgate.model.instants import instant
from headgate.text.line import line_body, title_field

_INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_DAY_CHARS = len("2025-12-31")
#: From so many characters on a value is a text by itself, and after so many the rest of a text is folded.
_SHORT_CHARS = 120
_OPEN_CHARS = 12_000


@dataclass(frozen=True, slots=True)
class RecordShape:
    """A kind of record: the fields that tell it, and where they stand."""

    fields: tuple[str, ...]
    facts: tuple[str, ...]
    texts: tuple[str, ...] = ()
    #: Texts that are there twice: what a reply quotes.
    quoted: tuple[str, ...] = ()
    #: Whether what stands before and after it in its thread or chat belongs to it.
    has_neighbours: bool = False
    #: The field by which all records of the same sender are found.
    sender: str = ""


_SHAPES = (
    RecordShape(
        ("subject", "from", "body"),
        ("from", "to", "cc", "bcc", "sent_at", "folder", "labels"),
        ("body",),
        ("quoted",),
        has_neighbours=True,
        sender="from_address",
    ),
    RecordShape(
        ("author", "channel", "text"),
        ("author", "channel", "sent_at", "edited_at", "files", "file", "reactions"),
        ("text",),
        has_neighbours=True,
        sender="author",
    ),
    RecordShape(
        ("amount", "currency"),
        ("counterparty", "description", "booked_on", "value_on", "category", "reference", "balance_after"),
    ),
    RecordShape(
        ("starts_at", "ends_at"),
        (
            "starts_at",
            "ends_at",
            "location",
            "organizer",
            "attendees",
            "calendar",
            "status",
            "meeting_url",
            "url",
        ),
        ("description",),
    ),
    RecordShape(
        ("name", "emails", "phones"),
        ("organisation", "job", "emails", "phones", "addresses", "birthday", "websites", "related", "groups"),
        ("notes",),
    ),
    RecordShape(
        ("beginning", "page_count"),
        ("author", "subject", "kind", "page_count", "created_at", "modified_at", "folder", "file"),
        ("beginning",),
    ),
    RecordShape(("document_id", "number", "text"), ("number", "modified_at"), ("text",)),
    RecordShape(("message_id", "name", "file"), ("file", "sent_at", "mime_type"), ("text",)),
    RecordShape(
        ("title", "text", "tags"), ("folder", "tags", "author", "modified_at", "created_at"), ("text",)
    ),
)
#: What fields are called where their names do not say it.
_LABELS = {
    "all_day": "Whole day",
    "attendees": "People",
    "author": "From",
    "balance_after": "Balance after it",
    "bcc": "Blind copy",
    "beginning": "Beginning",
    "booked_on": "Booked",
    "cc": "Copy",
    "channel": "Chat",
    "counterparty": "From or to",
    "created_at": "Made",
    "description": "Description",
    "edited_at": "Edited",
    "ends_at": "Ends",
    "job": "Job",
    "location": "Place",
    "meeting_url": "Meeting",
    "modified_at": "Changed",
    "number": "Page",
    "organizer": "Invited by",
    "page_count": "Pages",
    "sent_at": "Sent",
    "starts_at": "Begins",
    "value_on": "Counts from",
}


@dataclass(frozen=True, slots=True)
class ShownField:
    """A field as a person reads it."""

    name: str
    label: str
    text: str
    is_structured: bool = False
    file_path: str = ""
    is_image: bool = False

    @property
    def beginning(self) -> str:
        """What is shown of a long text at once."""
        return self.text[:_OPEN_CHARS]

    @property
    def rest(self) -> str:
        """What of it is folded."""
        return self.text[_OPEN_CHARS:]


@dataclass(frozen=True, slots=True)
class Layout:
    """A record in parts."""

    #: How much, with its unit; empty where it is about no amount.
    amount: str
    facts: tuple[ShownField, ...]
    texts: tuple[ShownField, ...]
    quoted: tuple[ShownField, ...]
    technical: tuple[ShownField, ...]
    #: Whether a fact says when; else the page says it below the title.
    has_time: bool
    has_neighbours: bool
    #: The field and the value by which all of this sender are found; empty without one.
    sender: tuple[str, str]


def lay_out(declared: StreamDeclaration, data: Mapping[str, Any], where: ConnectionId) -> Layout:
    """Put the fields of a record where a person looks for them."""
    shape = next((shape for shape in _SHAPES if declared.fields.keys() >= set(shape.fields)), None)
    shape = shape or _plain_shape(declared, data)
    line = line_body(declared.line, data)
    titled = title_field(declared.line, data) or ""
    sender = data.get(shape.sender)
    # The title stands above, and the sum beside it.
    above = {titled, declared.line.amount if line.get("amount") else ""}
    # What is only one short line stands above as the title.
    is_title = line.get("title") == data.get(titled)
    named = {*above, *shape.facts, *shape.texts, *shape.quoted}
    if line.get("amount"):
        named |= {declared.line.unit or "", f"{declared.line.amount}_text"}
    return Layout(
        line.get("amount", ""),
        _shown((name for name in shape.facts if name not in above), data, where),
        _shown((name for name in shape.texts if name != titled or not is_title), data, where),
        _shown(shape.quoted, data, where),
        _shown((name for name in data if name not in named), data, where, with_empty=True),
        declared.line.time in shape.facts,
        shape.has_neighbours,
        (shape.sender, sender) if isinstance(sender, str) and sender else ("", ""),
    )


def _plain_shape(declared: StreamDeclaration, data: Mapping[str, Any]) -> RecordShape:
    """Lay out what is of no known kind: short values, long texts, and what only programs read."""
    scalars = [
        name for name, value in data.items() if not _is_structured(value) and name not in declared.primary_key
    ]
    long = tuple(name for name in scalars if len(str(data[name])) > _SHORT_CHARS)
    # A record without anything else is its key.
    short = tuple(name for name in scalars if name not in long) or tuple(() if long else declared.primary_key)
    return RecordShape((), short, long)


def _shown(
    names: Iterable[str], data: Mapping[str, Any], where: ConnectionId, *, with_empty: bool = False
) -> tuple[ShownField, ...]:
    fields = (_field(name, data[name], data, where) for name in names if name in data)
    return tuple(field for field in fields if with_empty or field.text or field.file_path)


def _field(name: str, value: Any, data: Mapping[str, Any], where: ConnectionId) -> ShownField:
    label = _LABELS.get(name) or name.replace("_", " ").capitalize()
    if isinstance(value, dict) and isinstance(file := cast("dict[str, Any]", value).get("blob_id"), str):
        media = str(cast("dict[str, Any]", value).get("mime_type", ""))
        bytes_ = cast("dict[str, Any]", value).get("size_bytes")
        facts = ", ".join(filter(None, (media, size(bytes_) if isinstance(bytes_, int) else "")))
        path = f"/console/files/{BlobId(file)}?connection_id={quote(where, safe='')}"
        return ShownField(name, label, facts, file_path=path, is_image=media in _INLINE_TYPES)
    if _is_structured(value):
        return ShownField(name, label, json.dumps(value, indent=2, ensure_ascii=False), is_structured=True)
    text = shown_value(value)
    address = data.get(f"{name}_address")
    return ShownField(
        name, label, f"{text} <{address}>" if isinstance(address, str) and address != text else text
    )


def _is_structured(value: Any) -> bool:
    entries = cast("list[Any]", value) if isinstance(value, list) else ()
    return isinstance(value, dict) or any(isinstance(entry, dict | list) for entry in entries)


def shown_value(value: Any) -> str:
    """Write a value for a person."""
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return ", ".join(map(shown_value, cast("list[Any]", value)))
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return ""
    at = instant(value) if isinstance(value, str) else None
    if at is None:
        return str(value)
    return day(at) if len(value) == _DAY_CHARS else f"{minute(at)} UTC"
