"""Numbers and dates as people write them: the first one near a place in a text. Pure."""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal

from headgate.store.format.analyser import NUMBER, dates_in

#: A value begins at most so many characters after the phrase that it belongs to.
NEAR_CHARS = 200
#: The longest value that is read, in characters: more digits are no number that a person writes.
LONGEST_CHARS = 40
#: A minus before a number or before its currency: "-3", "-£3", "£-3", "-EUR 3"; but no hyphen ("A-3") and no dash ("A - 3").
_MINUS = re.compile(
    r"(?:^|[\s(:=,;])(?:[-\u2212](?:[^\w\s]|[A-Z]{3}\s?)?|(?:[^\w\s\-\u2212]|[A-Z]{3})\s?[-\u2212])$"
)
_MINUS_CHARS = 8
#: The letters that may stand before a number without a space.
_CURRENCY = re.compile(r"(?<![^\W_])[A-Z]{3}$")
_CURRENCY_CHARS = 4


def first_number(text: str, start: int) -> Decimal | None:
    """Read the first number near a place, with all its digits: "1,234.50", "1.234,50", "£12.50", "-3".

    A point or a comma that could be either is a fraction's point and a comma between thousands: "1.234" and "1,234".
    The numbers of a date are none.
    """
    days: list[tuple[int, int]] | None = None
    for match in NUMBER.finditer(text, start):
        if match.start() > start + NEAR_CHARS:
            return None
        if days is None:
            near = text[start : start + NEAR_CHARS + LONGEST_CHARS]
            days = [(start + first, start + end) for first, end, _ in dates_in(near)]
        if any(first <= match.start() < end for first, end in days) or _is_in_word(text, match.start()):
            continue
        value = _number(match)
        if value is not None:
            before = text[max(start, match.start() - _MINUS_CHARS) : match.start()]
            # Zero has no sign: which of two came first would show.
            return -value if value and _MINUS.search(before) else value
    return None


def _is_in_word(text: str, at: int) -> bool:
    if at == 0 or not text[at - 1].isalpha():
        return False
    return _CURRENCY.search(text[max(0, at - _CURRENCY_CHARS) : at]) is None


def _number(match: re.Match[str]) -> Decimal | None:
    digits, group, point = match.group(), match["group"], match["point"]
    if len(digits) > LONGEST_CHARS or (group is not None and group == point):
        # "1.234.5" is no number: a version, an address.
        return None
    if group is not None and point is None and digits.count(group) == 1:
        is_fraction = group == "." or (group == "," and digits.startswith("0"))
        group, point = (None, group) if is_fraction else (group, None)
    if group is not None:
        digits = digits.replace(group, "")
    return Decimal(digits.replace(point, ".") if point else digits)


def first_date(text: str, start: int) -> date | None:
    """Read the first date near a place: "2026-03-04", "4 March 2026", "March 4, 2026", and "04/03/2026" with the day first."""
    for first, _, day in dates_in(text[start : start + NEAR_CHARS + LONGEST_CHARS]):
        if first > NEAR_CHARS:
            return None
        try:
            return date.fromisoformat(day)
        except ValueError:
            # There is no such day.
            continue
    return None
