"""Values of columns: which rows have one, and how an answer writes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.instants import DAY_US, iso
from headgate.model.plan import TimeGroups
from headgate.model.query import Scalar
from headgate.store.relational.catalog import Column, StreamTable
from headgate.store.relational.column_values import ColumnKind
from headgate.store.relational.columns.selection import Selection
from headgate.store.relational.columns.specs import NO_INTEGER, Array, OwnColumn, missing_value, quarter_hours
from headgate.store.relational.read.scope import column_of

_DATE_CHARS = 10


def has_value(column: Column, values: Array) -> Array:
    """Mark the rows that have a value."""
    if column.kind is ColumnKind.NUMBER:
        return ~np.isnan(values)
    return values != missing_value(column.kind)


def key_writer(selection: Selection, column: Column, name: FieldName) -> Callable[[Any], Scalar | None]:
    """Give the function that writes a stored value as the key of a group."""
    if column.kind is ColumnKind.WORD:
        return selection.texts(column.number).texts.__getitem__
    if column.kind is ColumnKind.BOOLEAN:
        return lambda key: None if key < 0 else bool(key)
    if column.kind is ColumnKind.NUMBER:
        return lambda key: None if math.isnan(key) else shown(selection.stream, name, key)
    return lambda key: None if key == NO_INTEGER else shown(selection.stream, name, key)


def shown(stream: StreamTable, name: FieldName, value: Any) -> Any:
    """Write a value the way its field does."""
    kind = stream.declaration.fields[name].kind
    if kind is FieldKind.NUMBER:
        # Turn -0.0 into 0.0: which of the two came first would show.
        return float(value) + 0.0
    if not kind.is_time:
        return value
    text = iso(value)
    return text[:_DATE_CHARS] if kind is FieldKind.DATE and value % DAY_US == 0 else text


def time_values(selection: Selection, groups: TimeGroups) -> tuple[Sequence[Array], Sequence[Array]]:
    """Give the times that records are grouped by, and the quarter hours of these."""
    if groups.field == selection.stream.time_field:
        return selection.values(OwnColumn.TIME), selection.values(OwnColumn.QUARTER_HOUR)
    times = selection.values(column_of(selection.stream, groups.field).number)
    return times, [quarter_hours(array) for array in times]
