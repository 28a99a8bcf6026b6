"""A calendar as an iCalendar file: events and tasks, and each series as one event with the occurrences that differ.

The occurrences of a series are held back until all are known. The series is then written by the rule of its records,
with the days that the rule has and no record, and those that only a record has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from headgate.sources.calendar.recurrence import RuleBudget, starts_of_rule
from headgate.sources.exports.content_lines import component, escaped, line, members, person, texts
from headgate.sources.exports.zones import (
    RecordTime,
    Written,
    WrittenZone,
    WrittenZones,
    naive,
    record_time,
    written,
)
from headgate.sources.formats.values import original_id

#: Of records whose time of writing is not known.
_NO_STAMP = "19700101T000000Z"
#: What occurrences of a series never share.
_OWN = frozenset({"id", "starts_at", "ends_at"})
_DATES_A_LINE = 50


class _Occurrence(NamedTuple):
    """When an event takes place, and when its series had it."""

    original: RecordTime
    start: RecordTime
    end: RecordTime | None

    @property
    def length(self) -> timedelta | None:
        """How long it takes, by the clocks at its place."""
        return None if self.end is None else naive(self.end) - naive(self.start)

    @property
    def is_moved(self) -> bool:
        if isinstance(self.original, datetime) and isinstance(self.start, datetime) and self.original.tzinfo:
            return self.start.tzinfo is None or self.original != self.start
        # A time without an offset is one of the clocks of its zone.
        is_day = not isinstance(self.original, datetime)
        return is_day == isinstance(self.start, datetime) or naive(self.original) != naive(self.start)


@dataclass(slots=True)
class _Variant:
    """Occurrences of a series that differ in nothing but their times."""

    data: Mapping[str, Any]
    occurrences: list[_Occurrence] = field(default_factory=list[_Occurrence])


@dataclass(slots=True)
class CalendarFile:
    """What a calendar is written from; its single events can be written as they come, its beginning last."""

    name: str
    now: datetime
    _zones: WrittenZones = field(default_factory=WrittenZones)
    _series: dict[str, dict[bytes, _Variant]] = field(default_factory=dict[str, dict[bytes, _Variant]])
    _budget: RuleBudget = field(default_factory=RuleBudget)

    def begin(self) -> bytes:
        lines = ["VERSION:2.0", "PRODID:-//Headgate//EN", *texts("X-WR-CALNAME", [self.name])]
        return component("VCALENDAR", lines, self._zones.definitions()).removesuffix(self.end())

    @staticmethod
    def end() -> bytes:
        return b"END:VCALENDAR\r\n"

    def event(self, row: Mapping[str, Any]) -> bytes:
        """Write an event; an occurrence of a series is held back, and comes with its series."""
        start, end = record_time(row.get("starts_at")), record_time(row.get("ends_at"))
        series = row.get("series_id")
        # Of an occurrence that was read from a calendar, the id ends in when its series had it.
        original = record_time(str(row["id"])[len(series) + 1 :]) if isinstance(series, str) else None
        if original is None or start is None:
            uid = line("UID", escaped(original_id(str(row["id"]))))
            return _event(row, [uid, *self._times(row, {"DTSTART": start, "DTEND": end})])
        data = {name: value for name, value in row.items() if name not in _OWN}
        variants = self._series.setdefault(str(series), {})
        variant = variants.setdefault(msgspec.json.encode(data, order="deterministic"), _Variant(data))
        zone = self._zones.zone(row.get("time_zone"))
        variant.occurrences.append(_Occurrence(_as_start(original, start, zone), start, end))
        # Its zone is noted before the series is written.
        self._times(row, {"DTSTART": start, "DTEND": end})
        return b""

    def task(self, row: Mapping[str, Any]) -> bytes:
        names = {"DUE": "due_at", "DTSTART": "starts_at", "COMPLETED": "completed_at"}
        times = self._times({}, {name: record_time(row.get(member)) for name, member in names.items()})
        lines = [line("UID", escaped(original_id(row["id"]))), *_described(row), *times]
        return component("VTODO", [*lines, *members(row, PRIORITY="priority")])

    def series(self) -> Iterator[bytes]:
        """Write the series whose occurrences were held back."""
        for series, variants in self._series.items():
            yield from self._one_series(line("UID", escaped(original_id(series))), list(variants.values()))

    def _one_series(self, uid: str, variants: Sequence[_Variant]) -> Iterator[bytes]:
        usual = max(
            variants, key=lambda variant: (bool(variant.data.get("recurrence")), len(variant.occurrences))
        )
        length = Counter(occurrence.length for occurrence in usual.occurrences).most_common(1)[0][0]
        regular = {
            occurrence.original
            for occurrence in usual.occurrences
            if not occurrence.is_moved and occurrence.length == length
        }
        if len(regular) == 1 and not usual.data.get("recurrence"):
            # One time is no series: the file had only what was changed.
            regular.clear()
        if regular:
            originals = {occurrence.original for variant in variants for occurrence in variant.occurrences}
            yield self._beginning(uid, usual.data, originals, length)
        for variant in variants:
            for occurrence in variant.occurrences:
                if variant is not usual or occurrence.original not in regular:
                    original, start, end = occurrence
                    times = {"RECURRENCE-ID": original, "DTSTART": start, "DTEND": end}
                    yield _event(variant.data, [uid, *self._times(variant.data, times)])

    def _beginning(
        self, uid: str, data: Mapping[str, Any], originals: set[RecordTime], length: timedelta | None
    ) -> bytes:
        """Write the event that a series begins with: its rules, and the days by which its records differ from them."""
        zone = self._zones.zone(data.get("time_zone"))
        there = {time.local: time for time in (written(original, zone) for original in originals)}
        first, last = there[min(there)], max(there)
        rules = [rule for rule in str(data.get("recurrence") or "").split("; ") if rule]
        ruled = self._ruled(rules, first, last, zone) or {first.local}
        lines = [uid, first.property("DTSTART")]
        lines += [] if length is None else [first._replace(local=first.local + length).property("DTEND")]
        lines += [line("RRULE", rule) for rule in rules]
        lines += _dates("RDATE", first, there.keys() - ruled)
        return _event(data, [*lines, *_dates("EXDATE", first, ruled - there.keys())])

    def _ruled(
        self, rules: Sequence[str], first: Written, last: datetime, zone: WrittenZone | None
    ) -> set[datetime]:
        """Return when the rules have the series, up to the last that is known of it."""
        ruled: set[datetime] = set()
        clock = UTC if first.form.endswith("Z") else zone.zone if zone is not None else None
        for rule in rules:
            # From a rule that ends, nothing else is to be expected once its end is past.
            has_end = "COUNT" in rule.upper() or "UNTIL" in rule.upper()
            until = max(last, naive(self.now)) if has_end else last
            ruled.update(starts_of_rule(rule, first.local, until, self._budget, clock).starts)
        return ruled

    def _times(self, row: Mapping[str, Any], times: Mapping[str, RecordTime | None]) -> list[str]:
        zone = self._zones.zone(row.get("time_zone"))
        return [written(time, zone).property(name) for name, time in times.items() if time is not None]


def _as_start(original: RecordTime, start: RecordTime, zone: WrittenZone | None) -> RecordTime:
    """Return when a series had an occurrence by the clocks of its zone, if the series is in one: ids have it in UTC."""
    if not isinstance(original, datetime) or not isinstance(start, datetime) or original.tzinfo is None:
        return original
    if original == start:
        return start
    is_local = zone is not None and zone.known is not None and zone.includes(start)
    return original.astimezone(zone.known) if zone is not None and is_local else original


def _dates(name: str, like: Written, dates: Iterable[datetime]) -> list[str]:
    texts = [like.at(local) for local in sorted(dates)]
    return [
        line(f"{name}{like.parameters}", ",".join(texts[begin : begin + _DATES_A_LINE]))
        for begin in range(0, len(texts), _DATES_A_LINE)
    ]


def _event(row: Mapping[str, Any], times: Sequence[str]) -> bytes:
    lines = [
        *times,
        *_described(row),
        *([person("ORGANIZER", row["organizer"])] if row.get("organizer") else ()),
        *(person("ATTENDEE", attendee) for attendee in row.get("attendees") or ()),
        "TRANSP:TRANSPARENT" if row.get("is_busy") is False else "TRANSP:OPAQUE",
        *texts("CLASS", [(row.get("visibility") or "").upper()]),
        *members(row, **{"X-GOOGLE-CONFERENCE": "meeting_url"}),
    ]
    return component("VEVENT", lines)


def _described(row: Mapping[str, Any]) -> list[str]:
    names = {"LAST-MODIFIED": "updated_at", "CREATED": "created_at"}
    times = {name: record_time(row.get(member)) for name, member in names.items()}
    stamps = {name: written(time, None) for name, time in times.items() if time is not None}
    stamp = next((time.property("DTSTAMP") for time in stamps.values()), line("DTSTAMP", _NO_STAMP))
    categories = ",".join(escaped(text) for text in row.get("categories") or ())
    return [
        stamp,
        *members(row, SUMMARY="title", DESCRIPTION="description", LOCATION="location"),
        *texts("STATUS", [(row.get("status") or "").upper()]),
        *members(row, URL="url"),
        *([line("CATEGORIES", categories)] if categories else ()),
        *(time.property(name) for name, time in stamps.items()),
    ]
