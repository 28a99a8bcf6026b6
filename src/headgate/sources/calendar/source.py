"""The source of calendars: iCalendar files (.ics), with recurring events as the events that they mean.

Each file is looked through once before it is read: for the zones that it defines, for the occurrences that were
changed one by one, and for the time when it was written, from which the future is reckoned.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import IO, Any

from headgate.model.declaration import WITH_OFFSETS
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
from headgate.sources.declaring import StreamSpec, all_but, fields
from headgate.sources.file_source import FileSource, read_each
from headgate.sources.formats.content_lines import Component, components, content_line
from headgate.sources.formats.values import clean
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.protocol import Item, Recognised, Reject, Row

_EVENT_FIELDS = fields(
    "id title calendar starts_at:time ends_at:time all_day:boolean time_zone location description organizer "
    "attendees:list status is_busy:boolean visibility categories:list url meeting_url recurrence series_id "
    "created_at:time updated_at:time",
    starts_at="A date for an event of whole days. Without an offset: the time of wherever the person is, "
    "compared as if it were UTC.",
    ends_at="When it is over; for whole days, the day after the last one.",
    status="confirmed, tentative or cancelled.",
    is_busy="Whether the time counts as taken.",
    visibility="public, private or confidential.",
    recurrence="The rule of a recurring event; each of its occurrences is a record.",
    series_id="The id that all occurrences of a recurring event have in common.",
)
_TASK_FIELDS = fields(
    "id title calendar due_at:time starts_at:time completed_at:time status priority:integer description location "
    "categories:list url created_at:time updated_at:time",
    calendar="The list that it is in.",
    status="needs-action, in-process, completed or cancelled.",
    priority="1 is the highest, 9 the lowest.",
)
_TIMES = ("id", "calendar", "starts_at", "ends_at", "all_day", "time_zone", "status", "is_busy", "series_id")

EVENTS = StreamSpec(
    name="events",
    label="Events",
    detail="One event of a calendar; each occurrence of a recurring event is one.",
    fields=_EVENT_FIELDS,
    time="starts_at",
    times=WITH_OFFSETS,
    title="title",
    words=("title", "description", "location"),
    groups=("calendar", "status", "location", "all_day", "organizer", "series_id"),
    views=(
        ("times", "Free and busy times only", _TIMES),
        (
            "without_texts",
            "Titles, times and places, without descriptions and people",
            all_but(_EVENT_FIELDS, "description", "attendees", "organizer", "url", "meeting_url"),
        ),
    ),
)
TASKS = StreamSpec(
    name="tasks",
    label="Tasks",
    detail="One task of a list.",
    fields=_TASK_FIELDS,
    time="created_at",
    times=WITH_OFFSETS,
    title="title",
    words=("title", "description"),
    groups=("calendar", "status", "priority"),
    views=(
        ("without_texts", "Titles and times, without descriptions", all_but(_TASK_FIELDS, "description")),
    ),
)


#: The lines that are looked at before events are read, and those that bound the components inside of events.
_SURVEYED = re.compile(
    r"(?:[A-Z0-9_-]+\.)?(?:DTSTAMP|LAST-MODIFIED|CREATED|RECURRENCE-ID|RRULE|DTSTART|BEGIN|END)\b",
    re.IGNORECASE,
)
_SUFFIXES = frozenset({".ics", ".ical", ".ifb", ".icalendar"})
_KINDS = frozenset({"VEVENT", "VTODO", "VTIMEZONE"})
#: How far series are followed beyond now.
AHEAD = timedelta(days=2 * 365)
_EPOCH, _LATEST = datetime(1970, 1, 1), datetime(2200, 1, 1)  # noqa: DTZ001 - local times
_MAX_CHANGED = 200_000
#: For times that count as they stand.
_NO_ZONES = ZoneTable()


def _is_calendar(file: InputFile) -> bool:
    return file.suffix in _SUFFIXES and b"BEGIN:VCALENDAR" in file.head.upper()


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
        if component.kind == "VTIMEZONE":
            self.zones.define(component.lines)
        elif component.kind:
            surveyed = read_properties([line for line in component.lines if _SURVEYED.match(line)])
            # An occurrence that was changed is read whole: without an id, its title and place are its id.
            self._note(read_properties(component.lines) if "RECURRENCE-ID" in surveyed else surveyed)
        elif (line := content_line(component.lines[0])) is not None and line.name == "X-WR-CALNAME":
            self.calendar = clean(line.text) or self.calendar

    def _note(self, component: Properties) -> None:
        for name in ("DTSTAMP", "LAST-MODIFIED", "CREATED"):
            self.written = _newer(self.written, component, name)
        if "RECURRENCE-ID" in component and len(self.changed) < _MAX_CHANGED:
            event = read_event(component, self.zones, "")
            if event is not None and event.replaces is not None:
                self.changed.update((event.uid, key) for key in event.replaces.keys)
        elif "RRULE" not in component:
            self.newest = _newer(self.newest, component, "DTSTART")

    def last(self, file: InputFile) -> datetime:
        """Return the local time up to which series are followed."""
        modified = None if file.modified_at is None else _EPOCH + timedelta(microseconds=file.modified_at)
        return min(max(self.written or self.newest or modified or _EPOCH, _EPOCH), _LATEST) + AHEAD


def _newer(known: datetime | None, component: Properties, name: str) -> datetime | None:
    times = [time.local for line in component.get(name, ())[:1] if (time := read_time(line, _NO_ZONES))]
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
    budget, last = RuleBudget(), max(survey.last(file), (now or _EPOCH) + AHEAD)
    for component in components(content, _KINDS - {"VTIMEZONE"}):
        if component.kind:
            place = f"{file.name}, entry {component.number}"
            yield from _entry(component, survey, place, budget, last)
    for zone in survey.zones.unknown:
        yield Reject(
            file.name, f"The zone {clean(zone[:80])} is not known; its times are stored without one."
        )


def _entry(
    component: Component, survey: _Survey, place: str, budget: RuleBudget, last: datetime
) -> Iterator[Row | Reject]:
    properties = read_properties(component.lines)
    if component.problem is not None:
        yield Reject(place, component.problem)
    elif component.kind == "VTODO":
        task = read_task(properties, survey.zones, survey.calendar)
        yield Row("tasks", task, place=place) if task else Reject(place, "The task has no id and no title.")
    elif (event := read_event(properties, survey.zones, survey.calendar)) is None:
        title = text_at(properties, "SUMMARY")
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
    last = max(last, min(event.start.local, _LATEST) + AHEAD)
    for rule in event.rules:
        rule_starts = starts_of_rule(rule, event.start.local, last, budget, event.start.zone)
        if rule_starts.problem is not None:
            yield Reject(place, rule_starts.problem)
        starts.update(
            (time.key, time) for local in rule_starts.starts if (time := event.start.at(local)).is_storable
        )
    starts.update((time.key, time) for time in event.extra)
    for key, start in starts.items():
        if key not in event.left_out and (event.uid, key) not in survey.changed:
            yield Row("events", event.record(start, start), place=place)


class CalendarSource(FileSource):
    """Calendars in files; their series are followed from the month in which they were given."""

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        given = None if tree.given_at is None else _EPOCH + timedelta(microseconds=tree.given_at)
        # A month, so that an import which goes on the next day finds what the first one counted.
        month = given and datetime(given.year, given.month, 1)  # noqa: DTZ001 - a local time
        return [replace(found, facts={"now": month}) for found in super().detect(tree)]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, partial(read_calendar, now=recognised.facts["now"]))


CALENDAR = CalendarSource("calendar", "Calendar", (EVENTS, TASKS), _is_calendar, read_calendar, plain_form=2)
