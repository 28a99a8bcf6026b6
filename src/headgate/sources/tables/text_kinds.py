"""How texts of a table can be read: as numbers, amounts, days and times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.model.instants import instant, is_date, iso
from headgate.sources.formats.written import DayOrder, amount_of, day_of

#: Since this form headers are found in more places, and more texts are numbers and days.
FORM = 2
#: What stands for "no value" in a column that is not text.
NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "\\n"})

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_PLAIN_NUMBER = re.compile(r"[+-]?(0|[1-9]\d*)(?:[.,]\d+)?", re.ASCII)
_ANY_DIGIT = str.maketrans("023456789", "1" * 9)
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3}){1,8}|\d{1,30}),\d{1,30}")
#: Whole numbers of which a float would lose digits: account numbers, cards, codes.
_LONG_NUMBER = re.compile(r"[+-]?(\d{16,30}|\d{1,3}(\.\d{3}){5,8})([.,]\d{0,30})?")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([AaPp])\.?[Mm]\.?)?")
_MONTH = (
    "(?i:jan(uary)?|feb(ruary)?|mar(ch)?|apr(il)?|may|june?|july?|aug(ust)?|sept?(ember)?|oct(ober)?|nov(ember)?"
    "|dec(ember)?)"
)
_MIN_TIME_CHARS = 13
#: A float holds every number of so many digits.
EXACT_DIGITS = 15
_HALF_DAY = 12
_UNITS = ("$", "€", "£", "¥", "₹", "USD", "EUR", "GBP", "CHF")
_SPACES = " \u00a0\u202f"


def _integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _number(text: str) -> float | None:
    if not _NUMBER.fullmatch(text) or _has_leading_zero(text):
        return None
    return _finite(int(text) if _INTEGER.fullmatch(text) else float(text))


def _comma_number(text: str) -> float | None:
    if _COMMA_NUMBER.fullmatch(text):
        return _finite(float(text.replace(".", "").replace(",", ".")))
    return _integer(text)


def _has_leading_zero(text: str) -> bool:
    """Whether it is a code that looks like a number, such as a postal code: ``01067``."""
    digits = text.lstrip("+-")
    return len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()


def shape_of(text: str) -> str:
    """Return what decides whether a plain number can be read: its sign, mark and counts of digits; empty for others."""
    match = _PLAIN_NUMBER.fullmatch(text)
    if match is None or len(text) > EXACT_DIGITS:
        return ""
    return f"{'0' * (match[1] == '0')}{text.translate(_ANY_DIGIT)}"


def is_long(text: str) -> bool:
    """Return whether it has more digits than a number holds; integers of up to 18 digits are exact."""
    return _LONG_NUMBER.fullmatch(text) is not None and _INTEGER.fullmatch(text) is None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _with_clock(day_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Read a date and a time of day after it; without a zone it is taken as UTC, as everywhere."""

    def read(text: str) -> str | None:
        clock = _CLOCK.search(text)
        if clock is None or clock.end() != len(text):
            return None
        day = day_of(text[: clock.start()].rstrip(" ,T"))
        hour, half = int(clock[1]), (clock[4] or "").lower()
        if half:
            hour = hour % _HALF_DAY + (_HALF_DAY if half == "p" else 0)
        at = None if day is None else instant(f"{day}T{hour:02}:{clock[2]}:{clock[3] or '00'}")
        return None if at is None else iso(at)

    return read


def _time(text: str) -> str | None:
    # A bare date is a time as well, so that a column of both is a column of times; digits alone are not.
    if len(text) < _MIN_TIME_CHARS and not is_date(text):
        return None
    at = None if text.isdigit() else instant(text)
    return None if at is None else iso(at)


@dataclass(frozen=True, slots=True)
class TextKind:
    """One way to read texts."""

    #: As in a file of corrections.
    name: str
    read: Callable[[str], Any]
    #: The form of tables since which texts are read so; columns of older connections keep their types.
    form: int = 1


