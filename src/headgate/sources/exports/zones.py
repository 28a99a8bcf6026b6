"""Times of calendars as they are written: in the zones of their records, with what each zone is.

A zone that programs know is written as the database has it, for the years that are needed. Of a zone that only one
file defined, the times of its events show which offset held when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from headgate.sources.calendar.zones import DefinedZone, ZoneTable
from headgate.sources.exports.content_lines import component, escaped, line, parameter

#: Between which years the changes of a zone are written, and for how long after the last event.
_LEAST_YEAR, _MOST_YEAR = 1900, 2100
_YEARS_AHEAD = 10
#: No zone changes twice within this time.
_LOOK = timedelta(days=7)

#: A time of a record: a day, a time without a zone, or one with an offset.
RecordTime = date | datetime
_Changes = Sequence[tuple[datetime, timedelta]]


def record_time(text: Any) -> RecordTime | None:
    """Read a time of a record; None for what is no time, which a program would refuse with the whole file."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return moment.date() if len(text) <= len("2026-01-01") else moment


def naive(time: RecordTime) -> datetime:
    """Return what a clock at its place shows."""
    return (
        time.replace(tzinfo=None)
        if isinstance(time, datetime)
        else datetime.combine(time, datetime.min.time())
    )


class Written(NamedTuple):
    """A time as it is written: the parameters of its property, and the form of its text."""

    parameters: str
    form: str
    #: What the clock shows in that form.
    local: datetime

    def at(self, local: datetime) -> str:
        """Write another time in the same form."""
        return f"{local.year:04d}{local.strftime(self.form)}"

    def property(self, name: str) -> str:
        return line(f"{name}{self.parameters}", self.at(self.local))


@dataclass(slots=True)
class WrittenZone:
    """A zone by its name: the one that programs know, or else what its times show of it."""

    name: str
    known: tzinfo | None
    _shown: dict[datetime, timedelta] = field(default_factory=dict[datetime, timedelta])
    _years: set[int] = field(default_factory=set[int])

    def includes(self, time: RecordTime) -> bool:
        """Note a time; return whether the zone has its offset then. A time in UTC may be of a record with a zone."""
        offset = time.utcoffset() if isinstance(time, datetime) else None
        if offset is None:
            return True
        if self.known is not None and naive(time).replace(tzinfo=self.known).utcoffset() != offset:
            return False
        self._years.add(time.year)
        if self.known is None and isinstance(time, datetime):
            self._shown[time.astimezone(UTC)] = offset
        return True

    @property
    def zone(self) -> tzinfo:
        if self.known is not None:
            return self.known
        changes = self._changes()
        return DefinedZone(self.name, changes, changes[0][1] if changes else timedelta())

    def local(self, moment: datetime) -> datetime:
        """Return what clocks of the zone show at a moment."""
        if self.known is not None:
            return naive(moment.astimezone(self.known))
        earlier = [time for time in self._shown if time <= moment]
        offset = self._shown[max(earlier) if earlier else min(self._shown)] if self._shown else timedelta()
        return naive(moment.astimezone(UTC)) + offset

    def definition(self) -> bytes:
        """Write the zone; nothing if no time with an offset is of it."""
        if not self._years:
            return b""
        changes = self._changes() if self.known is None else _changes_of(self.known, self._years)
        before, parts = changes[0][1], list[bytes]()
        for at, offset in changes:
            is_summer = self.known is not None and bool((at + _LOOK).replace(tzinfo=self.known).dst())
            offsets = (f"TZOFFSETFROM:{_written_offset(before)}", f"TZOFFSETTO:{_written_offset(offset)}")
            kind = "DAYLIGHT" if is_summer else "STANDARD"
            parts.append(component(kind, [f"DTSTART:{at.year:04d}{at:%m%dT%H%M%S}", *offsets]))
            before = offset
        return component("VTIMEZONE", [line("TZID", escaped(parameter(self.name)[1:-1]))], b"".join(parts))

    def _changes(self) -> _Changes:
        changes: list[tuple[datetime, timedelta]] = []
        for moment, offset in sorted(self._shown.items()):
            if not changes or changes[-1][1] != offset:
                changes.append((naive(moment) + offset, offset))
        return changes


def _written_offset(offset: timedelta) -> str:
    minutes, seconds = divmod(int(abs(offset).total_seconds()), 60)
    sign = "-" if offset < timedelta() else "+"
    return f"{sign}{minutes // 60:02d}{minutes % 60:02d}" + (f"{seconds:02d}" if seconds else "")


def _changes_of(zone: tzinfo, years: set[int]) -> _Changes:
    """Return from when on each offset of a zone holds, by the clocks before it."""
    first, last = (min(max(year, _LEAST_YEAR), _MOST_YEAR) for year in (min(years), max(years)))
    moment, end = (
        datetime(year, 1, 1, tzinfo=UTC) for year in (first - 1, min(last + _YEARS_AHEAD, _MOST_YEAR))
    )
    offset = _offset_at(zone, moment)
    changes = [(naive(moment) + offset, offset)]
    while moment < end:
        later = moment + _LOOK
        if (new := _offset_at(zone, later)) != offset:
            changes.append((naive(_moment_of_change(zone, moment, later)) + offset, new))
            offset = new
        moment = later
    return changes


def _offset_at(zone: tzinfo, moment: datetime) -> timedelta:
    return moment.astimezone(zone).utcoffset() or timedelta()


def _moment_of_change(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """Find the second from which the later of two offsets holds."""
    old = _offset_at(zone, before)
    while after - before > timedelta(seconds=1):
        middle = before + timedelta(seconds=int((after - before).total_seconds()) // 2)
        before, after = (middle, after) if _offset_at(zone, middle) == old else (before, middle)
    return after


@dataclass(slots=True)
class WrittenZones:
    """The zones of one file."""

    _table: ZoneTable = field(default_factory=ZoneTable)
    _zones: dict[str, WrittenZone] = field(default_factory=dict[str, WrittenZone])

    def zone(self, name: Any) -> WrittenZone | None:
        if not isinstance(name, str) or not name:
            return None
        if name not in self._zones:
            self._zones[name] = WrittenZone(name, self._table.zone(name))
        return self._zones[name]

    def definitions(self) -> bytes:
        return b"".join(zone.definition() for zone in self._zones.values())


def written(time: RecordTime, zone: WrittenZone | None) -> Written:
    """Say how a time is written: in its zone if that has its offset then, else in UTC."""
    if not isinstance(time, datetime):
        return Written(";VALUE=DATE", "%m%d", naive(time))
    if zone is not None and zone.includes(time):
        local = time if time.tzinfo is None else zone.local(time)
        return Written(f";TZID={parameter(zone.name)}", "%m%dT%H%M%S", local)
    if time.tzinfo is None:
        return Written("", "%m%dT%H%M%S", time)
    return Written("", "%m%dT%H%M%SZ", naive(time.astimezone(UTC)))
