"""Recognise what a question says beside its words: days, a sender, the newest first, and what is asked for. Pure.

Only whole words as they were typed take part: what is in quotes, excluded, a beginning or beside OR is left alone. Of
two phrases that share a word the longer one counts, and two periods in one question are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from headgate.model.asked import Asked, Days, Phrase
from headgate.model.plan import PIECE
from headgate.questions.dating import days_of
from headgate.questions.tables import ASKS, OTHERS, Language, languages
from headgate.words import words_of

#: Stands for what is left alone; no word is like it.
_LEFT_ALONE = "\x01"
#: A number beside a phrase makes it part of a date.
_NUMBER = re.compile(r"\d{1,2}(?:st|nd|rd|th)?")


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of a query, and the piece that each is of."""

    pieces: Sequence[str]
    words: Sequence[str]
    #: For each word the number of its piece.
    of_piece: Sequence[int]

    def starts_piece(self, place: int) -> bool:
        """Return whether a word is the first of its piece; so is the end."""
        return place in {0, len(self.words)} or self.of_piece[place] != self.of_piece[place - 1]


@dataclass(frozen=True, slots=True)
class _Match:
    """A phrase in the words of a query, from one word to another."""

    kind: str
    start: int
    end: int
    text: str
    language: Language
    #: What stands before a period: since, after, before or until it.
    bound: str | None = None
    #: The word at its beginning stays a word of the query.
    keeps_first: bool = False

    def shares(self, other: _Match) -> bool:
        return self.start < other.end and other.start < self.end


def recognise(q: str, today: date, *, with_senders: bool = True) -> Asked | None:
    """Return what a question says beside its words; None if that is nothing, or no words would be left."""
    query = _words_in(q)
    named: list[tuple[_Match, Phrase]] = []
    for match in _clear(_without_overlaps(_matches(query))):
        phrase = _phrase(query, match, today)
        if phrase is not None and (with_senders or phrase.sender is None):
            named.append((match, phrase))
    gone = {number for match, _ in named for number in _taken(query, match)}
    left = [piece for number, piece in enumerate(query.pieces) if number not in gone]
    has_words = any(words_of(piece) and not piece.startswith("-") for piece in left)
    return Asked(" ".join(left), tuple(phrase for _, phrase in named)) if named and has_words else None


def _words_in(q: str) -> _Words:
    matches = list(PIECE.finditer(q))
    pieces = [match.group() for match in matches]
    is_or = [piece == "OR" for piece in pieces]
    words: list[str] = []
    of_piece: list[int] = []
    for number, match in enumerate(matches):
        piece = pieces[number]
        is_beside_or = any(is_or[max(0, number - 1) : number + 2])
        is_plain = match[3] is not None and not piece.startswith("-") and not piece.endswith("*")
        folded = words_of(piece) if is_plain and not is_beside_or else [_LEFT_ALONE]
        words += folded
        of_piece += [number] * len(folded)
    return _Words(pieces, words, of_piece)


def _matches(query: _Words) -> Iterator[_Match]:
    """Yield every phrase of every language that begins and ends with a piece of the query."""
    text = " ".join(query.words)
    starts = [0]
    for word in query.words:
        starts.append(starts[-1] + len(word) + 1)
    place_of = {start: place for place, start in enumerate(starts)}
    for language in languages():
        for kind, match in language.phrases_in(text) if language.may_hold(query.words) else ():
            bound = None if kind in OTHERS else language.bound_before(text[: match.start()])
            name = bound.lastgroup if bound is not None else None
            start = place_of[match.start() if bound is None else bound.start(name or 0)]
            end = place_of[match.end() + 1]
            while kind == "sender" and not query.starts_piece(end):
                # An address is one piece of several words.
                end += 1
            if query.starts_piece(start) and query.starts_piece(end) and (name or kind != "bare"):
                keeps_first = match.lastgroup == "kept"
                yield _Match(kind, start, end, match.group(), language, name, keeps_first)


def _without_overlaps(matches: Iterator[_Match]) -> list[_Match]:
    """Choose the longest phrases, in order; of equal ones, periods and those of the first languages."""
    chosen: list[_Match] = []
    for match in sorted(matches, key=lambda match: (match.kind in OTHERS, match.start - match.end)):
        if not any(match.shares(other) for other in chosen):
            chosen.append(match)
    return sorted(chosen, key=lambda match: match.start)


def _clear(matches: Sequence[_Match]) -> Iterator[_Match]:
    """Leave out kinds that are there twice: two periods are compared, and neither narrows the search."""
    kinds = ["period" if match.kind not in OTHERS else match.kind for match in matches]
    return (match for match, kind in zip(matches, kinds, strict=True) if kinds.count(kind) == 1)


def _typed(query: _Words, match: _Match) -> str:
    """Return a phrase as it was typed."""
    first, last = query.of_piece[match.start], query.of_piece[match.end - 1]
    return " ".join(query.pieces[first : last + 1])


def _taken(query: _Words, match: _Match) -> range:
    """Return the pieces that are no longer looked for; the name of a sender is."""
    first, last = query.of_piece[match.start], query.of_piece[match.end - 1]
    return range(first + match.keeps_first, last if match.kind == "sender" else last + 1)


def _phrase(query: _Words, match: _Match, today: date) -> Phrase | None:
    """Return what a phrase says; None where it says nothing after all."""
    text = _typed(query, match)
    match match.kind:
        case "latest":
            return Phrase(text, is_latest=True)
        case "sender":
            name = query.words[query.of_piece.index(query.of_piece[match.end - 1])]
            is_none = name == _LEFT_ALONE or match.language.names_none(name)
            return None if is_none else Phrase(text, sender=query.pieces[query.of_piece[match.end - 1]])
        case kind if kind in ASKS:
            return Phrase(text, asks=kind) if match.start == 0 else None
        case kind:
            days = () if _is_in_date(query, match) else _days(match, today)
            return Phrase(text, days=days) if days else None


def _days(match: _Match, today: date) -> tuple[Days, ...]:
    return days_of(match.kind, match.text, match.language, today, match.bound)


def _is_in_date(query: _Words, match: _Match) -> bool:
    """Return whether a number stands beside a phrase."""
    beside = (*query.words[max(0, match.start - 1) : match.start], *query.words[match.end : match.end + 1])
    return any(_NUMBER.fullmatch(word) for word in beside)