def _amount(unit: str, mark: str) -> TextKind:
    """Read numbers with groups of thousands, and amounts of one currency."""
    group = ",'\u2019" if mark == "." else "."
    number = rf"\d{{1,3}}(?:[{group}{_SPACES}]\d{{3}}){{1,4}}|0|[1-9]\d{{0,14}}"
    shape = re.compile(
        rf"\(?[-+\u2212]? ?(?P<unit>{re.escape(unit)})?[{_SPACES}]?[-\u2212]?"
        rf"(?P<number>{number})(?P<fraction>{re.escape(mark)}\d{{1,14}})?[{_SPACES}]?(?:{re.escape(unit)})?-?\)?"
    )

    def read(text: str) -> float | None:
        match = shape.fullmatch(text)
        if match is None or text.startswith("(") != text.endswith(")"):
            return None
        # Without a fraction or a currency it may be an address, a version or a telephone number.
        is_amount = unit in text if unit else match["fraction"] or set(match["number"]) & set(",'\u2019")
        is_exact = sum(character.isdigit() for character in text) <= EXACT_DIGITS
        amount = amount_of(text, mark) if is_amount and is_exact else None
        return (_number if mark == "." else _integer)(text) if amount is None else float(amount)

    return TextKind("number", read, FORM)


def _day_like(shape: str, order: DayOrder = DayOrder.DAY_FIRST) -> Callable[[str], str | None]:
    pattern = re.compile(shape)
    return lambda text: day_of(text, order) if pattern.fullmatch(text) else None


_DAYS = (
    _day_like(r"\d{1,2}\.\d{1,2}\.\d{4}"),
    _day_like(r"\d{1,2}/\d{1,2}/\d{4}", DayOrder.MONTH_FIRST),
    _day_like(r"\d{1,2}/\d{1,2}/\d{4}"),
    _day_like(r"\d{4}/\d{1,2}/\d{1,2}"),
    _day_like(rf"{_MONTH}\.? \d{{1,2}},? \d{{4}}|\d{{1,2}}\.? {_MONTH}\.?,? \d{{4}}"),
)
_LATER_DAYS = (
    _day_like(r"\d{1,2}/\d{1,2}/\d{2}", DayOrder.MONTH_FIRST),
    _day_like(r"\d{1,2}/\d{1,2}/\d{2}|\d{2}\.\d{2}\.\d{2}|\d{1,2}-\d{1,2}-\d{4}"),
    _day_like(r"\d{1,2}-\d{1,2}-\d{4}", DayOrder.MONTH_FIRST),
    _day_like(r"\d{1,2}[- ][A-Za-z]{3}[- ](\d{4}|\d{2})"),
)


def _kinds(marks: str) -> tuple[TextKind, ...]:
    """Return the ways to read texts, from the narrowest to the widest; the likelier decimal mark comes first."""
    comma = TextKind("number", _comma_number)
    amounts = [_amount(unit, mark) for unit in ("", *_UNITS) for mark in marks]
    return (
        TextKind("boolean", lambda text: {"true": True, "false": False}.get(text.lower())),
        TextKind("integer", _integer),
        TextKind("number", _number),
        *((*amounts, comma) if marks[0] == "." else (comma, *amounts)),
        TextKind("date", lambda text: text if is_date(text) else None),
        *(TextKind("date", day) for day in _DAYS),
        *(TextKind("date", day, FORM) for day in _LATER_DAYS),
        TextKind("date-time", _time),
        *(TextKind("date-time", _with_clock(day)) for day in _DAYS),
        *(TextKind("date-time", _with_clock(day), FORM) for day in _LATER_DAYS),
    )


#: The first that reads all texts of a column is the column's.
TEXT_KINDS = _kinds(",.")
#: Of a table whose cells are parted by anything but semicolons, which spreadsheets of decimal commas write.
ENGLISH_KINDS = _kinds(".,")
#: In typed files a text that looks like a number is meant as text.
TIME_KINDS = tuple(kind for kind in TEXT_KINDS if kind.name in {"date", "date-time"})
