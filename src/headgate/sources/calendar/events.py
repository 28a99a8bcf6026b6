"""One event or task of a calendar as a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headgate.sources.calendar.zones import CalendarTime, ZoneTable, read_duration, read_time, read_times
from headgate.sources.formats.content_lines import ContentLine, properties
from headgate.sources.formats.values import clean, digest_of, id_of, without_empty

_MAX_ATTENDEES = 1000
_MAX_DATES = 5000

#: The properties of a component by their names.
Properties = Mapping[str, Sequence[ContentLine]]


@dataclass(frozen=True, slots=True)
class CalendarEvent:
    """An event as a calendar writes it: once, as a series, or as the changed occurrence of one."""

    uid: str
    start: CalendarTime
    #: How long it takes, in local time; None if it has no end.
    length: timedelta | None
    #: What every occurrence of it has.
    data: Mapping[str, Any]
    rules: Sequence[str]
    extra: Sequence[CalendarTime]
    left_out: frozenset[str]
    #: Which occurrence this one replaces.
    replaces: CalendarTime | None

    @property
    def is_series(self) -> bool:
        return self.replaces is None and bool(self.rules or self.extra)

    def record(self, start: CalendarTime, original: CalendarTime | None = None) -> dict[str, Any]:
        """Return the record of one occurrence; `original` is when a series had it."""
        end = _later(start, self.length)
        key = id_of(self.uid)
        return without_empty(
            {
                "id": f"{key}_{original.id_part}" if original else key,
                **self.data,
                "starts_at": start.text,
                "ends_at": end.text if end else None,
                "series_id": key if original else None,
            }
        )


def read_properties(lines: Sequence[str]) -> dict[str, list[ContentLine]]:
    by_name: dict[str, list[ContentLine]] = {}
    for line in properties(lines):
        by_name.setdefault(line.name, []).append(line)
    return by_name


def read_event(event: Properties, zones: ZoneTable, calendar: str) -> CalendarEvent | None:
    """Read an event; None if it has no start that can be read."""
    start = read_time(_first(event, "DTSTART"), zones)
    if start is None:
        return None
    return CalendarEvent(
        uid=text_at(event, "UID")
        or digest_of(start.key, text_at(event, "SUMMARY"), text_at(event, "LOCATION")),
        start=start,
        length=_length(event, start, zones),
        data={**_described(event), **_circumstances(event, start), "calendar": calendar},
        rules=[line.value.strip() for line in event.get("RRULE", ())][:4],
        extra=_times(event, "RDATE", zones),
        left_out=frozenset(key for time in _times(event, "EXDATE", zones) for key in time.keys),
        replaces=read_time(_first(event, "RECURRENCE-ID"), zones),
    )


def read_task(task: Properties, zones: ZoneTable, calendar: str) -> dict[str, Any] | None:
    """Read a task; None if it has neither an id nor a title."""
    uid, title = text_at(task, "UID"), text_at(task, "SUMMARY")
    if uid is None and title is None:
        return None
    times = {"due_at": "DUE", "starts_at": "DTSTART", "completed_at": "COMPLETED", "created_at": "CREATED"}
    read = {name: read_time(_first(task, source), zones) for name, source in times.items()}
    data = {name: time.text if time else None for name, time in read.items()}
    priority = text_at(task, "PRIORITY") or ""
    more = {"priority": int(priority) if priority in set("123456789") else None, "calendar": calendar}
    return without_empty({"id": id_of(uid or digest_of(title, data)), **_described(task), **data, **more})


def text_at(component: Properties, name: str) -> str | None:
    line = _first(component, name)
    return clean(line.text) or None if line else None


def _first(component: Properties, name: str) -> ContentLine | None:
    return next(iter(component.get(name, ())), None)


def _times(component: Properties, name: str, zones: ZoneTable) -> list[CalendarTime]:
    return [time for line in component.get(name, ()) for time in read_times(line, zones)][:_MAX_DATES]


def _length(component: Properties, start: CalendarTime, zones: ZoneTable) -> timedelta | None:
    end = read_time(_first(component, "DTEND"), zones)
    if end is not None and end.is_day == start.is_day:
        if end.zone is not None and start.zone is not None and end.zone is not start.zone:
            return max(
                end.local.replace(tzinfo=end.zone) - start.local.replace(tzinfo=start.zone), timedelta()
            )
        return max(end.local - start.local, timedelta())
    length = read_duration(_first(component, "DURATION"))
    return length if length is not None else timedelta(days=1) if start.is_day else None


def _later(start: CalendarTime, length: timedelta | None) -> CalendarTime | None:
    if length is None:
        return None
    try:
        end = start.at(start.local + length)
    except OverflowError:
        return None
    return end if end.is_storable else None


def _described(component: Properties) -> dict[str, Any]:
    return {
        "title": text_at(component, "SUMMARY"),
        "description": text_at(component, "DESCRIPTION"),
        "location": text_at(component, "LOCATION"),
        "status": (text_at(component, "STATUS") or "").lower(),
        "url": text_at(component, "URL"),
        "categories": [
            clean(item) for line in component.get("CATEGORIES", ()) for item in line.items if item
        ],
        "updated_at": _stamp(component, "LAST-MODIFIED"),
    }


def _circumstances(event: Properties, start: CalendarTime) -> dict[str, Any]:
    organizer, zone = _first(event, "ORGANIZER"), _first(event, "DTSTART")
    rules = [clean(line.value.strip()) for line in event.get("RRULE", ())]
    return {
        "all_day": start.is_day,
        "time_zone": clean(zone.parameter("TZID") or "") if zone else None,
        "organizer": _person(organizer) if organizer else None,
        "attendees": [_person(line) for line in event.get("ATTENDEE", ())[:_MAX_ATTENDEES]],
        "recurrence": "; ".join(rules)[:1000],
        "is_busy": (text_at(event, "TRANSP") or "").upper() != "TRANSPARENT",
        "visibility": (text_at(event, "CLASS") or "").lower(),
        "meeting_url": text_at(event, "X-GOOGLE-CONFERENCE"),
        "created_at": _stamp(event, "CREATED"),
    }


def _stamp(component: Properties, name: str) -> str | None:
    time = read_time(_first(component, name), _NO_ZONES)
    return time.text if time else None


def _person(line: ContentLine) -> str:
    address = clean(line.value.strip())
    address = address[len("mailto:") :] if address.lower().startswith("mailto:") else address
    name = clean(line.parameter("CN") or "").strip()
    return f"{name} <{address}>" if name and name.lower() != address.lower() else address


_NO_ZONES = ZoneTable()
