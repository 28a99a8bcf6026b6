"""Read the episodes of the story, and say when each happens and with which values.

An episode is a short sequence of records that belong together: an order, its payment, its delivery. It happens once
on a day, or often; each time the words in braces get values, the same ones in all its steps.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from importlib import resources
from typing import Any

YEAR = 2025
_SEED = 8321
_FIRST = date(YEAR, 1, 1)
_DAYS_OF_YEAR = 365
_SATURDAY = 5
_ANSWERED_AFTER = timedelta(minutes=7)
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FILES = ("roof", "sheet", "home", "work", "talk")


@dataclass(frozen=True, slots=True)
class Episode:
    name: str
    #: The days on which it happens.
    days: Sequence[date]
    #: Words that it chooses from, by name; a choice may be a table of words that belong together.
    pick: Mapping[str, Sequence[Any]]
    #: Amounts of money, by name: the least and the most.
    amount: Mapping[str, tuple[float, float]]
    steps: Sequence[Mapping[str, Any]]
    #: Whether it happens on working days only.
    is_work: bool = False


@dataclass(frozen=True, slots=True)
class Happening:
    """A step of an episode at a moment; `fill` puts the values into its texts."""

    step: Mapping[str, Any]
    at: datetime
    #: Names what the steps of one time have in common.
    key: str
    values: Mapping[str, Any]
    chance: random.Random = field(repr=False)

    def text(self, name: str, default: str = "") -> str:
        return self.fill(self.step.get(name, default))

    def texts(self, name: str) -> list[str]:
        return [self.fill(text) for text in self.step.get(name, ())]

    def fill(self, text: str | Sequence[str]) -> str:
        """Put the values into a text, or into one of several."""
        chosen = text if isinstance(text, str) else self.chance.choice(text)
        return chosen.format(**self.values, at=self.at).strip() if "{" in chosen else chosen.strip()


def people() -> dict[str, str]:
    """Return names and addresses by the short names that the story uses."""
    return _document("people")["people"]


def happenings() -> Iterator[Happening]:
    for name in _FILES:
        for written in _document(name)["episode"]:
            episode = Episode(
                written["name"],
                list(_days(written)),
                written.get("pick", {}),
                written.get("amount", {}),
                written["step"],
                is_work=written.get("weekdays", False),
            )
            yield from _happenings(episode)


def _document(name: str) -> dict[str, Any]:
    return tomllib.loads(
        (resources.files("headgate.sources.demo") / "story" / f"{name}.toml").read_text(encoding="utf-8")
    )


def _days(written: Mapping[str, Any]) -> Iterator[date]:
    if "on" in written:
        yield date.fromisoformat(written["on"])
    elif "times" in written:
        yield from _spread(written["name"], written["times"])
    else:
        every = (_FIRST + timedelta(number) for number in range(_DAYS_OF_YEAR))
        yield from (day for day in every if _is_on(day, written["every"]))


def _spread(name: str, times: int) -> Iterator[date]:
    """Spread an episode over the year, irregularly."""
    chance = _chance(name)
    for number in range(times):
        yield _FIRST + timedelta((number + chance.random()) * _DAYS_OF_YEAR / times)


def _is_on(day: date, rule: str) -> bool:
    kind, _, which = rule.partition(":")
    match kind:
        case "month":
            return day.day == int(which)
        case "week":
            return day.weekday() == _WEEKDAYS.index(which)
        case "weekday":
            return day.weekday() < _SATURDAY
        case _:
            return True


def _happenings(episode: Episode) -> Iterator[Happening]:
    for number, first in enumerate(episode.days):
        chance = _chance(f"{episode.name}/{number}")
        days = _Days(first, is_work=episode.is_work)
        values = _values(episode, number, days, chance)
        last = datetime.combine(_FIRST, time())
        for step in episode.steps:
            at = datetime.combine(days[step.get("after", 0)], _time(step, values, chance))
            # An answer is never older than what it answers.
            last = at if "time" in step else max(at, last + _ANSWERED_AFTER)
            if last.year == YEAR:
                yield Happening(step, last, f"{episode.name}-{number}", values, chance)


def _time(step: Mapping[str, Any], values: Mapping[str, Any], chance: random.Random) -> time:
    if "time" in step:
        return time.fromisoformat(step["time"].format(**values))
    return time(chance.randrange(9, 18), chance.randrange(60), chance.randrange(60))


def _values(episode: Episode, number: int, days: _Days, chance: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {"n": number + 1, "no": chance.randrange(10_000, 99_999), "days": days}
    for name, (least, most) in episode.amount.items():
        values[name] = f"{chance.uniform(least, most):.2f}"
    for name, choices in episode.pick.items():
        chosen = chance.choice(choices)
        values |= {name: chosen} if isinstance(chosen, str) else _table(name, chosen, days, chance)
    return values


def _table(
    name: str, chosen: Mapping[str, str | list[str]], days: _Days, chance: random.Random
) -> dict[str, Any]:
    """Fill the texts of a table; of a list in it, such as `items`, one becomes a value: `item`."""
    texts = {key: text.format(days=days) for key, text in chosen.items() if isinstance(text, str)}
    lists = {key: several for key, several in chosen.items() if isinstance(several, list)}
    return {name: texts} | {key.removesuffix("s"): chance.choice(several) for key, several in lists.items()}


class _Days:
    """The days after an episode began: `{days[3]:%A}` is the weekday of the third; of work, Monday follows Friday."""

    def __init__(self, first: date, *, is_work: bool) -> None:
        self._first = first
        self._is_work = is_work

    def __getitem__(self, number: int) -> date:
        day = self._first + timedelta(number)
        return day + timedelta(7 - day.weekday()) if self._is_work and day.weekday() >= _SATURDAY else day


def _chance(name: str) -> random.Random:
    # Seeded by name, so that a new episode changes no other one.
    return random.Random(f"{_SEED}/{name}")  # noqa: S311 - invented data, not secrets
