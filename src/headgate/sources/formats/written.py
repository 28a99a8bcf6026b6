"""Amounts and days as banks and people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import Enum

_SIGNS = "+\\-\u2212\u2013"
_SPACES = " '\u2019\u00a0\u202f\u2009"
_AMOUNT = re.compile(
    rf"""^(?P<open>\()?\s*(?P<before>[{_SIGNS}])?\s*(?:[A-Za-z]{{3}}|[€$£¥₹])?\s*(?P<inner>[{_SIGNS}])?\s*
    (?P<number>[0-9][0-9.,{_SPACES}]*|[.,][0-9]+)
    \s*(?P<tail>[A-Za-z]{{1,3}}|[€$£¥₹])?\s*(?P<after>[{_SIGNS}])?\s*(?:\))?$""",
    re.VERBOSE,
)
_DEBIT_TAILS = frozenset({"s", "d", "dr", "db"})
_MAX_AMOUNT_CHARS = 40
_THOUSAND_DIGITS = 3
#: An amount beyond this is not money, and would lose its small digits as a number.
_MOST = Decimal(10) ** 15


class DayOrder(Enum):
    """Which of the first two numbers of a day is the day."""

    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


def amount_of(text: str, mark: str) -> Decimal | None:
    """Read an amount; `mark` is the decimal mark of the file, for what could be read both ways."""
    match = _AMOUNT.match(text.strip()) if len(text) <= _MAX_AMOUNT_CHARS else None
    if match is None:
        return None
    try:
        value = Decimal(_plain(match["number"], mark))
    except InvalidOperation:
        return None
    signs = {match["before"], match["inner"], match["after"]} - {None, "+"}
    is_negative = bool(signs or match["open"] or (match["tail"] or "").lower() in _DEBIT_TAILS)
    return (-value if is_negative else value) if value < _MOST else None


def amount_text(value: Decimal) -> str:
    """Write an amount the same way whatever digits the bank wrote: at least two after the point."""
    exact = value.normalize()
    if exact == 0:
        return "0.00"
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int)
    return format(exact if exponent <= -2 else exact.quantize(Decimal("0.01")), "f")  # noqa: PLR2004 - cents


def decimal_mark(samples: Iterable[str], default: str) -> str:
    """Find the decimal mark by amounts that can only be read one way."""
    votes = {",": 0, ".": 0}
    for sample in samples:
        match = _AMOUNT.match(sample.strip()) if len(sample) <= _MAX_AMOUNT_CHARS else None
        marks = re.findall(r"[.,]", match["number"]) if match else []
        if not marks:
            continue
        digits = len(re.split(r"[.,]", match["number"].strip(_SPACES))[-1]) if match else 0
        if len(set(marks)) > 1 or (len(marks) == 1 and digits != _THOUSAND_DIGITS):
            votes[marks[-1]] += 1
    return default if votes[","] == votes["."] else max(votes, key=lambda mark: votes[mark])


def _plain(number: str, mark: str) -> str:
    digits = re.sub(f"[{_SPACES}]", "", number).rstrip(".,")
    marks = re.findall(r"[.,]", digits)
    if not marks:
        return digits
    last = marks[-1]
    tail = len(digits) - digits.rindex(last) - 1
    is_decimal = len(set(marks)) > 1 or (len(marks) == 1 and (last == mark or tail != _THOUSAND_DIGITS))
    if not is_decimal:
        return re.sub(r"[.,]", "", digits)
    whole, _, fraction = digits.rpartition(last)
    return f"{re.sub(r'[.,]', '', whole) or '0'}.{fraction}"


_YEAR_FIRST = re.compile(
    r"^([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})\.?(?:[ T,].*|Z|[+-][0-9]{2}:[0-9]{2})?$"
)
_COMPACT = re.compile(r"^([0-9]{4})([0-9]{2})([0-9]{2})(?:[0-9]{4,6})?(?:[.\[].*)?$")
_YEAR_LAST = re.compile(r"^([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})(?:[ T,].*)?$")
_NAMED = re.compile(r"^([0-9]{1,2})[ .\-/]+([^\W\d_]{3,})[ .,\-/]+([0-9]{4}|[0-9]{2})$")
_NAMED_FIRST = re.compile(r"^([^\W\d_]{3,})[ .]+([0-9]{1,2}),? +([0-9]{4})$")
_MONTHS = (
    ("jan", "ene", "gen"),
    ("feb", "fev", "fév"),
    ("mar", "mär", "mrz", "mae"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mei", "mag"),
    ("jun", "juin", "giu"),
    ("jul", "juil", "lug"),
    ("aug", "aou", "aoû", "ago"),
    ("sep", "set"),
    ("oct", "okt", "ott", "out"),
    ("nov",),
    ("dec", "dez", "déc", "dic"),
)
_CENTURY_PIVOT = 70
_MAX_DAY_CHARS = 40
_MONTHS_OF_YEAR = 12


def day_of(text: str, order: DayOrder = DayOrder.DAY_FIRST) -> str | None:
    """Read a day, with or without a time after it, as an ISO date."""
    text = text.strip()
    if not text or len(text) > _MAX_DAY_CHARS:
        return None
    if match := _YEAR_FIRST.match(text):
        return _iso(match[1], match[3], match[4])
    if match := _COMPACT.match(text):
        return _iso(match[1], match[2], match[3])
    if match := _YEAR_LAST.match(text):
        day, month = (match[1], match[3]) if order is DayOrder.DAY_FIRST else (match[3], match[1])
        return _iso(match[4], month, day)
    if match := _NAMED.match(text):
        return _iso(match[3], _month(match[2]), match[1])
    match = _NAMED_FIRST.match(text)
    return _iso(match[3], _month(match[1]), match[2]) if match else None


def day_order(samples: Iterable[str]) -> DayOrder | None:
    """Find which number is the day by one that no month has; a point between them always means the day first."""
    for sample in samples:
        match = _YEAR_LAST.match(sample.strip()[:_MAX_DAY_CHARS])
        if match and (match[2] == "." or int(match[1]) > _MONTHS_OF_YEAR):
            return DayOrder.DAY_FIRST
        if match and int(match[3]) > _MONTHS_OF_YEAR:
            return DayOrder.MONTH_FIRST
    return None


def likely_order(samples: Sequence[str], latest: str | None) -> DayOrder | None:
    """Find which number is the day where each could be: none is after the latest day, and lines come in their order."""
    read = {order: [day for sample in samples if (day := day_of(sample, order))] for order in DayOrder}
    early = [order for order, days in read.items() if latest is None or max(days, default="") <= latest]
    if len(early) == 1:
        return early[0]
    sorted_ones = [order for order, days in read.items() if sorted(days) in (days, days[::-1])]
    return sorted_ones[0] if len(sorted_ones) == 1 else None


def _month(name: str) -> str:
    lower = name.lower()
    for number, names in enumerate(_MONTHS, 1):
        if lower.startswith(names):
            return str(number)
    return "0"


def _iso(year: str, month: str, day: str) -> str | None:
    number = int(year)
    if len(year) == 2:  # noqa: PLR2004 - 26 for 2026
        number += 2000 if number < _CENTURY_PIVOT else 1900
    try:
        return date(number, int(month), int(day)).isoformat()
    except ValueError:
        return None
