"""The source of calendars: iCalendar files (.ics), with recurring events as the events that they mean.

Each file is looked through once before it is read: for the zones that it defines, for the occurrences that were
changed one by one, and for the time when it was written, from which the future is reckoned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import IO, Any

from headgate.sources.calendar.events import (
    CalendarEvent,
    Properties,
    read_event,
    read_properties,
    read_task,
    text_at,
)
from headgate.sources.calendar.recurrence import RuleBudget, starts_of_rule
from headgate.sources.calendar.zones import CalendarTime, ZoneTable, read_time
from headgate.sources.content_lines import Component, components, content_line
from headgate.sources.declaring import BOOLEAN, INTEGER, LIST, TEXT, TIME, StreamSpec, declaration
from headgate.sources.inputs.tree import InputFile, InputTree, connection_title
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row
from headgate.sources.values import clean

_EVENT_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "title": TEXT,
    "calendar": TEXT,
    "starts_at": {
        **TIME,
        "description": "A date for an event of whole days. Without an offset: the time of wherever the person is, "
        "compared as if it were UTC.",
    },
    "ends_at": {**TIME, "description": "When it is over; for whole days, the day after the last one."},
    "all_day": BOOLEAN,
    "time_zone": TEXT,
    "location": TEXT,
    "description": TEXT,
    "organizer": TEXT,
    "attendees": LIST,
    "status": {**TEXT, "description": "confirmed, tentative or cancelled."},
    "is_busy": {**BOOLEAN, "description": "Whether the time counts as taken."},
    "visibility": {**TEXT, "description": "public, private or confidential."},
    "categories": LIST,
    "url": TEXT,
    "meeting_url": TEXT,
    "recurrence": {
        **TEXT,
        "description": "The rule of a recurring event; each of its occurrences is a record.",
    },
    "series_id": {**TEXT, "description": "The id that all occurrences of a recurring event have in common."},
    "created_at": TIME,
    "updated_at": TIME,
}
_TASK_FIELDS: dict[str, dict[str, Any]] = {
    "id": TEXT,
    "title": TEXT,
    "calendar": {**TEXT, "description": "The list that it is in."},
    "due_at": TIME,
    "starts_at": TIME,
    "completed_at": TIME,
    "status": {**TEXT, "description": "needs-action, in-process, completed or cancelled."},
    "priority": {**INTEGER, "description": "1 is the highest, 9 the lowest."},
    "description": TEXT,
    "location": TEXT,
    "categories": LIST,
    "url": TEXT,
    "created_at": TIME,
    "updated_at": TIME,
}
_TIMES = ("id", "calendar", "starts_at", "ends_at", "all_day", "time_zone", "status", "is_busy", "series_id")
_TEXTS = frozenset({"description", "attendees", "organizer", "url", "meeting_url"})

EVENTS = StreamSpec(
    name="events",
    label="Events",
    detail="One event of a calendar; each occurrence of a recurring event is one.",
    fields=_EVENT_FIELDS,
    time="starts_at",
    title="title",
    words=("title", "description", "location"),
    groups=("calendar", "status", "location", "all_day", "organizer", "series_id"),
    views=(
        ("times", "Free and busy times only", _TIMES),
        (
            "without_texts",
            "Titles, times and places, without descriptions and people",
            tuple(name for name in _EVENT_FIELDS if name not in _TEXTS),
        ),
    ),
)
TASKS = StreamSpec(
    name="tasks",
    label="Tasks",
    detail="One task of a list.",
    fields=_TASK_FIELDS,
    time="created_at",
    title="title",
    words=("title", "description"),
    groups=("calendar", "status", "priority"),
    views=(
        (
            "without_texts",
            "Titles and times, without descriptions",
            tuple(name for name in _TASK_FIELDS if name != "description"),
        ),
    ),
)


#: The lines that are looked at before events are read, and those that bound the components inside of events.
_SURVEYED = re.compile(
    r"(?:[A-Z0-9_-]+\.)?(?:DTSTAMP|LAST-MODIFIED|CREATED|RECURRENCE-ID|RRULE|DTSTART|BEGIN|END)\b",
    re.IGNORECASE,
)
_SUFFIXES = frozenset({".ics", ".ical", ".ifb", ".icalendar"})
_KINDS = frozenset({"VEVENT", "VTODO", "VTIMEZONE"})
_AHEAD = timedelta(days=2 * 365)
_EPOCH, _LATEST = datetime(1970, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
_MAX_CHANGED = 200_000
#: For times that count as they stand.
_NO_ZONES = ZoneTable()


class CalendarSource:
    """Calendars as iCalendar files."""

    name = "calendar"
    title = "Calendar"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Recognise iCalendar files by their ending and by their first line."""
        files = [file for file in tree.files if file.suffix in _SUFFIXES and _is_calendar(file)]
        title = connection_title(self.title, tree.label)
        return [Recognised(self.name, title, files, Certainty.FORMAT)] if files else []

    def declare(self, found: Recognised) -> Mapping[str, Any]:  # noqa: ARG002 - every calendar has this shape
        """Declare events and tasks."""
        return declaration(self.name, self.title, [EVENTS, TASKS])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read event by event."""
        return read_each(found, resume, read_calendar)


def _is_calendar(file: InputFile) -> bool:
    return b"BEGIN:VCALENDAR" in file.head.upper()


@dataclass(slots=True)
class _Survey:
    """What must be known of a file before its events can be read."""

    calendar: str
    zones: ZoneTable = field(default_factory=ZoneTable)
    #: The keys of the occurrences that stand in the file themselves.
    changed: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    written: datetime | None = None
    newest: datetime | None = None

    def take(self, component: Component) -> None:
        """Look at one component."""
        if component.kind == "VTIMEZONE":
            self.zones.define(component.lines)
        elif component.kind:
            found = read_properties([line for line in component.lines if _SURVEYED.match(line)])
            # An occurrence that was changed is read whole: without an id, its title and place are its id.
            self._look(read_properties(component.lines) if "RECURRENCE-ID" in found else found)
        elif (line := content_line(component.lines[0])) is not None and line.name == "X-WR-CALNAME":
            self.calendar = clean(line.text) or self.calendar

    def _look(self, found: Properties) -> None:
        for name in ("DTSTAMP", "LAST-MODIFIED", "CREATED"):
            self.written = _newer(self.written, found, name)
        if "RECURRENCE-ID" in found and len(self.changed) < _MAX_CHANGED:
            event = read_event(found, self.zones, "")
            if event is not None and event.replaces is not None:
                self.changed.add((event.uid, event.replaces.key))
        elif "RRULE" not in found:
            self.newest = _newer(self.newest, found, "DTSTART")

    def last(self, file: InputFile) -> datetime:
        """Return the local time up to which series are followed."""
        modified = None if file.modified_at is None else _EPOCH + timedelta(microseconds=file.modified_at)
        return min(max(self.written or self.newest or modified or _EPOCH, _EPOCH), _LATEST) + _AHEAD


def _newer(known: datetime | None, found: Properties, name: str) -> datetime | None:
    times = [time.local for line in found.get(name, ())[:1] if (time := read_time(line, _NO_ZONES))]
    return max(filter(None, (known, *times)), default=None)


def read_calendar(
    file: InputFile, content: IO[bytes], *, now: datetime | None = None
) -> Iterator[Row | Reject]:
    """Read a file; series are followed from the time when it was written, or from `now` if that is later."""
    survey = _Survey(clean(file.stem))
    with file.open() as first:
        for component in components(first, _KINDS):
            if component.problem is None:
                survey.take(component)
    budget, last = RuleBudget(), max(survey.last(file), (now or _EPOCH) + _AHEAD)
    for component in components(content, _KINDS - {"VTIMEZONE"}):
        if component.kind:
            place = f"{file.name}, entry {component.number}"
            yield from _entry(component, survey, place, budget, last)


def _entry(
    component: Component, survey: _Survey, place: str, budget: RuleBudget, last: datetime
) -> Iterator[Row | Reject]:
    found = read_properties(component.lines)
    if component.problem is not None:
        yield Reject(place, component.problem)
    elif component.kind == "VTODO":
        task = read_task(found, survey.zones, survey.calendar)
        yield Row("tasks", task, place=place) if task else Reject(place, "The task has no id and no title.")
    elif (event := read_event(found, survey.zones, survey.calendar)) is None:
        title = text_at(found, "SUMMARY")
        yield Reject(place, f"The event has no start that can be read{f': {title[:80]}' if title else ''}.")
    elif event.is_series:
        yield from _series(event, survey, place, budget, last)
    else:
        yield Row("events", event.record(event.start, event.replaces), place=place)


def _series(
    event: CalendarEvent, survey: _Survey, place: str, budget: RuleBudget, last: datetime
) -> Iterator[Row | Reject]:
    starts: dict[str, CalendarTime] = {} if event.rules else {event.start.key: event.start}
    # A series that begins later is followed for as long from its start on.
    last = max(last, min(event.start.local, _LATEST) + _AHEAD)
    for rule in event.rules:
        found = starts_of_rule(rule, event.start.local, last, budget, event.start.zone)
        if found.problem is not None:
            yield Reject(place, found.problem)
        starts.update(
            (time.key, time) for local in found.starts if (time := event.start.at(local)).is_storable
        )
    starts.update((time.key, time) for time in event.extra)
    for key, start in starts.items():
        if key not in event.left_out and (event.uid, key) not in survey.changed:
            yield Row("events", event.record(start, start), place=place)


CALENDAR = CalendarSource()
