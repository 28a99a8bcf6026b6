"""How columns lie in memory: a number for each column, an array type for each kind of value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.store.relational.catalog import StreamTable
from headgate.store.relational.column_values import ColumnKind

Array = NDArray[Any]

#: Stand for a missing value: the smallest number that the type holds.
NO_INTEGER = -(2**63)
NO_QUARTER_HOUR = -(2**31)
QUARTER_HOUR_US = 900 * 1_000_000
#: Room for records that come in later, so that an array is not copied for each batch.
_SPARE_ROWS = 1024


class OwnColumn(IntEnum):
    """Columns that every shelf has. The others are numbered from 1, as in the stream's typed table."""

    #: Whether the record is there; False for a tombstone and for a number that no record has.
    LIVE = 0
    #: The record's time in microseconds.
    TIME = -1
    #: The quarter of an hour that the time falls into: derived in memory, never stored.
    QUARTER_HOUR = -2


@dataclass(frozen=True, slots=True)
class ColumnSpec:
    """The array type of a column, and the value that stands for a missing one."""

    dtype: Any
    none: Any
    #: The values are numbers of texts.
    is_text: bool = False

    def empty(self, rows: int) -> Array:
        """Make an array in which every value is missing, with room for more rows."""
        return np.full(max(rows + rows // 8, _SPARE_ROWS), self.none, self.dtype)

    def array(self, values: Sequence[Any]) -> Array:
        """Put values, None where one is missing, into an array."""
        none = self.none
        return np.array([none if value is None else value for value in values], self.dtype)


_BY_KIND: Mapping[ColumnKind, ColumnSpec] = {
    ColumnKind.WORD: ColumnSpec(np.uint32, 0, is_text=True),
    ColumnKind.HASH: ColumnSpec(np.int64, NO_INTEGER),
    ColumnKind.INTEGER: ColumnSpec(np.int64, NO_INTEGER),
    ColumnKind.NUMBER: ColumnSpec(np.float64, np.nan),
    ColumnKind.BOOLEAN: ColumnSpec(np.int8, -1),
    ColumnKind.TIME: ColumnSpec(np.int64, NO_INTEGER),
}
_OWN: Mapping[int, ColumnSpec] = {
    OwnColumn.LIVE: ColumnSpec(np.bool_, none=False),
    OwnColumn.TIME: ColumnSpec(np.int64, NO_INTEGER),
    OwnColumn.QUARTER_HOUR: ColumnSpec(np.int32, NO_QUARTER_HOUR),
}


def column_specs(stream: StreamTable) -> dict[int, ColumnSpec]:
    """Describe every column that the shelves of a stream have, by number."""
    return {**_OWN, **{column.number: _BY_KIND[column.kind] for column in stream.columns.values()}}


def missing_value(kind: ColumnKind) -> Any:
    """Look up the value that stands for a missing one of a kind."""
    return _BY_KIND[kind].none


def quarter_hours(times: Array) -> Array:
    """Compute the quarter of an hour that each time falls into."""
    out = np.full(len(times), NO_QUARTER_HOUR, np.int32)
    known = times != NO_INTEGER
    # Times beyond the range of 32 bits are outside of every calendar.
    out[known] = np.clip(times[known] // QUARTER_HOUR_US, NO_QUARTER_HOUR + 1, 2**31 - 1)
    return out
