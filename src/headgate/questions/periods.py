"""Days: from what a phrase names (last week, a month, a season, before a holiday) to the days that are meant. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from dateutil.easter import EASTER_ORTHODOX, EASTER_WESTERN, easter

from headgate.model.asked import Days

#: What recurs and has not begun is meant as well if it begins within so many days.
_SOON_DAYS = 92
_SEASON_MONTHS = 3
_MONTHS = 12
_DAY = timedelta(days=1)
_WEEK = timedelta(days=7)
_SATURDAY = 5

Span = tuple[date, date]
#: Gives what recurs once in each year, by the year.
Recurring = Callable[[int], Span]


def unit_at(unit: str, day: date) -> Span:
    """Return the day, week, weekend, month, quarter or year that a day lies in; of weekends, the one of its week."""
    monday = day - day.weekday() * _DAY
    match unit:
        case "day":
            return day, day + _DAY
        case "week":
            return monday, monday + _WEEK
        case "weekend":
            return monday + _SATURDAY * _DAY, monday + _WEEK
        case "month":
            return _months(day.year, day.month, 1)
        case "quarter":
            return _months(day.year, day.month - (day.month - 1) % _SEASON_MONTHS, _SEASON_MONTHS)
        case _:
            return _months(day.year, 1, _MONTHS)


def moved(unit: str, day: date, count: int) -> date:
    """Return the day so many units later, or earlier; the last one of its month where that is shorter."""
    if unit in {"day", "week", "weekend"}:
        return day + count * (_DAY if unit == "day" else _WEEK)
    months = count * {"month": 1, "quarter": _SEASON_MONTHS}.get(unit, _MONTHS)
    first, end = _months(day.year, day.month + months, 1)
    return min(first + (day.day - 1) * _DAY, end - _DAY)


def unit_beside(unit: str, today: date, count: int) -> Span:
    """Return the unit so many before or after the present one."""
    return unit_at(unit, moved(unit, today, count))


def back(unit: str, today: date, count: int) -> Span:
    """Return the last so many units up to today."""
    return moved(unit, today, -count), today + _DAY


def month(number: int, year: int) -> Span:
    return _months(year, number, 1)


def season(number: int, year: int) -> Span:
    """Return spring, summer, autumn or winter, of the northern half of the earth; a winter is of the year it begins in."""
    return _months(year, _SEASON_MONTHS * (number + 1), _SEASON_MONTHS)


def holiday(name: str, year: int, *, is_orthodox: bool) -> Span:
    """Return a holiday with the days that belong to it."""
    sunday = easter(year, EASTER_ORTHODOX if is_orthodox else EASTER_WESTERN)
    match name:
        case "easter":
            return sunday - 2 * _DAY, sunday + 2 * _DAY
        case "pentecost":
            return sunday + 7 * _WEEK, sunday + 7 * _WEEK + 2 * _DAY
        case "christmas":
            return date(year, 12, 24), date(year, 12, 27)
        case _:
            return date(year - 1, 12, 31), date(year, 1, 2)


def anchor(name: str, span: Span) -> date:
    """Return the day that a holiday is named for."""
    return span[0] if name == "pentecost" else span[0] + (2 if name == "easter" else 1) * _DAY


def _around(of: Recurring, today: date) -> Iterator[Span]:
    return (of(today.year + years) for years in range(-2, 3))


def last_of(of: Recurring, today: date) -> Span:
    """Return the last one that is over."""
    return max(span for span in _around(of, today) if span[1] <= today)


def next_of(of: Recurring, today: date) -> Span:
    """Return the first one that has not begun."""
    return min(span for span in _around(of, today) if span[0] > today)


def this_of(of: Recurring, today: date) -> Span:
    """Return the one that is now, else the one of this year."""
    return next((span for span in _around(of, today) if span[0] <= today < span[1]), of(today.year))


def nearest_of(of: Recurring, today: date) -> list[Span]:
    """Return the last one that has begun, and one that is soon as well."""
    begun = max(span for span in _around(of, today) if span[0] <= today)
    soon = next_of(of, today)
    return [begun, soon] if (soon[0] - today).days <= _SOON_DAYS else [begun]


def weekday(number: int, today: date, count: int) -> Span:
    """Return the last such day (-1), that of this week (0), or the next one (1)."""
    monday = today - today.weekday() * _DAY
    day = monday + number * _DAY
    if count < 0 and day >= today:
        day -= _WEEK
    if count > 0 and day <= today:
        day += _WEEK
    return day, day + _DAY


def beside(unit: str, anchor_day: date, end: date, where: str) -> Span:
    """Return the unit before a day, after the end of what it begins, or around it."""
    if where == "of":
        return unit_at(unit, anchor_day)
    if unit == "weekend":
        first = anchor_day if where == "before" else moved("day", end, _SATURDAY)
        return unit_at(unit, moved("week", first, -1) if where == "before" else first)
    return (moved(unit, anchor_day, -1), anchor_day) if where == "before" else (end, moved(unit, end, 1))


def days(spans: list[Span], bound: str | None) -> tuple[Days, ...]:
    """Write spans as days; of one with a bound, all before or after it."""
    match bound:
        case "since":
            return (Days(spans[0][0], None),)
        case "after":
            return (Days(spans[0][1], None),)
        case "before":
            return (Days(None, spans[0][0]),)
        case "until":
            return (Days(None, spans[0][1]),)
        case _:
            return tuple(Days(since, until) for since, until in sorted(spans))


def _months(year: int, first: int, count: int) -> Span:
    """Return some months in a row; the number of the first may lie in another year."""
    start, end = (year * _MONTHS + first - 1 + more for more in (0, count))
    return date(start // _MONTHS, start % _MONTHS + 1, 1), date(end // _MONTHS, end % _MONTHS + 1, 1)
