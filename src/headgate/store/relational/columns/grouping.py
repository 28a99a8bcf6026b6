"""Groups of rows: the number of each row's group, and a value for each group.

Counts by one key have a shorter way, in `aggregates`. Every other aggregate with groups is computed here, over the
rows of all connections together, so that a value does not depend on how many connections its records come from.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import ResourceLimit
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, TimeGroups
from headgate.model.query import Metric, Scalar
from headgate.model.rows import Aggregate, Group
from headgate.store.relational.catalog import Column
from headgate.store.relational.column_values import ColumnKind
from headgate.store.relational.columns.calendar import bucket_name, bucket_numbers
from headgate.store.relational.columns.selection import Selection
from headgate.store.relational.columns.specs import NO_INTEGER, Array
from headgate.store.relational.columns.sums import float_sums, integer_sums
from headgate.store.relational.columns.values import has_value, key_writer, shown, time_values
from headgate.store.relational.read.scope import column_of

#: Numbers that lie further apart than this are renumbered, so that a table with a place for each stays small.
_TABLE_MOST = 1 << 20

_Values = Sequence[int | float | None]


@dataclass(frozen=True, slots=True)
class _Gaps:
    """For each group, how many rows have no value of the field, and how many one that cannot be read."""

    missing: Array | None = None
    unreadable: Array | None = None

    def of(self, group: int) -> tuple[int, int]:
        if self.missing is None or self.unreadable is None:
            return 0, 0
        return int(self.missing[group]), int(self.unreadable[group])

    def total(self) -> tuple[int, int]:
        if self.missing is None or self.unreadable is None:
            return 0, 0
        return int(self.missing.sum()), int(self.unreadable.sum())


@dataclass(frozen=True, slots=True)
class _RowGroups:
    """The group of each row, a number below `size`, and what the answer says of a group."""

    numbers: Array
    size: int
    #: The keys of a group: a value, a bucket of time, or both in this order.
    keys: Callable[[int], tuple[Any, ...]]
    #: Sorts groups of the same rank; the group without a key is the last.
    order: Callable[[int], tuple[Any, ...]]


def aggregate_groups(selection: Selection, plan: AggregatePlan, total: int) -> Aggregate:
    """Compute a value for each group; the first groups, up to the plan's limit, are in the answer."""
    groups = _row_groups(selection, plan)
    counts = np.bincount(groups.numbers, minlength=groups.size)
    values, gaps = _values(selection, plan, groups, counts)
    filled: list[int] = np.flatnonzero(counts).tolist()
    if isinstance(plan.group_by, TimeGroups):
        chosen = sorted(filled, key=groups.order)[: plan.limit]
    else:
        ranks = [_rank(plan.metric, values[one]) for one in filled]
        chosen = _first(filled, ranks, groups, plan.limit)
    rows = tuple(
        _group(selection, plan, groups.keys(one), int(counts[one]), values[one], gaps.of(one))
        for one in chosen
    )
    others = total - sum(row.count for row in rows)
    return Aggregate(total, None, rows, others, *((None, None) if plan.field is None else gaps.total()))


def _rank(metric: Metric, value: float | None) -> int | float:
    """Give small numbers to groups that come first: large values, and for minima small ones.

    Sums count without their sign, since what was spent may be written as negative amounts.
    """
    if value is None:
        return math.inf
    if metric is Metric.SUM:
        return -abs(value)
    return value if metric is Metric.MIN else -value


def _first(filled: Sequence[int], ranks: Sequence[int | float], groups: _RowGroups, limit: int) -> list[int]:
    pairs = zip(ranks, filled, strict=True)
    if len(filled) > limit:
        # Rounding to a float keeps the order of ranks, so no group before the cut is lost.
        rough = np.array(ranks, np.float64)
        cut = np.partition(rough, limit - 1)[limit - 1]
        pairs = ((ranks[place], filled[place]) for place in np.flatnonzero(rough <= cut).tolist())
    ordered = sorted(pairs, key=lambda pair: (pair[0], groups.order(pair[1])))
    return [number for _, number in ordered[:limit]]


def _group(
    selection: Selection,
    plan: AggregatePlan,
    keys: tuple[Any, ...],
    count: int,
    value: float | None,
    gaps: tuple[int, int],
) -> Group:
    key, time = (*keys, None)[:2]
    written: Any = None if plan.field is None else value
    if plan.field is not None and plan.metric in {Metric.MIN, Metric.MAX} and value is not None:
        written = shown(selection.stream, plan.field, value)
    return Group(key, count, written, time, *gaps)


# The group of each row


def _row_groups(selection: Selection, plan: AggregatePlan) -> _RowGroups:
    assert plan.group_by is not None
    if isinstance(plan.group_by, TimeGroups):
        return _by_time(selection, plan.group_by)
    by_value = _by_value(selection, plan.group_by)
    return by_value if plan.then_by is None else _joined(by_value, _by_time(selection, plan.then_by))


