"""Events and tasks as iCalendar components: an occurrence of a recurring event is written as a changed occurrence."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headgate.sources.exports.content_text import component, escaped, line, parameter, texts

#: Of records whose time of writing is not known.
_NO_STAMP = "19700101T000000Z"
_PERSON = re.compile(r"(.*) <([^<>]*)>", re.DOTALL)
_DAY_CHARS = 10
#: Of a time without its offset.
_LOCAL_CHARS = 19


def calendar_begin(name: str) -> bytes:
    """Begin a file."""
    lines = ["VERSION:2.0", "PRODID:-//Headgate//EN", *texts("X-WR-CALNAME", [name])]
    return component("VCALENDAR", lines).removesuffix(b"END:VCALENDAR\r\n")


def calendar_end() -> bytes:
    """End a file."""
    return b"END:VCALENDAR\r\n"


def event(row: Mapping[str, Any]) -> bytes:
    """Write a record of events."""
    series, zone = row.get("series_id"), row.get("time_zone")
    # Of an occurrence that was read from a calendar, the id ends in when its series had it.
    original = _time("RECURRENCE-ID", str(row["id"])[len(series) + 1 :], None) if series else []
    lines = [
        line("UID", escaped(series if original else row["id"])),
        *original,
        *_described(row),
        *_time("DTSTART", row.get("starts_at"), zone),
        *_time("DTEND", row.get("ends_at"), zone),
        *(line("RRULE", rule) for rule in (row.get("recurrence") or "").split("; ") if rule),
        *([_person("ORGANIZER", row["organizer"])] if row.get("organizer") else ()),
        *(_person("ATTENDEE", one) for one in row.get("attendees") or ()),
        "TRANSP:TRANSPARENT" if row.get("is_busy") is False else "TRANSP:OPAQUE",
        *texts("CLASS", [(row.get("visibility") or "").upper()]),
        *texts("X-GOOGLE-CONFERENCE", [row.get("meeting_url")]),
    ]
    return component("VEVENT", lines)


def task(row: Mapping[str, Any]) -> bytes:
    """Write a record of tasks."""
    times = {"DUE": "due_at", "DTSTART": "starts_at", "COMPLETED": "completed_at"}
    lines = [
        line("UID", escaped(row["id"])),
        *_described(row),
        *(one for name, field in times.items() for one in _time(name, row.get(field), None)),
        *texts("PRIORITY", [row.get("priority")]),
    ]
    return component("VTODO", lines)


def _described(row: Mapping[str, Any]) -> list[str]:
    stamps = {"LAST-MODIFIED": _compact(row.get("updated_at")), "CREATED": _compact(row.get("created_at"))}
    written = next((one for one in stamps.values() if one), _NO_STAMP)
    categories = ",".join(escaped(one) for one in row.get("categories") or ())
    return [
        line("DTSTAMP", written),
        *texts("SUMMARY", [row.get("title")]),
        *texts("DESCRIPTION", [row.get("description")]),
        *texts("LOCATION", [row.get("location")]),
        *texts("STATUS", [(row.get("status") or "").upper()]),
        *texts("URL", [row.get("url")]),
        *([line("CATEGORIES", categories)] if categories else ()),
        *(line(name, one) for name, one in stamps.items() if one),
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
    found = _PERSON.fullmatch(text)
    label, address = found.groups() if found else ("", text)
    scheme = "" if ":" in address else "mailto:"
    return line(f"{name};CN={parameter(label)}" if label else name, f"{scheme}{address}")
