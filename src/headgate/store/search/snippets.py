"""Snippets: the words around a match, with every match in ``<mark>`` tags that always close.

Folds case and accents the way the index does, one character to one, so that places in the folded text are
places in the text itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from headgate.model.ids import FieldName
from headgate.model.plan import SNIPPET_CHARS, Term
from headgate.model.rows import Snippet
from headgate.store.format.analyser import normal_forms
from headgate.words import RUN, SIGNS, UNSEEN

AROUND_CHARS = 32
#: A passage that was found by its meaning has no match to cut around, so more of it is shown.
PASSAGE_CHARS = 160
_WORD = r"[^\W_]"
_MARKS = f"[\u0300-\u036f{UNSEEN}]*"
_SIGN = f"[{SIGNS}]"
_SIGNED = re.compile(_SIGN)
_BETWEEN = r"[\W_]+"
_NOT_PLAIN = re.compile(r"[^\x00-\x7f]+")
#: What a word counts for; whole numbers, because sums of parts would depend on their order.
_WEIGHT = 1 << 20
_NO_COUNTS: Mapping[str, int] = {}
ELLIPSIS = "…"


class Highlighter:
    """Finds the places where a query's terms stand."""

    __slots__ = ("_beginnings", "_counts", "_forms", "_pattern")

    def __init__(
        self, terms: Sequence[Term], forms: Collection[str] = (), counts: Mapping[str, int] = _NO_COUNTS
    ) -> None:
        self._pattern = re.compile("|".join(_term_pattern(term) for term in terms))
        self._beginnings = [_beginning(term) for term in terms]
        #: Dates and numbers in normal form.
        self._forms = forms
        #: How often visible texts hold each word; a word that is not in it is rare.
        self._counts = counts

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield every match as a pair of places in the text."""
        if self._forms:
            forms = [(start, end) for start, end, form in normal_forms(text) if form in self._forms]
            return iter(sorted([*forms, *self._term_spans(text)]))
        return self._term_spans(text)

    def _term_spans(self, text: str) -> Iterator[tuple[int, int]]:
        folded = fold(text)
        # Most pieces of a long text hold nothing: looking for letters is far quicker than for a pattern.
        if text.isascii() and not any(beginning in folded for beginning in self._beginnings):
            return iter(())
        return (match.span() for match in self._pattern.finditer(folded))

    def snippet(
        self, field: FieldName, text: str, chars: int = SNIPPET_CHARS, *, whole: bool = True, at: int = 0
    ) -> Snippet | None:
        """Cut out the words where most matches stand, or say that there is none.

        ``at`` is where this text starts in its field, and ``whole`` whether it is all of it.
        """
        spans = [*self.spans(text)]
        if not spans:
            return None
        first = _densest(text, spans, chars, self._counts)
        # Of a longer piece more stands before the match, and a text that fits is shown whole.
        earliest = min(first[0] - max(AROUND_CHARS, chars // 4), len(text) - chars)
        start = _word_start(text, max(0, earliest), first[0])
        end = _word_end(text, min(len(text), max(start + chars, first[1])), first[1])
        complete = whole and start == 0 and end == len(text)
        before = ELLIPSIS if start or at else ""
        after = "" if whole and end == len(text) else ELLIPSIS
        marked = _marked(text, spans, start, end)
        shown = Snippet(field, before + marked + after, complete, at + first[0], at + start)
        return replace(shown, size_chars=len(text)) if whole else shown


def _densest(
    text: str, spans: Sequence[tuple[int, int]], chars: int, counts: Mapping[str, int]
) -> tuple[int, int]:
    """Return the match from which on the most of the query stands close together; of equal ones the first.

    Each word counts once, and the less the more often visible texts hold it: the one place of a rare word is worth
    more than many places of a word that is everywhere.
    """
    words = [fold(text[start:end]) for start, end in spans]
    weights = [_WEIGHT // (1 + counts.get(word, 1).bit_length()) for word in words]
    inside: Counter[str] = Counter()
    best, most, held, last = spans[0], 0, 0, 0
    for first, span in enumerate(spans):
        while last < len(spans) and (last <= first or spans[last][1] <= span[0] + chars):
            held += 0 if inside[words[last]] else weights[last]
            inside[words[last]] += 1
            last += 1
        if held > most:
            best, most = span, held
        inside[words[first]] -= 1
        held -= 0 if inside[words[first]] else weights[first]
    return best


def passage_snippet(field: FieldName, text: str, *, start: int, end: int) -> Snippet:
    """Show the beginning of a passage, which lies in its field from ``start`` to ``end``; ``text`` begins with it."""
    beginning = text[: min(end - start, PASSAGE_CHARS)]
    complete = start == 0 and len(beginning) == len(text)
    written = (
        ("" if start == 0 else ELLIPSIS)
        + _plain(beginning)
        + ("" if len(beginning) == len(text) else ELLIPSIS)
    )
    return Snippet(field, written, complete, start, start)


def fold(text: str) -> str:
    """Fold case and accents, one character to one."""
    if text.isascii():
        return text.lower()
    # bytes.lower() is quick and changes ASCII alone: "CAFÉ" -> "cafÉ". The rest is folded run by run: -> "cafe".
    plain = text.encode("utf-8", "surrogatepass").lower().decode("utf-8", "surrogatepass")
    return _NOT_PLAIN.sub(_folded_run, plain)


def _folded_run(run: re.Match[str]) -> str:
    return run.group().translate(_FOLDED)


class _Folded(dict[int, int]):
    """The folded character of each one, computed when first needed: "É" -> "e"; "ﬁ", which would be two, stays."""

    def __missing__(self, code: int) -> int:
        base = unicodedata.normalize("NFD", chr(code))[0].lower()
        self[code] = ord(base) if len(base) == 1 else code
        return self[code]


_FOLDED = _Folded()


def _beginning(term: Term) -> str:
    """Return letters that every match of a term in ASCII text has: "to be" -> "to"."""
    letters = re.search(rf"{_WORD}+", _query_fold(" ".join(term.words)))
    return "" if letters is None else letters.group()


def _term_pattern(term: Term) -> str:
    """Write a term as a pattern for folded text.

    In the examples ``B`` stands for what may be between two words, ``M`` for accents that follow a letter, ``W``
    for a letter or digit. There is one branch for words with vowel signs, one for scripts without spaces, and two
    for all others, by whether the last word may go on.
    """
    if any(map(_SIGNED.search, term.words)):
        return _signed_pattern(term)
    # "naïve.Cats" -> ["naive", "cats"]; separate accent characters stay inside a word.
    words = [
        word
        for text in term.words
        for word in re.findall(rf"{_WORD}+(?:{_MARKS}{_WORD}+)*", _query_fold(text))
    ]
    # ["to", "be"] -> tMoBbMe
    body = _BETWEEN.join(_word_pattern(word) for word in words)
    if RUN.search("".join(words)):
        # "東京" -> 東M京, anywhere in a run: these scripts show no ends of words.
        return body or r"(?!)"
    # "cat*" -> cMaMtW*, which finds "cats"; "cat" -> cMaMtM(?!W), which does not.
    tail = rf"{_WORD}*" if term.is_prefix else rf"{_MARKS}(?!{_WORD})"
    if term.is_prefix and body.endswith("s"):
        # "gros*" -> the beginning of "groß" as well, which the index holds as "gross".
        body = f"{body[:-1]}[sß]"
    if words and (words[0].startswith("ss") or body.startswith("[")):
        return rf"(?<!{_WORD}){body}{tail}"
    # "cat" -> c(?<!Wc)..., which does not find "concat". The letter stands before the look behind it, because a
    # pattern that begins with a letter is found far sooner. A term without words ("!") matches nothing.
    return rf"{words[0][0]}(?<!{_WORD}{words[0][0]}){body[1:]}{tail}" if body else r"(?!)"


def _word_pattern(word: str) -> str:
    """Write a word as a pattern: "cat" -> cMaMt, and "ss" also finds "ß"."""
    letters = _MARKS.join(map(re.escape, word))
    return letters.replace(f"s{_MARKS}s", f"(?:s{_MARKS}s|ß)")


def _signed_pattern(term: Term) -> str:
    """Write the pattern of words with vowel signs: a sign belongs to its word, and a match ends after the last one.

    "कि" finds "कि" and not the beginning of "किताब"; as a prefix it finds both.
    """
    words = [word for text in term.words for word in re.findall(rf"(?:{_WORD}|{_SIGN})+", _query_fold(text))]
    body = _BETWEEN.join(map(re.escape, words))
    tail = rf"(?:{_WORD}|{_SIGN})*" if term.is_prefix else rf"(?!{_WORD}|{_SIGN})"
    return rf"(?<!{_WORD})(?<!{_SIGN}){body}{tail}"


def _query_fold(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    return fold(composed).replace("ß", "ss")


def _word_start(text: str, start: int, match: int) -> int:
    """Begin at a word, unless the next one begins after the match: "…ng cat" -> "cat"."""
    if start == 0:
        return 0
    space = text.find(" ", start, match)
    return start if space < 0 else space + 1


def _word_end(text: str, end: int, match: int) -> int:
    """End with a whole word, unless the last one begins in the match."""
    if end == len(text):
        return end
    space = text.rfind(" ", match, end + 1)
    return end if space < 0 else space


def _marked(text: str, spans: Iterable[tuple[int, int]], start: int, end: int) -> str:
    pieces: list[str] = []
    at = start
    for left, right in spans:
        if left < at:
            continue
        if right > end:
            break
        pieces += [_plain(text[at:left]), "<mark>", _plain(text[left:right]), "</mark>"]
        at = right
    return "".join([*pieces, _plain(text[at:end])])


def _plain(text: str) -> str:
    """Escape tags that stand in the record: they must not pass for marks."""
    if "mark>" not in text:
        return text
    return text.replace("<mark>", "&lt;mark&gt;").replace("</mark>", "&lt;/mark&gt;")
