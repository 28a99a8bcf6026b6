"""The times of calendars: days, times of a zone, and times without one."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo

from headgate.model.instants import instant
from headgate.sources.calendar.zones import ZoneTable
from headgate.sources.content_lines import ContentLine

#: No offset leads out of the years between these.
_FIRST_YEAR, _LAST_YEAR = 1, 9999
_TIME = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)(?:T(\d\d):?(\d\d)(?::?(\d\d))?(Z)?)?", re.ASCII)
_DURATION = re.compile(
    r"([+-])?P(?:(\d{1,4})W)?(?:(\d{1,5})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,7})M)?(?:(\d{1,8})S)?)?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class CalendarTime:
    """A point in time as a calendar writes it."""

    local: datetime
    #: None: the time of wherever one is.
    zone: tzinfo | None = None
    is_day: bool = False

    @property
    def text(self) -> str:
        """The time for a record, with the offset of its zone if it has one."""
        if self.is_day:
            return self.local.date().isoformat()
        return self.local.replace(tzinfo=self.zone).isoformat().replace("+00:00", "Z")

    @property
    def key(self) -> str:
        """The same text for the same time, whichever zone it is written in."""
        if self.zone is None or self.is_day:
            return self.text
        try:
            return self.local.replace(tzinfo=self.zone).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        except (OverflowError, ValueError):
            return self.text

    @property
    def is_storable(self) -> bool:
        """Whether its offset leaves it in the years of the calendar."""
        return _FIRST_YEAR < self.local.year < _LAST_YEAR or instant(self.text) is not None

    def at(self, local: datetime) -> CalendarTime:
        """Return another time of the same zone."""
        return replace(self, local=local)


def read_times(line: ContentLine, zones: ZoneTable) -> list[CalendarTime]:
    """Read the times of a property; of a period its beginning."""
    zone_name = line.parameter("TZID")
    zone = zones.zone(zone_name) if zone_name else None
    texts = (text.strip().partition("/")[0] for text in line.value.split(","))
    return [time for text in texts if (time := _time(text, zone)) is not None and time.is_storable]


def read_time(line: ContentLine | None, zones: ZoneTable) -> CalendarTime | None:
    """Read the first time of a property."""
    return next(iter(read_times(line, zones)), None) if line is not None else None


def read_duration(line: ContentLine | None) -> timedelta | None:
    """Read a duration such as ``PT1H30M``."""
    match = _DURATION.fullmatch(line.value.strip()) if line else None
    if match is None:
        return None
    sign, *numbers = match.groups()
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in numbers)
    found = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -found if sign == "-" else found


def _time(text: str, zone: tzinfo | None) -> CalendarTime | None:
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, utc = match.groups()
    try:
        clock = (int(hour or 0), int(minute or 0), min(int(second or 0), 59))
        local = datetime(int(year), int(month), int(day), *clock)  # noqa: DTZ001 - the zone is apart
    except ValueError:
        return None
    return CalendarTime(local, UTC if utc else zone, is_day=hour is None)
