"""When a recurring event takes place: rules followed in local time, within bounds that hold for hostile rules too.

A rule may repeat every second for ever, or on a day that does not exist. What a rule may cost is therefore reckoned
before it is followed: from how often it repeats and how far it goes.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import MAXYEAR, datetime, timedelta, tzinfo
from itertools import islice
from typing import Any, cast

from dateutil import rrule as _rrule  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

#: How many times a rule may step, and how many starts of it are given: the last ones.
MAX_STEPS = 20_000
MAX_STARTS = 5000
_MAX_RULE_CHARS = 500
_MAX_DIGITS = 9
_MAX_INTERVAL = 10_000
_UNITS = {
    "YEARLY": timedelta(days=365),
    "MONTHLY": timedelta(days=28),
    "WEEKLY": timedelta(days=7),
    "DAILY": timedelta(days=1),
    "HOURLY": timedelta(hours=1),
    "MINUTELY": timedelta(minutes=1),
    "SECONDLY": timedelta(seconds=1),
}
#: Their steps have all the same length, so that following can begin later.
_EVEN = frozenset({"WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"})
_PART = re.compile(
    r"(BYDAY|BYHOUR|BYMINUTE|BYMONTH|BYMONTHDAY|BYSECOND|BYSETPOS|BYWEEKNO|BYYEARDAY|WKST)=([A-Z0-9+,-]+)"
)
_UNTIL = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d))?Z?", re.ASCII)
#: After so many years the calendar repeats: leap years and the days of the week.
_CYCLE_YEARS = 400
#: Parts of a rule by which it may never have a day, and what following it in vain costs at most, in steps.
_RARE = frozenset({"BYMONTH", "BYMONTHDAY", "BYSETPOS", "BYWEEKNO", "BYYEARDAY"})
_IN_VAIN = {"YEARLY": 500, "MONTHLY": 1000, "WEEKLY": 5000} | dict.fromkeys(
    ("DAILY", "HOURLY", "MINUTELY", "SECONDLY"), 50_000
)
_BAD_RULE = (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError)


@dataclass(slots=True)
class RuleBudget:
    """How much following rules may cost in one file."""

    steps: int = 3_000_000
    starts: int = 500_000


@dataclass(frozen=True, slots=True)
class RuleStarts:
    """The starts of a series in order, and why there may be more."""

    starts: Sequence[datetime]
    problem: str | None = None


def starts_of_rule(
    text: str, first: datetime, last: datetime, budget: RuleBudget, zone: tzinfo | None = None
) -> RuleStarts:
    """Follow a rule from the first start to the last time, both local; the first start always counts."""
    parts = _parts(text)
    if parts is None or parts.get("FREQ") not in _UNITS:
        return RuleStarts([first], "The rule cannot be read.")
    interval = _number(parts.get("INTERVAL"), 1, _MAX_INTERVAL)
    count = _number(parts["COUNT"], 1, MAX_STEPS) if "COUNT" in parts else None
    last = min(last, _until(parts.get("UNTIL"), zone) or last)
    step = _UNITS[str(parts["FREQ"])] * interval
    steps = max((last - first) // step, 0) + 1
    begin = first
    if steps > MAX_STEPS and count is None and parts["FREQ"] in _EVEN:
        begin = first + step * (steps - MAX_STEPS)
    elif steps > MAX_STEPS:
        last = first + step * MAX_STEPS
    cost = min(steps, MAX_STEPS) + (_IN_VAIN[str(parts["FREQ"])] if _RARE.intersection(parts) else 0)
    if cost > budget.steps or budget.starts <= 0:
        return RuleStarts(
            [first], "The file has too many repetitions; of this event only the first is given."
        )
    budget.steps -= cost
    years = (MAXYEAR - max(begin.year, last.year)) // _CYCLE_YEARS * _CYCLE_YEARS
    rule = _rule_text(parts, interval, _shifted(last, years))
    limit = MAX_STEPS if count is None else count
    starts = _followed(rule, _shifted(begin, years), limit, min(MAX_STARTS, budget.starts))
    if starts is None:
        return RuleStarts([first], "The rule cannot be read.")
    budget.starts -= len(starts)
    return RuleStarts([_shifted(start, -years) for start in starts] or [first])


def _shifted(time: datetime, years: int) -> datetime:
    """Move a time by cycles of the calendar.

    The parser looks at the end of a rule only when it finds a day, so that a rule for the 30th of February is followed
    to the year 9999. Rules are therefore followed shortly before that year, where the days of the week are the same.
    """
    return time.replace(year=time.year + years)


def _followed(rule: str, begin: datetime, limit: int, most: int) -> list[datetime] | None:
    try:
        occurrences = cast("Any", _rrule).rrulestr(rule, dtstart=begin)
        starts: deque[datetime] = deque(islice(occurrences, limit), most)
    except _BAD_RULE:
        return None
    return list(starts)


def _parts(text: str) -> dict[str, str] | None:
    if len(text) > _MAX_RULE_CHARS:
        return None
    pairs = (
        part.partition("=") for part in text.upper().replace(" ", "").replace("\\", "").strip(";").split(";")
    )
    return {name: value for name, mark, value in pairs if mark}


def _rule_text(parts: dict[str, str], interval: int, last: datetime) -> str:
    wanted = [f"{name}={value}" for name, value in parts.items() if _PART.fullmatch(f"{name}={value}")]
    until = f"UNTIL={last:%Y%m%dT%H%M%S}"
    return ";".join((f"FREQ={parts['FREQ']}", f"INTERVAL={interval}", *wanted, until))


def _number(text: str | None, least: int, most: int) -> int:
    is_number = text is not None and text.isascii() and text.isdigit()
    return min(max(int((text or "")[:_MAX_DIGITS]), least), most) if is_number else least


def _until(text: str | None, zone: tzinfo | None) -> datetime | None:
    match = _UNTIL.fullmatch(text or "")
    if match is None:
        return None
    year, month, day, *clock = match.groups()
    hour, minute, second = clock if clock[0] is not None else ("23", "59", "59")
    try:
        local = datetime(int(year), int(month), int(day), int(hour), int(minute), min(int(second), 59))  # noqa: DTZ001
        is_utc = zone is not None and match.group().endswith("Z")
        return local + (local.replace(tzinfo=zone).utcoffset() or timedelta()) if is_utc else local
    except (ValueError, OverflowError):
        return None
