"""Time zones of calendars: by their names, by the names of Windows, or as the file defines them."""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from importlib import resources
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from headgate.model.instants import instant
from headgate.sources.calendar.recurrence import RuleBudget, starts_of_rule
from headgate.sources.formats.content_lines import ContentLine, content_line

_MAX_ZONES = 500
_OFFSET = re.compile(r"([+-])(\d\d)(\d\d)(\d\d)?", re.ASCII)
_NAMED_OFFSET = re.compile(r"\(?(?:UTC|GMT)\s?([+-])(\d{1,2}):?(\d\d)?\b.*", re.ASCII | re.IGNORECASE)
_LOCAL = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z?", re.ASCII)
#: Definitions begin long ago; rules of a year give the same days from here on.
_FIRST_YEAR = 1970
_LAST_YEAR = 2100


class DefinedZone(tzinfo):
    """A zone that a file defines: the offsets that hold from each change on, in local time."""

    def __init__(self, name: str, changes: Sequence[tuple[datetime, timedelta]], first: timedelta) -> None:
        self._name = name
        self._times = [time for time, _ in changes]
        self._offsets = [first, *(offset for _, offset in changes)]

    def utcoffset(self, dt: datetime | None, /) -> timedelta:
        if dt is None:
            return self._offsets[0]
        return self._offsets[bisect_right(self._times, dt.replace(tzinfo=None))]

    def dst(self, dt: datetime | None, /) -> timedelta | None:  # noqa: ARG002 - the interface of the standard library
        """Return nothing: a definition does not say what part of an offset is daylight saving."""
        return None

    def tzname(self, dt: datetime | None, /) -> str:  # noqa: ARG002 - the same
        return self._name


class ZoneTable:
    def __init__(self) -> None:
        self._found: dict[str, tzinfo | None] = {}
        self._defined: dict[str, tzinfo] = {}
        #: Names that are known only whatever their case, or only after they were asked for.
        self._loose: set[str] = set()

    def define(self, lines: Sequence[str]) -> None:
        if len(self._defined) >= _MAX_ZONES:
            return
        name, zone = read_definition(lines)
        if name and zone is not None:
            self._defined[name] = zone
            for asked in self.unknown:
                # An event stands before its zone.
                if asked.casefold() == name.casefold():
                    del self._found[asked]
                    self._loose.add(asked)

    def zone(self, name: str) -> tzinfo | None:
        """Find a zone; None if its name means nothing."""
        if name not in self._found:
            if len(self._found) >= _MAX_ZONES:
                return None
            self._found[name] = (
                _named(name) or self._defined.get(name) or _fixed(name) or self._in_any_case(name)
            )
        return self._found[name]

    def is_loose(self, name: str) -> bool:
        """Return whether a zone is one that earlier versions did not find."""
        return name in self._loose

    @property
    def unknown(self) -> Sequence[str]:
        return [name for name, zone in self._found.items() if zone is None]

    def _in_any_case(self, name: str) -> tzinfo | None:
        folded = name.casefold()
        defined = (zone for other, zone in self._defined.items() if other.casefold() == folded)
        zone = _named(name, in_any_case=True) or next(defined, None)
        if zone is not None:
            self._loose.add(name)
        return zone


def _named(name: str, *, in_any_case: bool = False) -> tzinfo | None:
    bare = name.strip().strip('"')
    parts = bare.strip("/").split("/")
    # Some programs write their address before the name: /freeassociation.sourceforge.net/Europe/Berlin.
    names = (_windows_zones().get(bare, bare), *("/".join(parts[-count:]) for count in (3, 2)))
    if in_any_case:
        names = tuple(_spellings().get(candidate.casefold(), "") for candidate in names)
    return next((zone for candidate in names if (zone := _of_database(candidate)) is not None), None)


@cache
def _windows_zones() -> dict[str, str]:
    table = resources.files("headgate.sources.calendar") / "windows_zones.toml"
    return tomllib.loads(table.read_text(encoding="utf-8"))


@cache
def _spellings() -> dict[str, str]:
    """Return the zones by their names in lower case, those of Windows included."""
    return {
        **{name.casefold(): zone for name, zone in _windows_zones().items()},
        **{name.casefold(): name for name in available_timezones()},
    }


def _of_database(name: str) -> tzinfo | None:
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def _fixed(name: str) -> tzinfo | None:
    match = _NAMED_OFFSET.fullmatch(name.strip())
    return timezone(_delta(match.group(1), match.group(2), match.group(3))) if match else None


def _delta(sign: str, hours: str, minutes: str | None, seconds: str | None = None) -> timedelta:
    offset = timedelta(
        hours=min(int(hours), 23), minutes=min(int(minutes or 0), 59), seconds=int(seconds or 0)
    )
    return -offset if sign == "-" else offset


