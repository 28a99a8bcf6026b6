"""Select rows of columns: those that are live, within a reach, and pass the filters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.model.ids import FieldName
from headgate.model.plan import Reach
from headgate.model.query import ExactFilter, Filter, Scalar
from headgate.store.relational.catalog import Column, StreamTable
from headgate.store.relational.column_values import ColumnKind, text_hash
from headgate.store.relational.columns.blocks import TextNumbers
from headgate.store.relational.columns.cache import ColumnCache, ShelfColumns
from headgate.store.relational.columns.specs import NO_INTEGER, Array, OwnColumn
from headgate.store.relational.database import Database
from headgate.store.relational.read.scope import SqlScope, bindable, column_of
from headgate.store.relational.row_numbers import RID_SHIFT

#: Equals no text's number: a filter for a text that the column does not have selects nothing.
_UNKNOWN_TEXT = 2**32 - 1
_COMPARE: dict[str, Callable[[Array, Any], Array]] = {
    "gte": np.greater_equal,
    "gt": np.greater,
    "lte": np.less_equal,
    "lt": np.less,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns of a scope's shelves, and a mask of the selected rows for each; None selects every row."""

    stream: StreamTable
    database: Database
    cache: ColumnCache
    shelves: Sequence[ShelfColumns]
    masks: Sequence[Array | None]

    def values(self, number: int) -> list[Array]:
        """Give a column's selected values, shelf by shelf."""
        pairs = zip(self.shelves, self.masks, strict=True)
        return [shelf.column(number) if mask is None else shelf.column(number)[mask] for shelf, mask in pairs]

    def texts(self, number: int) -> TextNumbers:
        """Give the numbers that stand for the texts of a column."""
        return self.cache.texts(self.stream, number)

    def unreadable(self, name: FieldName) -> list[Array]:
        """Mark the selected rows whose value of a field cannot be read as its type, shelf by shelf."""
        marks = [_unreadable(self.database, shelf, self.stream.fids[name]) for shelf in self.shelves]
        pairs = zip(marks, self.masks, strict=True)
        return [rows if mask is None else rows[mask] for rows, mask in pairs]

    def count(self) -> int:
        """Count the selected rows."""
        pairs = zip(self.shelves, self.masks, strict=True)
        return sum(shelf.rows if mask is None else int(np.count_nonzero(mask)) for shelf, mask in pairs)


def select(
    database: Database,
    cache: ColumnCache,
    scope: SqlScope,
    reach: Reach,
    filters: Sequence[Filter],
    numbers: Sequence[int],
) -> Selection:
    """Select the rows of a scope; the columns of these numbers are loaded along with those of the filters."""
    stream = scope.stream
    wanted = [*numbers, *(column_of(stream, one.field).number for one in filters)]
    shelves = cache.get(database, stream, scope.shelves, wanted)
    masks = [_mask(cache, stream, shelf, reach, filters) for shelf in shelves]
    hashed = [one for one in filters if isinstance(one, ExactFilter) and _is_hash(stream, one)]
    if hashed or reach.resources is not None:
        masks = [
            _verified(database, shelf, mask, hashed, reach)
            for shelf, mask in zip(shelves, masks, strict=True)
        ]
    return Selection(stream, database, cache, shelves, masks)


def _unreadable(database: Database, shelf: ShelfColumns, fid: int) -> Array:
    marked = np.zeros(shelf.rows, np.bool_)
    first = shelf.sid << RID_SHIFT
    rows = database.all(database.sql["unreadable_rows"], (first, first + shelf.rows, fid))
    marked[[rid - first - 1 for (rid,) in rows]] = True
    return marked


def _is_hash(stream: StreamTable, one: Filter) -> bool:
    return column_of(stream, one.field).kind is ColumnKind.HASH


def _mask(
    cache: ColumnCache, stream: StreamTable, shelf: ShelfColumns, reach: Reach, filters: Sequence[Filter]
) -> Array | None:
    live = shelf.column(OwnColumn.LIVE)
    parts = [] if live.all() else [live]
    parts += [_passes(cache, stream, shelf, one) for one in filters]
    if reach.time is not None:
        times = shelf.column(OwnColumn.TIME)
        parts.append(times != NO_INTEGER)
        parts += [times >= reach.time.since] if reach.time.since is not None else []
        parts += [times < reach.time.until] if reach.time.until is not None else []
    if not parts:
        return None
    mask = parts[0].copy()
    for part in parts[1:]:
        mask &= part
    return mask


def _passes(cache: ColumnCache, stream: StreamTable, shelf: ShelfColumns, one: Filter) -> Array:
    column = column_of(stream, one.field)
    values = shelf.column(column.number)
    if isinstance(one, ExactFilter):
        return values == _stored_value(cache, stream, column, one.value)
    passes = _COMPARE[one.operator](values, bindable(one.value))
    # A missing integer is the smallest number there is, and must not pass for one. A missing number is NaN,
    # which passes no comparison.
    return passes if column.kind is ColumnKind.NUMBER else passes & (values != NO_INTEGER)


def _stored_value(cache: ColumnCache, stream: StreamTable, column: Column, value: Scalar) -> Any:
    if column.kind is ColumnKind.WORD:
        return np.uint32(cache.texts(stream, column.number).numbers.get(str(value), _UNKNOWN_TEXT))
    if column.kind is ColumnKind.HASH:
        return text_hash(str(value))
    return bindable(value)


def _verified(
    database: Database, shelf: ShelfColumns, mask: Array | None, hashed: Sequence[ExactFilter], reach: Reach
) -> Array:
    """Keep the rows whose record id is in reach and whose text equals: different texts may share a checksum."""
    places = np.flatnonzero(mask) if mask is not None else np.arange(shelf.rows)
    sure = np.zeros(shelf.rows, np.bool_)
    conditions = f" AND {database.sql['text_of_field']}" * len(hashed)
    values = [value for one in hashed for value in (one.field, str(one.value))]
    for place in places.tolist():
        row = database.one(
            database.sql["verified_key"].format(conditions=conditions),
            (shelf.sid << RID_SHIFT | place + 1, *values),
        )
        sure[place] = row is not None and (reach.resources is None or row[0] in reach.resources)
    return sure
