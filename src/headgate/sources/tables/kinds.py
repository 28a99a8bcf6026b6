"""The types that a column of text can turn out to have: each reads a text, or says that it is not of the type."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Any

from headgate.model.instants import instant, is_date, iso
from headgate.sources.declaring import BOOLEAN, DATE, INTEGER, NUMBER, OBJECT, TEXT, TIME

#: What stands for "no value" in a column that is not text.
NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "\\n"})

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3}){1,8}|\d{1,30}),\d{1,30}")
_DOTTED = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_SLASHED = re.compile(r"(\d{1,2})/(\d{1,2})/(\d{4})")
_YEAR_FIRST = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})")
_NAMED_MONTH = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2}),? (\d{4})|(\d{1,2})\.? ([A-Za-z]{3,9})\.?,? (\d{4})")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?(?: ?([AaPp])\.?[Mm]\.?)?")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
_MIN_TIME_CHARS = 13
_HALF_DAY = 12


def _boolean(text: str) -> bool | None:
    return {"true": True, "false": False}.get(text.lower())


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


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _date(text: str) -> str | None:
    return text if is_date(text) else None


def _day_of(year: int, month: int, day: int) -> str | None:
    try:
        return date(year, month, day).isoformat()
    except ValueError:
        return None


def _day_month(pattern: re.Pattern[str], *, is_month_first: bool) -> Callable[[str], str | None]:
    def read(text: str) -> str | None:
        match = pattern.fullmatch(text)
        if match is None:
            return None
        first, second, year = map(int, match.groups())
        return _day_of(year, first, second) if is_month_first else _day_of(year, second, first)

    return read


def _year_first(text: str) -> str | None:
    match = _YEAR_FIRST.fullmatch(text)
    return _day_of(*map(int, match.groups())) if match else None


def _named_month(text: str) -> str | None:
    match = _NAMED_MONTH.fullmatch(text)
    if match is None:
        return None
    name, day, year = (match[1], match[2], match[3]) if match[1] else (match[5], match[4], match[6])
    months = [at for at, month in enumerate(_MONTHS, 1) if month.startswith(name.lower())]
    return _day_of(int(year), months[0], int(day)) if months else None


def _with_clock(day_of: Callable[[str], str | None]) -> Callable[[str], str | None]:
    """Read a date and a time of day after it; without a zone it is taken as UTC, as everywhere."""

    def read(text: str) -> str | None:
        found = _CLOCK.search(text)
        if found is None or found.end() != len(text):
            return None
        day = day_of(text[: found.start()].rstrip(" ,T"))
        hour, half = int(found[1]), (found[4] or "").lower()
        if half:
            hour = hour % _HALF_DAY + (_HALF_DAY if half == "p" else 0)
        at = None if day is None else instant(f"{day}T{hour:02}:{found[2]}:{found[3] or '00'}")
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


_DAYS = (
    _day_month(_DOTTED, is_month_first=False),
    _day_month(_SLASHED, is_month_first=True),
    _day_month(_SLASHED, is_month_first=False),
    _year_first,
    _named_month,
)
#: From the narrowest to the widest; the first that reads all texts of a column is the column's.
TEXT_KINDS = (
    TextKind("boolean", _boolean),
    TextKind("integer", _integer),
    TextKind("number", _number),
    TextKind("number", _comma_number),
    TextKind("date", _date),
    *(TextKind("date", day) for day in _DAYS),
    TextKind("date-time", _time),
    *(TextKind("date-time", _with_clock(day)) for day in _DAYS),
)
#: In typed files a text that looks like a number is meant as text.
TIME_KINDS = tuple(kind for kind in TEXT_KINDS if kind.name in {"date", "date-time"})

SCHEMAS: dict[str, dict[str, Any]] = {
    "text": TEXT,
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": BOOLEAN,
    "date": DATE,
    "date-time": TIME,
    "object": OBJECT,
    "array": {"type": ["array", "null"]},
}
