"""What the columns of a table are: the types that texts can have, found by looking at every value once."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Any, cast

import msgspec
import numpy as np

from headgate.model.ids import MAX_ID_CHARS
from headgate.model.instants import instant, is_date, iso
from headgate.sources.declaring import TYPES
from headgate.sources.protocol import Reject

#: What stands for "no value" in a column that is not text.
NO_VALUE = frozenset({"", "na", "n/a", "nan", "null", "none", "-", "\\n"})

_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")
_NUMBER = re.compile(r"[+-]?(\d{1,30}(\.\d{0,30})?|\.\d{1,30})([eE][+-]?\d{1,3})?")
_COMMA_NUMBER = re.compile(r"[+-]?(\d{1,3}(\.\d{3}){1,8}|\d{1,30}),\d{1,30}")
#: Whole numbers of which a float would lose digits: account numbers, cards, codes.
_LONG_NUMBER = re.compile(r"[+-]?(\d{16,30}|\d{1,3}(\.\d{3}){5,8})([.,]\d{0,30})?")
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
#: A float holds every number of so many digits.
_EXACT_DIGITS = 15
_HALF_DAY = 12


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


def _is_long(text: str) -> bool:
    """Return whether it has more digits than a number holds; integers of up to 18 digits are exact."""
    return _LONG_NUMBER.fullmatch(text) is not None and _INTEGER.fullmatch(text) is None


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


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


_DAYS = (
    _day_month(_DOTTED, is_month_first=False),
    _day_month(_SLASHED, is_month_first=True),
    _day_month(_SLASHED, is_month_first=False),
    _year_first,
    _named_month,
)
#: From the narrowest to the widest; the first that reads all texts of a column is the column's.
TEXT_KINDS = (
    TextKind("boolean", lambda text: {"true": True, "false": False}.get(text.lower())),
    TextKind("integer", _integer),
    TextKind("number", _number),
    TextKind("number", _comma_number),
    TextKind("date", lambda text: text if is_date(text) else None),
    *(TextKind("date", day) for day in _DAYS),
    TextKind("date-time", _time),
    *(TextKind("date-time", _with_clock(day)) for day in _DAYS),
)
#: In typed files a text that looks like a number is meant as text.
TIME_KINDS = tuple(kind for kind in TEXT_KINDS if kind.name in {"date", "date-time"})

SCHEMAS: Mapping[str, Mapping[str, Any]] = {
    **{name: schema for name, schema in TYPES.items() if name != "list"},
    "array": {"type": ["array", "null"]},
}


#: The values of one row by the number of its column, and where it stands: "line 7".
RawRow = tuple[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class RawTable:
    """The rows of one table of a file, which can be read again and again."""

    name: str
    columns: Sequence[str]
    #: Whether every value is text.
    is_untyped: bool
    rows: Callable[[], AbstractContextManager[Iterator[RawRow | Reject]]]
    #: The columns of its primary key, if the file declares one.
    key: Sequence[str] = ()


#: A column with more different values is not one that records are grouped by.
_GROUPS_MOST = 200
_MAX_INTEGER = 2**63 - 1
#: How many texts of a column are remembered, so that repeated ones are read once; longer ones are not.
_SEEN_MOST = 5000
_SEEN_CHARS = 64
_LEADING_ZEROS = re.compile(r"^([+-]?)0+(?=\d)")
_TYPES = {bool: "boolean", int: "integer", float: "number", dict: "object", list: "array"}


def hash_of(value: Any) -> int:
    encoded = msgspec.json.encode(value)
    return int.from_bytes(hashlib.blake2b(encoded, digest_size=8).digest(), "big")


def repeated(hashes: array[int]) -> frozenset[int]:
    ordered = np.sort(np.frombuffer(hashes, dtype=np.uint64)) if hashes else np.empty(0, dtype=np.uint64)
    return frozenset(map(int, np.unique(ordered[1:][ordered[1:] == ordered[:-1]])))


@dataclass(slots=True)
class ColumnFacts:
    """What is known about one column after some rows."""

    name: str
    #: Whether the file has only texts, such as CSV: then a text may be a number.
    is_untyped: bool
    present: int = 0
    #: The types of values that are not text.
    types: set[str] = field(default_factory=set[str])
    has_text: bool = False
    #: The ways in which all texts so far can be read.
    ways: Sequence[TextKind] = ()
    distinct: set[Any] | None = field(default_factory=set[Any])
    #: Of every value, while the column may be a key.
    hashes: array[int] | None = None
    #: Some texts that were looked at; the same again says nothing new.
    seen: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        self.ways = TEXT_KINDS if self.is_untyped else TIME_KINDS
        if looks_like_key(self.name):
            self.hashes = array("Q")

    def add(self, value: Any) -> None:
        if value in self.seen if isinstance(value, str) else value is None:
            self.present += value is not None
            return
        if isinstance(value, str) and value.strip().lower() in NO_VALUE:
            return
        self.present += 1
        if isinstance(value, str):
            self._add_text(value.strip())
            # What may be a key is counted every time.
            if self.hashes is None and len(self.seen) < _SEEN_MOST and len(value) <= _SEEN_CHARS:
                self.seen.add(value)
        else:
            self.types.add(_TYPES[type(value)])
        if self.hashes is not None:
            self.hashes.append(hash_of(value))
        if self.distinct is not None and not isinstance(value, dict | list):
            self.distinct.add(value)
            if len(self.distinct) > _GROUPS_MOST:
                self.distinct = None

    def _add_text(self, text: str) -> None:
        self.has_text = True
        if len(text) > MAX_ID_CHARS:
            self.hashes = None
        if _is_long(text):
            self.ways = ()
        elif self.ways:
            self.ways = [way for way in self.ways if way.read(text) is not None]

    @property
    def kind(self) -> str:
        """The column's type; of mixed ones it is text."""
        if self.has_text:
            return self.ways[0].name if self.ways and not self.types else "text"
        if self.types <= {"integer", "number"}:
            return "number" if "number" in self.types else "integer" if self.types else "text"
        return next(iter(self.types)) if len(self.types) == 1 else "text"

    def is_unique(self, rows: int) -> bool:
        """Return whether every row has a value here, and each another one."""
        return self.hashes is not None and self.present == rows > 0 and not repeated(self.hashes)

    def is_grouping(self, rows: int) -> bool:
        """Return whether few values stand for many rows."""
        is_few = self.distinct is not None and len(self.distinct) * 2 <= max(rows, 2)
        return is_few and self.kind in {"text", "integer", "boolean"} and self.present > 0


