"""The line of a stream: which fields say when, who, how much and what, as declared or as their names suggest."""

from __future__ import annotations

import zoneinfo
from collections.abc import Iterable, Mapping

from headgate.model.declaration import (
    DAYS,
    TITLE_FIELDS,
    WITH_OFFSETS,
    ZONE_UNKNOWN,
    Field,
    FieldKind,
    LineFields,
)
from headgate.model.ids import FieldName
from headgate.schema.document import StreamDocument

#: What fields are usually called, the best first.
_FROM = (
    "from",
    "author",
    "sender",
    "sender_name",
    "counterparty",
    "organizer",
    "artist",
    "creator",
    "owner",
    "user",
)
_TO = ("to", "recipient", "recipients", "attendees", "participants", "people", "contact", "contacts")
_WHERE = ("channel", "conversation", "location", "site", "address")
_AMOUNTS = ("amount", "total", "price", "cost", "balance", "value")
_UNITS = ("currency", "unit")
_TEXTS = ("text", "body", "content", "message", "description", "notes", "summary", "beginning", "purpose")
_QUOTED = ("quoted", "quoted_text", "quoted_body", "quoted_reply")
_PEOPLE = frozenset({FieldKind.TEXT, FieldKind.JSON})
_TEXT = frozenset({FieldKind.TEXT})
_NUMBER = frozenset(kind for kind in FieldKind if kind.is_number)
#: How a schema marks the field that names a record.
_ROLE, _TITLE_ROLE = "x_pdpp_role", "primary-title"

Fields = Mapping[FieldName, Field]


def read_line(stream: StreamDocument, fields: Fields) -> LineFields:
    """Return the line of a stream; what the declaration does not name is derived."""
    declared = stream.line
    text = _named(declared.text) or _first(fields, _TEXTS, _TEXT)
    title = _named(declared.title) or _titled(fields) or _first(fields, TITLE_FIELDS, _TEXT)
    amount = _named(declared.amount) or _first(fields, _AMOUNTS, _NUMBER)
    unit = _named(declared.unit) or _first(fields, _UNITS, _TEXT)
    who = tuple(map(FieldName, declared.who)) or tuple(
        name for names in (_FROM, _TO) if (name := _first(fields, names, _PEOPLE)) is not None
    )
    where = _named(declared.where) or _first(fields, _WHERE, _TEXT)
    quoted = _named(declared.quoted) or _first(fields, _QUOTED, _TEXT)
    return LineFields(
        time=_named(declared.time) or _named(stream.consent_time_field) or _named(stream.cursor_field),
        # A record is named once: a chat message by its text, a bank record by its description.
        who=tuple(name for name in who if name not in {title, text}),
        where=where if where not in {title, text, *who} else None,
        amount=amount,
        unit=unit if amount is not None else None,
        title=title if title != text else None,
        text=text,
        quoted=quoted if quoted not in {title, text} else None,
    )


def read_times(stream: StreamDocument, line: LineFields, fields: Fields) -> str:
    """Return whose clock the times of a stream are of, as far as its source knows."""
    if line.time is not None and fields[line.time].kind is FieldKind.DATE:
        return DAYS
    return stream.times or ZONE_UNKNOWN


def is_clock(times: str) -> bool:
    """Return whether a declaration may say this of its times."""
    if times in {"UTC", WITH_OFFSETS, ZONE_UNKNOWN, DAYS}:
        return True
    try:
        return zoneinfo.ZoneInfo(times).key == times
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False


def _named(name: str | None) -> FieldName | None:
    return None if name is None else FieldName(name)


def _titled(fields: Fields) -> FieldName | None:
    """Return the text field that its schema marks as the title."""
    return next(
        (
            name
            for name, field in fields.items()
            if field.schema.get(_ROLE) == _TITLE_ROLE and field.kind is FieldKind.TEXT
        ),
        None,
    )


def _first(fields: Fields, names: Iterable[str], kinds: frozenset[FieldKind]) -> FieldName | None:
    usual = map(FieldName, names)
    return next((name for name in usual if name in fields and fields[name].kind in kinds), None)