def _by_value(selection: Selection, name: FieldName) -> _RowGroups:
    column = column_of(selection.stream, name)
    values = np.concatenate(selection.values(column.number))
    write = key_writer(selection, column, name)
    if column.kind is ColumnKind.WORD:
        return _RowGroups(
            values.astype(np.int64),
            len(selection.texts(column.number).texts),
            lambda number: (write(number),),
            lambda number: _sortable(write(number)),
        )
    found, numbers = np.unique(values, return_inverse=True, equal_nan=True)
    stored: list[Any] = found.tolist()
    return _RowGroups(
        numbers,
        len(stored),
        lambda number: (write(stored[number]),),
        lambda number: _sortable(write(stored[number])),
    )


def _sortable(key: Scalar | None) -> tuple[bool, Any]:
    return key is None, "" if key is None else key


def _by_time(selection: Selection, groups: TimeGroups) -> _RowGroups:
    times, quarters = (np.concatenate(arrays) for arrays in time_values(selection, groups))
    known = times != NO_INTEGER
    buckets = bucket_numbers(times[known], quarters[known], groups.granularity, groups.time_zone)
    found, places = _renumbered(buckets)
    numbers = np.full(len(times), len(found), np.int64)
    numbers[known] = places

    def name(number: int) -> str | None:
        return bucket_name(int(found[number]), groups.granularity) if number < len(found) else None

    return _RowGroups(numbers, len(found) + 1, lambda number: (name(number),), lambda number: (number,))


def _joined(by_value: _RowGroups, by_time: _RowGroups) -> _RowGroups:
    """Make a group of each pair of a value and a bucket."""
    found, numbers = _renumbered(by_value.numbers * by_time.size + by_time.numbers)

    def keys(number: int) -> tuple[Any, ...]:
        value, time = divmod(int(found[number]), by_time.size)
        return *by_value.keys(value), *by_time.keys(time)

    def order(number: int) -> tuple[Any, ...]:
        value, time = divmod(int(found[number]), by_time.size)
        return *by_time.order(time), *by_value.order(value)

    return _RowGroups(numbers, len(found), keys, order)


def _renumbered(numbers: Array) -> tuple[Array, Array]:
    """Give numbers in ascending order, all that occur among them, and the place of each row's number there."""
    if not len(numbers):
        return numbers, numbers
    first, last = int(numbers.min()), int(numbers.max())
    if last - first < _TABLE_MOST:
        return np.arange(first, last + 1), numbers - first
    return np.unique(numbers, return_inverse=True)


# The value of each group


def _values(
    selection: Selection, plan: AggregatePlan, groups: _RowGroups, counts: Array
) -> tuple[_Values, _Gaps]:
    """Compute the value of each group, and count the rows that have none to compute it from."""
    if plan.field is None:
        return counts.tolist(), _Gaps()
    column = column_of(selection.stream, plan.field)
    values, numbers = np.concatenate(selection.values(column.number)), groups.numbers
    known = has_value(column, values)
    gaps = _Gaps()
    if not known.all():
        gaps = _gaps(selection, plan.field, groups, ~known)
        values, numbers = values[known], numbers[known]
    return _metric(column, plan.metric, numbers, values, groups.size), gaps


def _gaps(selection: Selection, name: FieldName, groups: _RowGroups, without: Array) -> _Gaps:
    marked = np.concatenate(selection.unreadable(name))
    unreadable = np.bincount(groups.numbers[marked], minlength=groups.size)
    return _Gaps(np.bincount(groups.numbers[without], minlength=groups.size) - unreadable, unreadable)


def _metric(column: Column, metric: Metric, numbers: Array, values: Array, size: int) -> _Values:
    if metric is Metric.COUNT_DISTINCT:
        return _distinct(numbers, values, size)
    if metric is not Metric.SUM:
        return _ends(numbers, values, size, metric)
    if column.kind is not ColumnKind.NUMBER:
        return integer_sums(numbers, values, size)
    try:
        return float_sums(numbers, values, size)
    except OverflowError:
        raise ResourceLimit("The sum is larger than a number can be.") from None


def _distinct(numbers: Array, values: Array, size: int) -> list[int]:
    found, places = np.unique(values, return_inverse=True)
    step = max(1, len(found))
    pairs = np.unique(numbers * step + places)
    return np.bincount(pairs // step, minlength=size).tolist()


def _ends(numbers: Array, values: Array, size: int, metric: Metric) -> _Values:
    if not len(values):
        return [None] * size
    if metric is Metric.MIN:
        ends = np.full(size, values.max())
        np.minimum.at(ends, numbers, values)
    else:
        ends = np.full(size, values.min())
        np.maximum.at(ends, numbers, values)
    filled = np.bincount(numbers, minlength=size).tolist()
    return [end if count else None for end, count in zip(ends.tolist(), filled, strict=True)]
