"""Find where visible text holds what a query needs: words and their forms, beginnings, phrases, typing errors."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from headgate.model.rows import UnderstoodWord
from headgate.store.format.languages import has_forms, scan_start, stems_of
from headgate.store.format.word_filter import is_one_error_away, near_words
from headgate.store.search.query import Need, WordChoice, name_of
from headgate.store.search.ranking import (
    CORRECTED_FACTOR,
    FORM_FACTOR,
    PREFIX_FACTOR,
    Occurrences,
    in_a_row,
    nowhere,
    together,
)
from headgate.store.search.visible_text import VisibleText, WordPlace
from headgate.store.sql.database import Database

#: How many forms of a word an answer names.
_FORMS_SHOWN = 8
#: Words that are shorter are often one error away from another.
_CORRECTED_FROM_CHARS = 5
#: How many occurrences of words one search reads; they take about a gigabyte and a few seconds.
READ_MOST = 16_000_000


class FoundNeed(NamedTuple):
    """Where a need was found, and which words of the text were taken for it."""

    occurrences: Occurrences
    #: How often each word stands in visible text.
    words: Mapping[bytes, int]
    corrected: tuple[bytes, ...] = ()
    #: Of ``a OR b``: where each alternative was found, by its name.
    alternatives: Mapping[str, Occurrences] = {}

    def understood(self, need: Need) -> UnderstoodWord:
        """Return what was taken for the need."""
        typed = {choice.words[-1] for choice in need.choices}
        others = sorted(self.words.keys() - typed, key=lambda word: (-self.words[word], word))
        forms = tuple(word.decode() for word in others[:_FORMS_SHOWN] if word[:1] not in {b"@", b"#"})
        if self.corrected:
            return UnderstoodWord(need.name, corrected=forms)
        return UnderstoodWord(need.name, forms)


class Matcher:
    """Finds needs in the visible text of one search."""

    def __init__(self, database: Database, text: VisibleText) -> None:
        self._database = database
        self._text = text
        self._left = READ_MOST
        #: Whether the words stand in more places than one search reads.
        self.is_cut = False

    def find(self, need: Need, corrected: Sequence[bytes] = ()) -> FoundNeed:
        """Find a need; ``corrected`` are the words that an earlier page took for it."""
        if corrected:
            return self._found(self._any_of(corrected), CORRECTED_FACTOR, corrected=tuple(corrected))
        parts = [self._find_choice(choice) for choice in need.choices]
        if len(parts) == 1:
            return parts[0]
        occurrences = together([part.occurrences for part in parts])
        words = dict(chain.from_iterable(part.words.items() for part in parts))
        named = zip(need.choices, parts, strict=True)
        alternatives = {
            name: part.occurrences
            for choice, part in named
            if choice.term is not None and (name := name_of(choice.term)) in need.alternatives
        }
        return FoundNeed(occurrences, words, alternatives=alternatives)

    def find_with_error(self, need: Need) -> FoundNeed:
        """Find words that differ from a need's by one typing error; its own words are nowhere."""
        word = need.single
        if word is None or len(word.decode()) < _CORRECTED_FROM_CHARS or not word.decode().isalpha():
            return FoundNeed(nowhere(), {})
        typed = word.decode()
        places = self._text.beginning(
            self._database, word[: _near_start(word)], lambda other: is_one_error_away(typed, other.decode())
        )
        met = {at.word for at in places}
        near = (near.encode() for near in near_words(typed))
        places += self._any_of([other for other in near if other not in met])
        corrected = self._found(places, CORRECTED_FACTOR)
        return FoundNeed(corrected.occurrences, corrected.words, tuple(sorted(corrected.words)))

    def _exact(self, word: bytes) -> list[WordPlace]:
        return self._text.word(self._database, word)

    def _any_of(self, words: Collection[bytes]) -> list[WordPlace]:
        return self._text.any_of(self._database, words)

    def _find_choice(self, choice: WordChoice) -> FoundNeed:
        *first, word = choice.words
        if first:
            return self._find_phrase(choice)
        if choice.is_prefix:
            return self._found(self._beginning(word), PREFIX_FACTOR, word)
        if choice.has_forms:
            return self._found(self._forms(word.decode()), FORM_FACTOR, word)
        return self._found(self._exact(word), 1.0)

    def _beginning(self, start: bytes) -> list[WordPlace]:
        return self._text.beginning(self._database, start)

    def _forms(self, word: str) -> list[WordPlace]:
        languages = self._text.languages
        stems = stems_of(word, languages)
        start = scan_start(word, languages).encode()

        def is_form(other: bytes) -> bool:
            text = other.decode()
            return text == word or (has_forms(text) and not stems.isdisjoint(stems_of(text, languages)))

        return self._text.beginning(self._database, start, is_form)

    def _found(
        self,
        places: Sequence[WordPlace],
        factor: float,
        typed: bytes | None = None,
        corrected: tuple[bytes, ...] = (),
    ) -> FoundNeed:
        """Read the occurrences of words; the one that was typed counts fully, the others less."""
        factors = {at.word: factor for at in places}
        if typed is not None:
            factors[typed] = 1.0
        # Half of what is left: a word that stands everywhere leaves enough for those that come after it.
        read = self._text.occurrences(self._database, places, factors, self._left // 2)
        self._left -= read.read
        self.is_cut |= read.is_cut
        return FoundNeed(read.occurrences, read.counts, corrected)

    def _find_phrase(self, choice: WordChoice) -> FoundNeed:
        last = choice.words[-1]
        lasts = self._beginning(last) if choice.is_prefix else self._exact(last)
        words = [self._found(self._exact(word), 1.0).occurrences for word in choice.words[:-1]]
        words.append(self._found(lasts, 1.0).occurrences)
        return FoundNeed(in_a_row(words), {})


def _near_start(word: bytes) -> int:
    """Return how many bytes the first two letters of a word take: an error after them leaves these as they are."""
    return len(word.decode()[:2].encode())
