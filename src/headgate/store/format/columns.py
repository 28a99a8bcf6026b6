"""How the typed columns hold values: which kinds there are, and what a value becomes in each."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from headgate.model.instants import instant
from headgate.model.query import Scalar

MAX_INTEGER = 2**63 - 1
_FLOAT_EXACT = 2.0**53
#: The most digits after the point that a column of exact values has; a number with more has no exact value.
MAX_SCALE = 8
#: Exact values are smaller than this: below it no two of them are the same float, in any scale.
EXACT_BELOW = 1 << 50
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
    #: The exact values beside a column of numbers: how often 10**-scale, where the scale is a fact of the column.
    SCALED = "scaled"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream's typed values: a number, never a name from outside."""

    number: int
    kind: ColumnKind

    @property
    def scaled(self) -> Column:
        """The exact values of a column of numbers."""
        return Column(self.number, ColumnKind.SCALED)


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
    """Return the checksum of a text, by which an exact filter finds candidates."""
    return zlib.crc32(text.encode())


def column_value(kind: ColumnKind, value: Any) -> Any:
    """Return what a typed column holds for a value; None for one of another type."""
    return None if value is None else CONVERTERS[kind](value)


def scaled(value: float, scale: int) -> int | None:
    """Return how often a number holds 10**-scale; None where it is written with more digits, or is too large.

    A float is the nearest one to a decimal of up to 15 digits if, and only if, the division below gives it.
    """
    power = 10.0**scale
    if abs(value) >= EXACT_BELOW / power:
        return None
    whole = round(value * power)
    return whole if whole / power == value else None


def scale_for(values: Iterable[float | None], least: int) -> int:
    """Return the smallest scale that gives these numbers exact values; one that no scale gives one does not count."""
    scale = least
    for value in values:
        if value is not None and scaled(value, scale) is None:
            fitting = (more for more in range(scale + 1, MAX_SCALE + 1) if scaled(value, more) is not None)
            scale = next(fitting, scale)
    return scale


def bindable(value: Scalar) -> Scalar:
    """Return a value that columns compare with: an integer that fits no column lies beyond all that do."""
    if isinstance(value, int) and not -MAX_INTEGER <= value <= MAX_INTEGER:
        return math.inf if value > 0 else -math.inf
    return int(value) if isinstance(value, bool) else value