def read_definition(lines: Sequence[str]) -> tuple[str, tzinfo | None]:
    """Read a VTIMEZONE: its name, and the zone if it can be understood."""
    name, place, budget = "", "", RuleBudget()
    changes: list[tuple[datetime, timedelta, timedelta]] = []
    part: dict[str, ContentLine] | None = None
    for text in lines:
        line = content_line(text)
        if line is None:
            continue
        if line.name == "BEGIN":
            part = {}
        elif line.name == "END" and part is not None:
            changes.extend(_changes(part, budget))
            part = None
        elif part is not None:
            part[line.name] = line
        elif line.name == "TZID":
            name = line.text.strip()
        elif line.name == "X-LIC-LOCATION":
            place = line.value.strip()
    return name, _of_database(place) if place else _zone_of(name, changes)


def _zone_of(name: str, changes: list[tuple[datetime, timedelta, timedelta]]) -> tzinfo | None:
    if not changes:
        return None
    ordered: list[Any] = sorted(changes)
    return DefinedZone(name, [(time, to) for time, to, _ in ordered], ordered[0][2])


def _changes(part: dict[str, ContentLine], budget: RuleBudget) -> list[tuple[datetime, timedelta, timedelta]]:
    start = _local(part.get("DTSTART"))
    to, before = _offset(part.get("TZOFFSETTO")), _offset(part.get("TZOFFSETFROM"))
    if start is None or to is None:
        return []
    rule = part.get("RRULE")
    if rule is None or "YEARLY" not in rule.value.upper():
        return [(start, to, before or to)]
    first = start.replace(year=max(start.year, _FIRST_YEAR), day=min(start.day, 28))
    series = starts_of_rule(rule.value, first, datetime(_LAST_YEAR, 1, 1), budget)  # noqa: DTZ001 - local time
    return [(time, to, before or to) for time in series.starts]


def _local(line: ContentLine | None) -> datetime | None:
    match = _LOCAL.fullmatch(line.value.strip()) if line else None
    try:
        return datetime(*map(int, match.groups())) if match else None  # type: ignore[arg-type]  # noqa: DTZ001
    except ValueError:
        return None


def _offset(line: ContentLine | None) -> timedelta | None:
    match = _OFFSET.fullmatch(line.value.strip()) if line else None
    return _delta(*match.groups()) if match else None


#: No offset leads out of the years between these.
_LEAST_YEAR, _MOST_YEAR = 1, 9999
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
    #: Whether its zone is one that earlier versions did not find.
    is_loose: bool = False

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
    def keys(self) -> frozenset[str]:
        """The key, and its day, by which some programs mean an occurrence of a series of whole days.

        In universal time the midnight of a place is up to half a day away.
        """
        away = timedelta(hours=12) if self.zone is UTC else timedelta()
        try:
            return frozenset({self.key, (self.local + away).date().isoformat()})
        except OverflowError:
            return frozenset({self.key})

    @property
    def id_part(self) -> str:
        """The key in ids; local in a zone that was not found before, so that importing again adds no event twice."""
        return self.local.isoformat() if self.is_loose and not self.is_day else self.key

    @property
    def is_storable(self) -> bool:
        """Whether its offset leaves it in the years of the calendar."""
        return _LEAST_YEAR < self.local.year < _MOST_YEAR or instant(self.text) is not None

    def at(self, local: datetime) -> CalendarTime:
        return replace(self, local=local)


def read_times(line: ContentLine, zones: ZoneTable) -> list[CalendarTime]:
    """Read the times of a property; of a period its beginning."""
    zone_name = line.parameter("TZID")
    zone = zones.zone(zone_name) if zone_name else None
    texts = (text.strip().partition("/")[0] for text in line.value.split(","))
    is_loose = zones.is_loose(zone_name) if zone_name else False
    times = (time for text in texts if (time := _time(text, zone)) is not None and time.is_storable)
    return [replace(time, is_loose=is_loose and time.zone is zone) for time in times]


def read_time(line: ContentLine | None, zones: ZoneTable) -> CalendarTime | None:
    return next(iter(read_times(line, zones)), None) if line is not None else None


def read_duration(line: ContentLine | None) -> timedelta | None:
    """Read a duration such as ``PT1H30M``."""
    match = _DURATION.fullmatch(line.value.strip()) if line else None
    if match is None:
        return None
    sign, *numbers = match.groups()
    weeks, days, hours, minutes, seconds = (int(number or 0) for number in numbers)
    length = timedelta(weeks=weeks, days=days, hours=hours, minutes=minutes, seconds=seconds)
    return -length if sign == "-" else length


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
