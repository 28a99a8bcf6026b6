"""The tables of languages.toml, made ready: for each language its lists of words, and a pattern for each kind of phrase.

A question that holds no word of a language's lists costs nothing: its patterns are made, and looked for, only then.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from headgate.words import fold, words_of

#: What stands right before a period, and which part of time is meant then.
_BOUNDS = ("since", "after", "before", "until", "unclear")
#: Phrases that are listed whole: days, and what names no period.
_DAYS = ("today", "yesterday", "tomorrow")
ASKS = ("person", "time", "amount")
OTHERS = (*ASKS, "latest", "sender")
_YEAR = "(?:19|20)[0-9][0-9]"
_IS_YEAR = re.compile(_YEAR)
_SENDER = "(?:(?:{mail})|(?P<kept>{paper})) (?:{by}) [^ ]+"

Thing = int | str


@dataclass(frozen=True, slots=True)
class Language:
    """How one language names periods and senders."""

    is_orthodox: bool
    #: By list, each thing with its number or name, and the words for it.
    _lists: Mapping[str, Sequence[tuple[Thing, str]]]
    #: By kind of phrase.
    _phrases: Mapping[str, str]
    _bound: str
    _no_names: str
    #: Every phrase holds one of these words, or a year and one of the others.
    _words: frozenset[str]
    _year_words: frozenset[str]

    def may_hold(self, words: Collection[str]) -> bool:
        """Return whether some words may hold a phrase."""
        if not self._words.isdisjoint(words):
            return True
        return not self._year_words.isdisjoint(words) and any(map(_IS_YEAR.fullmatch, words))

    def phrases_in(self, text: str) -> Iterable[tuple[str, re.Match[str]]]:
        """Yield what looks like a phrase, with its kind."""
        for kind, phrase in self._phrases.items():
            for match in _between_spaces(phrase).finditer(text):
                yield kind, match

    def bound_before(self, text: str) -> re.Match[str] | None:
        """Return what bounds a period that follows a text."""
        return _compiled(f"(?:^| )(?:{self._bound}) $").search(text)

    def thing_in(self, name: str, text: str) -> Thing | None:
        """Return the thing of a list that a text names; None for none."""
        listed = self._lists[name]
        return next((thing for thing, words in listed if _between_spaces(words).search(text)), None)

    def names_none(self, word: str) -> bool:
        """Return whether a word stands where a sender could, and names none."""
        return _compiled(self._no_names).fullmatch(word) is not None


@cache
def languages() -> tuple[Language, ...]:
    """Read the tables."""
    text = (resources.files("headgate.questions") / "languages.toml").read_text(encoding="utf-8")
    return tuple(map(_language, tomllib.loads(text).values()))


def _language(table: Mapping[str, Any]) -> Language:
    lists: dict[str, list[tuple[Thing, str]]] = {
        "month": _numbered(table["months"], 1),
        "season": _numbered(table["seasons"], 0),
        "weekday": _numbered(table["weekdays"], 0),
        "holiday": list(table["holidays"].items()),
        "unit": list(table["units"].items()),
        "n": _numbered(table["numbers"], 1),
    }
    folded = {name: [(thing, fold(words)) for thing, words in listed] for name, listed in lists.items()}
    slots = {name: "|".join(words for _, words in listed) for name, listed in folded.items()}
    units = "|".join(words for unit, words in folded["unit"] if unit != "day")
    slots["span"] = "|".join((units, *(slots[name] for name in ("season", "month", "weekday"))))
    slots |= {"n": slots["n"] + "|[0-9]{1,3}", "year": _YEAR}
    whole = {kind: fold(table[kind]) for kind in (*_DAYS, *ASKS, "latest") if kind in table}
    bounds = {name: fold(table[name]) for name in _BOUNDS if name in table}
    dated = {kind: _filled(fold(phrase), slots) for kind, phrase in table["phrases"].items()}
    # Beside a bound, a name is enough.
    bare = _filled("{month}( {year})?|{holiday}( {year})?|{year}", slots)
    by = {name: fold(table[name]) for name in ("mail", "paper", "by")}
    return Language(
        bool(table.get("orthodox")),
        folded,
        whole | dated | {"bare": bare, "sender": _SENDER.format_map(by)},
        "|".join(f"(?P<{name}>{words})" for name, words in bounds.items()),
        "|".join((fold(table["no_names"]), *(slots[name] for name in ("span", "unit", "n")))),
        frozenset(
            map(
                _longest,
                "|".join((*whole.values(), units, by["mail"], by["paper"], *_named(slots))).split("|"),
            )
        )
        | frozenset(map(_longest, folded["unit"][0][1].split("|"))),
        frozenset(words_of(" ".join((fold(table["phrases"]["year"]), *bounds.values())))),
    )


def _numbered(words: Sequence[str], first: int) -> list[tuple[Thing, str]]:
    return list(enumerate(words, first))


def _named(slots: Mapping[str, str]) -> Iterable[str]:
    return (slots[name] for name in ("month", "season", "weekday", "holiday"))


def _longest(words: str) -> str:
    return max(words.split(), key=len)


def _filled(phrase: str, slots: Mapping[str, str]) -> str:
    """Put the words of the lists into a phrase."""
    return re.sub(r"\{(\w+)\}", lambda slot: f"(?:{slots[slot[1]]})", re.sub(r"\((?!\?)", "(?:", phrase))


def _between_spaces(text: str) -> re.Pattern[str]:
    """Compile what stands between spaces, or at an end."""
    return _compiled(rf"(?<!\S)(?:{text})(?!\S)")


@cache
def _compiled(text: str) -> re.Pattern[str]:
    return re.compile(text)
