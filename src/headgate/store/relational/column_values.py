"""How the typed columns hold values: which kinds there are, and what a value becomes in each."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headgate.model.instants import instant

_FLOAT_EXACT = 2.0**53
#: Turns a value that is not None into what its column holds.
Converter = Callable[[Any], Any]


class ColumnKind(StrEnum):
    """How a column of a typed table holds a field's values."""

    #: Text that is grouped by: the text itself.
    WORD = "word"
    #: Other text: a checksum, enough to find candidates for an exact filter.
    HASH = "hash"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    #: Microseconds since 1970.
    TIME = "time"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream's typed values: a number, never a name from outside."""

    number: int
    kind: ColumnKind


class TypedColumn(NamedTuple):
    """A column, and whether it holds the keys of other records."""

    column: Column
    is_key: bool


def _word(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _hash(value: Any) -> int | None:
    return text_hash(value) if isinstance(value, str) else None


def _time(value: Any) -> int | None:
    return instant(value) if isinstance(value, str) else None


def _boolean(value: Any) -> int | None:
    return int(value) if isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # JSON does not tell 3.0 from 3.
    return (
        int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _FLOAT_EXACT else None
    )


#: How a value of each kind is stored; None for a value of another type.
CONVERTERS: Mapping[ColumnKind, Converter] = {
    ColumnKind.WORD: _word,
    ColumnKind.HASH: _hash,
    ColumnKind.TIME: _time,
    ColumnKind.BOOLEAN: _boolean,
    ColumnKind.NUMBER: _number,
    ColumnKind.INTEGER: _integer,
}


def text_hash(text: str) -> int:
    """Give the checksum of a text, by which an exact filter finds candidates."""
    return zlib.crc32(text.encode())


def column_value(kind: ColumnKind, value: Any) -> Any:
    """Give what a typed column holds for a value; None for one of another type."""
    return None if value is None else CONVERTERS[kind](value)
