"""Which days a phrase means, by its kind and the words of its language. Pure."""

from __future__ import annotations

import re
from datetime import date
from functools import partial

from headgate.model.asked import Days
from headgate.questions import periods
from headgate.questions.periods import Recurring, Span
from headgate.questions.tables import Language, Thing

_YEAR = re.compile(r"(?<!\S)\d{4}(?!\S)")
_COUNT = re.compile(r"(?<!\S)\d{1,3}(?!\S)")
#: A number that is further ahead is no year.
_YEARS_AHEAD = 2
_FIRST_YEAR = 1900
_BESIDE = {"last": -1, "this": 0, "next": 1}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_WINTER = 3


def days_of(kind: str, text: str, language: Language, today: date, bound: str | None) -> tuple[Days, ...]:
    """Return the days that a phrase means; none where it names no days after all."""
    years = [int(year) for year in _YEAR.findall(text)]
    if bound == "unclear" or any(year > today.year + _YEARS_AHEAD for year in years):
        return ()
    reading = _Reading(text, language, today, years[0] if years else None)
    try:
        days = periods.days(reading.spans(kind), bound)
    except (OverflowError, ValueError):
        # Before the first year there is.
        return ()
    return days if all(each.since is None or each.since.year >= _FIRST_YEAR for each in days) else ()


class _Reading:
    """One phrase, with what it names."""

    def __init__(self, text: str, language: Language, today: date, year: int | None) -> None:
        self._text = text
        self._language = language
        self._today = today
        self._year = year

    def spans(self, kind: str) -> list[Span]:
        """Return the days that are meant; several where it may be either."""
        today, unit = self._today, str(self._thing("unit"))
        where, _, of_holiday = kind.partition("_")
        if of_holiday:
            return self._beside_holiday(unit, where)
        match kind:
            case "past":
                return [periods.back(unit, today, self._count())]
            case "ago":
                return [periods.unit_beside(unit, today, -self._count())]
            case "last" | "this" | "next":
                return [self._beside(_BESIDE[kind])]
            case "yesterday" | "today" | "tomorrow":
                return [periods.unit_beside("day", today, _DAYS[kind])]
            case _:
                return self._named(self._recurring())

    def _beside(self, count: int) -> Span:
        """Return the last one, the present one or the next one of what is named."""
        weekday = self._thing("weekday")
        if isinstance(weekday, int):
            return periods.weekday(weekday, self._today, count)
        recurring = self._recurring()
        if recurring is None:
            return periods.unit_beside(str(self._thing("unit")), self._today, count)
        choose = {-1: periods.last_of, 0: periods.this_of, 1: periods.next_of}[count]
        return choose(recurring, self._today)

    def _beside_holiday(self, unit: str, where: str) -> list[Span]:
        name = str(self._thing("holiday"))
        return [
            periods.beside(unit, periods.anchor(name, span), span[1], where)
            for span in self._named(self._recurring())
        ]

    def _named(self, recurring: Recurring | None) -> list[Span]:
        """Return what recurs of the year that is named, or the last one; without what recurs, the year."""
        if recurring is None:
            return [periods.unit_at("year", date(self._year or self._today.year, 1, 1))]
        if self._year is None:
            return periods.nearest_of(recurring, self._today)
        # A winter is in two years.
        is_winter = self._thing("season") == _WINTER
        years = (self._year - 1, self._year) if is_winter else (self._year,)
        return [recurring(year) for year in years]

    def _recurring(self) -> Recurring | None:
        holiday, month, season = (self._thing(name) for name in ("holiday", "month", "season"))
        if isinstance(holiday, str):
            return partial(periods.holiday, holiday, is_orthodox=self._language.is_orthodox)
        if isinstance(month, int):
            return partial(periods.month, month)
        return partial(periods.season, season) if isinstance(season, int) else None

    def _thing(self, name: str) -> Thing | None:
        return self._language.thing_in(name, self._text)

    def _count(self) -> int:
        digits = _COUNT.search(self._text)
        return int(digits.group()) if digits else int(self._thing("n") or 1)