def looks_like_key(name: str) -> bool:
    """Return whether a column's name is one that programs give to keys."""
    plain = name.strip().lower().replace(" ", "_")
    return plain in {"id", "_id", "uuid", "guid", "uid", "key", "rowid"} or plain.endswith(("_id", "_uuid"))


@dataclass(frozen=True, slots=True)
class TableColumn:
    """One column, and how its values are read."""

    name: str
    kind: str
    way: TextKind | None = None
    _known: dict[str, Any] = field(default_factory=dict[str, Any], repr=False, compare=False)

    def value(self, raw: Any) -> Any:
        """Convert a value of the file.

        Raises:
            ValueError: it is not of the column's type.
        """
        if raw is None:
            return None
        if self.kind == "text":
            return self._text(raw)
        if isinstance(raw, str):
            return self._known[raw] if raw in self._known else self._remembered(raw)
        kind = _TYPES.get(cast("type[Any]", type(raw)))
        if kind == self.kind or (kind, self.kind) == ("integer", "number"):
            return raw
        raise ValueError(f"{self.name}: {str(raw)[:40]!r} is no {self.kind}")

    def _text(self, raw: Any) -> str | None:
        if isinstance(raw, str):
            return raw if raw.strip() else None
        return msgspec.json.encode(raw).decode()

    def _remembered(self, raw: str) -> Any:
        value = self._read(raw.strip())
        if len(self._known) < _SEEN_MOST and len(raw) <= _SEEN_CHARS:
            self._known[raw] = value
        return value

    def _read(self, text: str) -> Any:
        if text.lower() in NO_VALUE:
            return None
        if self.way is None and self.kind in {"integer", "number"}:
            # A person says that it is a number, whatever a code would look like.
            text = _LEADING_ZEROS.sub(r"\1", text)
        ways = [self.way] if self.way else [way for way in TEXT_KINDS if way.name == self.kind]
        for way in ways:
            value = way.read(text)
            if value is not None:
                return value
        raise ValueError(f"{self.name}: {text[:40]!r} is no {self.kind}")


def column_of(facts: ColumnFacts) -> TableColumn:
    kind = facts.kind
    way = facts.ways[0] if facts.has_text and facts.ways and kind != "text" else None
    return TableColumn(facts.name, kind, way)


def field_names(raw: Iterable[str]) -> list[str]:
    """Make names that requests can hold, each another one."""
    names: list[str] = []
    for number, text in enumerate(raw, 1):
        base = (
            "".join("_" if letter in ",[]\0\n\r\t" else letter for letter in text.strip())[:100]
            or f"column_{number}"
        )
        name, count = base, 1
        while name in names:
            count += 1
            name = f"{base}_{count}"
        names.append(name)
    return names


def storable(value: Any) -> Any:
    """Return a value of a typed file as JSON can hold it; times and other types become text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | bytes):
        return _unicode(value if isinstance(value, str) else value.decode("utf-8", "replace"))
    if isinstance(value, list | dict):
        return _plain(value)
    if isinstance(value, int | float | Decimal):
        return _storable_number(value)
    to_text = getattr(value, "isoformat", None)
    return str(value) if to_text is None else to_text()


def _storable_number(value: float | Decimal) -> float | str | None:
    if isinstance(value, int):
        return value if -_MAX_INTEGER <= value <= _MAX_INTEGER else str(value)
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() >= _EXACT_DIGITS:
        return f"{value:f}"
    number = float(value)
    return number if math.isfinite(number) else None


def _unicode(text: str) -> str:
    plain = text.replace("\0", "") if "\0" in text else text
    return plain if plain.isascii() else plain.encode("utf-8", "replace").decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {_unicode(str(name)): _plain(member) for name, member in members.items()}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return storable(value)
