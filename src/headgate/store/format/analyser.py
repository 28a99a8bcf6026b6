"""What the word index holds of a text, the same for every engine: its words, and beside them dates and numbers.

Dates and numbers are indexed as written and, beside that, in one normal form (`normal_forms`).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator

from headgate.words import MONTHS, WORD_CHARS, index_words

_NUMBER_OF_MONTH = {name: number for number, names in enumerate(MONTHS, 1) for name in names.split()}
_MONTH = "|".join(sorted(_NUMBER_OF_MONTH, key=len, reverse=True))
_YEAR = r"(?P<year>(?:1[0-9]|20|21)\d\d)(?!\d)"
_DAY = r"(?P<day>0?[1-9]|[12]\d|3[01])"
_DATES = tuple(
    re.compile(rf"(?<![^\W_]){pattern}", re.IGNORECASE)
    for pattern in (
        rf"{_YEAR}[-/.](?P<number>0?[1-9]|1[0-2])[-/.]{_DAY}(?!\d)",
        rf"{_DAY}(?:st|nd|rd|th|er|\.)?\s+(?:of\s+|de\s+|di\s+)?(?P<month>{_MONTH})\.?,?\s+(?:de\s+|del\s+)?{_YEAR}",
        rf"(?P<month>{_MONTH})\.?\s+{_DAY}(?:st|nd|rd|th)?,?\s+{_YEAR}",
        rf"{_DAY}[./-](?P<number>\d\d?)[./-]{_YEAR}",
    )
)
_AMBIGUOUS = _DATES[-1]
#: Digits in groups, or with a fraction. What has neither is a word as it stands.
NUMBER = re.compile(
    r"(?<![\d.,'\u2019])(?:\d{1,3}(?:(?P<group>[.,'\u2019\u00a0\u202f])\d{3})(?:(?P=group)\d{3})*|\d+)"
    r"(?:(?P<point>[.,])\d+)?(?![\d]|[.,]\d)"
)
_YEAR_DIGITS = re.compile(r"\d{4}")
#: Most texts hold no date and no fraction, which their outline shows: digits become 0, what may stand inside a number
#: a point, letters an a, and all else a space.
_OUTLINE = bytes.maketrans(
    bytes(range(256)),
    b"".join(
        b"0"
        if chr(code) in string.digits
        else b"a"
        if chr(code) in string.ascii_letters
        else b"."
        if code in b".,'\xa0\xaf\x99"
        else b" "
        for code in range(256)
    ),
)
_YEAR_OUTLINE = re.compile(rb"(?<![0a])0000(?![0a])")
_MONTHS_IN_YEAR = 12
#: The longest date has so many characters on one side of its year.
_AROUND_CHARS = 32


def normal_forms(text: str) -> Iterator[tuple[int, int, str]]:
    """Find dates and numbers: where each starts and ends, and its form."""
    outline = text.encode("utf-8", "replace").translate(_OUTLINE)
    if b"0.0" in outline:
        yield from _numbers(text)
    if b"0000" in outline and _YEAR_OUTLINE.search(outline):
        yield from _dates(text)


def dates_in(text: str) -> list[tuple[int, int, str]]:
    """Find dates in order: where each starts and ends, and the day as in ISO 8601; of two readings the one with the day first."""
    places: dict[tuple[int, int], str] = {}
    for pattern, match in _date_matches(text):
        for form in _date_forms(pattern, match):
            places.setdefault(match.span(), form[1:])
    return sorted(
        ((start, end, day) for (start, end), day in places.items()), key=lambda place: (place[0], -place[1])
    )


def _dates(text: str) -> Iterator[tuple[int, int, str]]:
    places = {
        (*match.span(), form)
        for pattern, match in _date_matches(text)
        for form in _date_forms(pattern, match)
    }
    yield from sorted(places)


def _date_matches(text: str) -> Iterator[tuple[re.Pattern[str], re.Match[str]]]:
    """Look for dates around years: looking for them everywhere would take long."""
    for year in _YEAR_DIGITS.finditer(text):
        for pattern in _DATES:
            low, high = max(0, year.start() - _AROUND_CHARS), year.end() + _AROUND_CHARS
            for match in pattern.finditer(text, low, high):
                yield pattern, match


def _date_forms(pattern: re.Pattern[str], match: re.Match[str]) -> Iterator[str]:
    parts = match.groupdict()
    name, year, day = parts.get("month"), int(parts["year"]), int(parts["day"])
    month = _NUMBER_OF_MONTH[name.lower()] if name else int(parts["number"])
    if month <= _MONTHS_IN_YEAR:
        yield f"@{year:04}-{month:02}-{day:02}"
    if pattern is _AMBIGUOUS and day <= _MONTHS_IN_YEAR and month != day:
        yield f"@{year:04}-{day:02}-{month:02}"


def _numbers(text: str) -> Iterator[tuple[int, int, str]]:
    for match in NUMBER.finditer(text):
        group, point = match["group"], match["point"]
        if group is None and point is None:
            continue
        if group is not None and group == point:
            # "1.234.5" is no number: a version, an address, a date.
            continue
        digits = match.group()
        if group is not None:
            digits = digits.replace(group, "")
        yield (*match.span(), _form(digits.replace(point, ".") if point else digits))
        if point is None and group in {".", ","} and match.group().count(group) == 1:
            # "1.234" may be a fraction.
            yield (*match.span(), _form(match.group().replace(group, ".")))


def _form(digits: str) -> str:
    whole, _, fraction = digits.partition(".")
    fraction = fraction.rstrip("0")
    whole = whole.lstrip("0") or "0"
    return (f"#{whole}.{fraction}" if fraction else f"#{whole}")[:WORD_CHARS]


#: Raise it when the words of a text change, or which fields are searched: a store notes it, and makes its index again when it is opened.
VERSION = 6


def index_tokens(text: str) -> list[bytes]:
    """Return everything that the index holds of a text: its words in order, then dates and numbers in normal form."""
    words = index_words(text)
    words.extend(form.encode() for _, _, form in normal_forms(text))
    return words
