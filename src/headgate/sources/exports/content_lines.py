"""Events and tasks as iCalendar components: an occurrence of a recurring event is written as a changed occurrence."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from headgate.sources.formats.values import original_id

_LINE_BYTES = 74
_SPECIAL = re.compile(r"[\\,;]")


def line(name: str, value: str) -> str:
    """Write a property; the name may have parameters. Nothing but its end can end the line."""
    return f"{name}:{' '.join(value.splitlines())}"


def escaped(text: object) -> str:
    value = _SPECIAL.sub(lambda match: f"\\{match.group()}", str(text))
    return "\\n".join(value.splitlines()) if value else ""


def texts(name: str, values: Iterable[object]) -> list[str]:
    return [line(name, escaped(value)) for value in values if value not in (None, "")]


def _members(row: Mapping[str, Any], **names: str) -> list[str]:
    """Write the values of fields, each as a property of the name that it is given by."""
    return [
        text
        for name, field in names.items()
        for text in texts(name, row[field] if isinstance(row.get(field), list) else [row.get(field)])
    ]


def parameter(text: str) -> str:
    """Write the value of a parameter in quotes, which it cannot end."""
    return '"' + "".join("'" if letter == '"' else letter for letter in text if letter.isprintable()) + '"'


def component(kind: str, lines: Iterable[str]) -> bytes:
    """Put lines between a beginning and an end, folded."""
    return b"".join(_folded(text) for text in (f"BEGIN:{kind}", *lines, f"END:{kind}"))


def _folded(text: str) -> bytes:
    content = text.encode()
    if len(content) <= _LINE_BYTES:
        return content + b"\r\n"
    # The reader joins bytes, but other programs want whole characters.
    pieces, piece = list[str](), ""
    size = 0
    for letter in text:
        width = len(letter.encode())
        if size + width > _LINE_BYTES:
            pieces.append(piece)
            piece, size = "", 1
        piece += letter
        size += width
    return "\r\n ".join([*pieces, piece]).encode() + b"\r\n"


#: Of records whose time of writing is not known.
_NO_STAMP = "19700101T000000Z"
_PERSON = re.compile(r"(.*) <([^<>]*)>", re.DOTALL)
_DAY_CHARS = 10
#: Of a time without its offset.
_LOCAL_CHARS = 19


def calendar_begin(name: str) -> bytes:
    lines = ["VERSION:2.0", "PRODID:-//Headgate//EN", *texts("X-WR-CALNAME", [name])]
    return component("VCALENDAR", lines).removesuffix(b"END:VCALENDAR\r\n")


def calendar_end() -> bytes:
    return b"END:VCALENDAR\r\n"


def event(row: Mapping[str, Any]) -> bytes:
    series, zone = row.get("series_id"), row.get("time_zone")
    # Of an occurrence that was read from a calendar, the id ends in when its series had it.
    original = _time("RECURRENCE-ID", str(row["id"])[len(series) + 1 :], None) if series else []
    lines = [
        line("UID", escaped(original_id(str(series if original else row["id"])))),
        *original,
        *_described(row),
        *_time("DTSTART", row.get("starts_at"), zone),
        *_time("DTEND", row.get("ends_at"), zone),
        *(line("RRULE", rule) for rule in (row.get("recurrence") or "").split("; ") if rule),
        *([_person("ORGANIZER", row["organizer"])] if row.get("organizer") else ()),
        *(_person("ATTENDEE", attendee) for attendee in row.get("attendees") or ()),
        "TRANSP:TRANSPARENT" if row.get("is_busy") is False else "TRANSP:OPAQUE",
        *texts("CLASS", [(row.get("visibility") or "").upper()]),
        *_members(row, **{"X-GOOGLE-CONFERENCE": "meeting_url"}),
    ]
    return component("VEVENT", lines)


def task(row: Mapping[str, Any]) -> bytes:
    times = {"DUE": "due_at", "DTSTART": "starts_at", "COMPLETED": "completed_at"}
    lines = [
        line("UID", escaped(original_id(row["id"]))),
        *_described(row),
        *(text for name, field in times.items() for text in _time(name, row.get(field), None)),
        *_members(row, PRIORITY="priority"),
    ]
    return component("VTODO", lines)


def _described(row: Mapping[str, Any]) -> list[str]:
    stamps = {"LAST-MODIFIED": _compact(row.get("updated_at")), "CREATED": _compact(row.get("created_at"))}
    written = next((stamp for stamp in stamps.values() if stamp), _NO_STAMP)
    categories = ",".join(escaped(text) for text in row.get("categories") or ())
    return [
        line("DTSTAMP", written),
        *_members(row, SUMMARY="title", DESCRIPTION="description", LOCATION="location"),
        *texts("STATUS", [(row.get("status") or "").upper()]),
        *_members(row, URL="url"),
        *([line("CATEGORIES", categories)] if categories else ()),
        *(line(name, text) for name, text in stamps.items() if text),
    ]


def _time(name: str, text: Any, zone: str | None) -> list[str]:
    """Write a time; what is none is left out, because a program would refuse the whole file."""
    written = _compact(text[:_LOCAL_CHARS] if isinstance(text, str) and zone else text)
    if written is None:
        return []
    if len(text) == _DAY_CHARS:
        return [line(f"{name};VALUE=DATE", written[:8])]
    return [line(f"{name};TZID={parameter(zone)}" if zone else name, written)]


def _compact(text: Any) -> str | None:
    """Write a time as calendars do, one with an offset in UTC; None for what is no time."""
    try:
        moment = datetime.fromisoformat(text)
        is_local = moment.tzinfo is None
        in_its_zone = moment if is_local else moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return in_its_zone.strftime("%Y%m%dT%H%M%S" if is_local else "%Y%m%dT%H%M%SZ")


def _person(name: str, text: str) -> str:
    match = _PERSON.fullmatch(text)
    label, address = match.groups() if match else ("", text)
    scheme = "" if ":" in address else "mailto:"
    return line(f"{name};CN={parameter(label)}" if label else name, f"{scheme}{address}")


_KINDS = {"organisation": "org", "group": "group"}


def card(row: Mapping[str, Any], photo: bytes | None) -> bytes:
    """Write a record of contacts; its id becomes the card's."""
    names = (row.get("family_name"), row.get("given_name"), None, None, None)
    groups = ",".join(escaped(text) for text in row.get("groups") or ())
    lines = [
        "VERSION:4.0",
        line("UID", escaped(original_id(row["id"]))),
        *_members(row, FN="name"),
        line("N", ";".join(escaped(name or "") for name in names)),
        *_members(row, NICKNAME="nickname"),
        line("KIND", _KINDS.get(row.get("kind") or "", "individual")),
        *_members(row, EMAIL="emails", TEL="phones", IMPP="accounts"),
        *_members(row, ORG="organisation", TITLE="job", BDAY="birthday"),
        *(line("ADR", f";;{escaped(text)};;;;") for text in row.get("addresses") or ()),
        *_members(row, URL="websites"),
        *([line("CATEGORIES", groups)] if groups else ()),
        *_members(row, NOTE="notes", REV="updated_at"),
        *([line("PHOTO", row["photo_url"])] if row.get("photo_url") else ()),
        *(_photo(row["photo"], photo) if photo is not None else ()),
    ]
    return component("VCARD", lines)


def _photo(reference: Mapping[str, Any], content: bytes) -> list[str]:
    mime_type = str(reference["mime_type"]).replace(";", "").replace(",", "")
    return [line("PHOTO", f"data:{mime_type};base64,{base64.b64encode(content).decode()}")]
