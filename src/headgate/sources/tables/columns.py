"""What the columns of a table are: the types that texts can have, found by looking at every value once."""

from __future__ import annotations

import hashlib
import math
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, cast

import msgspec
import numpy as np

from headgate.model.ids import MAX_ID_CHARS
from headgate.sources.declaring import TYPES
from headgate.sources.protocol import Reject
from headgate.sources.tables.text_kinds import EXACT_DIGITS, NO_VALUE, TEXT_KINDS, TextKind, is_long, shape_of

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
    #: How its texts can be read.
    kinds: Sequence[TextKind]
    rows: Callable[[], AbstractContextManager[Iterator[RawRow | Reject]]]
    #: The columns of its primary key, if the file declares one.
    key: Sequence[str] = ()
    #: Whether older connections have other columns of it.
    is_new: bool = False


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
    #: The ways in which all texts so far can be read.
    ways: Sequence[TextKind]
    present: int = 0
    #: The types of values that are not text.
    types: set[str] = field(default_factory=set[str])
    has_text: bool = False
    distinct: set[Any] | None = field(default_factory=set[Any])
    #: Of every value, while the column may be a key.
    hashes: array[int] | None = None
    #: Some texts that were looked at; the same again says nothing new.
    seen: set[str] = field(default_factory=set[str])
    #: The shapes of plain numbers that all the ways read: they read every other number of the same shape.
    shapes: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
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
        if not self.ways or (shape := shape_of(text)) in self.shapes:
            return
        self.ways = [] if is_long(text) else [way for way in self.ways if way.read(text) is not None]
        if shape and all(way.name in {"integer", "number"} for way in self.ways):
            self.shapes.add(shape)

    def kind_in(self, form: int) -> str:
        """Return the column's type in a form of tables; of mixed ones it is text."""
        if self.has_text:
            ways = [way for way in self.ways if way.form <= form]
            return ways[0].name if ways and not self.types else "text"
        if self.types <= {"integer", "number"}:
            return "number" if "number" in self.types else "integer" if self.types else "text"
        return next(iter(self.types)) if len(self.types) == 1 else "text"

    def is_unique(self, rows: int) -> bool:
        """Return whether every row has a value here, and each another one."""
        return self.hashes is not None and self.present == rows > 0 and not repeated(self.hashes)

    def is_grouping(self, rows: int, form: int) -> bool:
        """Return whether few values stand for many rows."""
        is_few = self.distinct is not None and len(self.distinct) * 2 <= max(rows, 2)
        return is_few and self.kind_in(form) in {"text", "integer", "boolean"} and self.present > 0


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


def column_of(facts: ColumnFacts, form: int) -> TableColumn:
    kind = facts.kind_in(form)
    # Of the same type, what is read better now is stored better in an older connection too.
    way = next((way for way in facts.ways if way.name == kind), None) if facts.has_text else None
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
    if isinstance(value, Decimal) and value.is_finite() and value.adjusted() >= EXACT_DIGITS:
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
