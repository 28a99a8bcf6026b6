"""Aggregates: exact numbers over columns, whatever number of connections they come from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.errors import ResourceLimit
from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.instants import iso
from headgate.model.plan import AggregatePlan, Reach, TimeGroups
from headgate.model.query import ExactFilter, Filter, Metric, Scalar
from headgate.model.rows import Aggregate, Group, ShelfSummary
from headgate.store.sqlite.catalog import Catalog, Column, ColumnKind, Shelf, StreamTable
from headgate.store.sqlite.columns.cache import (
    LIVE,
    NO_INTEGER,
    QUARTER,
    TIME,
    Array,
    ColumnCache,
    ShelfColumns,
    quarters,
)
from headgate.store.sqlite.columns.calendar import bucket_name, count_buckets
from headgate.store.sqlite.columns.sums import float_sum, integer_sum
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.read.scope import Scope, bindable, column_of, scope_of
from headgate.store.sqlite.row_numbers import RID_SHIFT
from headgate.store.sqlite.write.derive import text_hash

_DATE_CHARS = 10
_DAY_US = 86_400_000_000
_COMPARE: dict[str, Callable[[Array, Any], Array]] = {
    "gte": np.greater_equal,
    "gt": np.greater,
    "lte": np.less_equal,
    "lt": np.less,
}


@dataclass(frozen=True, slots=True)
class Selection:
    """The columns of a scope's shelves, and which rows of each are in it; None means every row."""

    stream: StreamTable
    cache: ColumnCache
    shelves: Sequence[ShelfColumns]
    masks: Sequence[Array | None]

    def values(self, number: int) -> list[Array]:
        """Give a column's values in the selection, shelf by shelf."""
        pairs = zip(self.shelves, self.masks, strict=True)
        return [shelf.column(number) if mask is None else shelf.column(number)[mask] for shelf, mask in pairs]

    def count(self) -> int:
        """Count the rows."""
        pairs = zip(self.shelves, self.masks, strict=True)
        return sum(shelf.rows if mask is None else int(np.count_nonzero(mask)) for shelf, mask in pairs)


def aggregate(database: Database, catalog: Catalog, cache: ColumnCache, plan: AggregatePlan) -> Aggregate:
    """Compute what the plan asks for."""
    scope = scope_of(catalog, plan.reach, plan.filters)
    if scope is None:
        return _nothing(plan)
    if plan.metric is Metric.COUNT and plan.group_by is None and scope.is_whole:
        total = database.value(f"SELECT coalesce(sum(live), 0) FROM shelf WHERE sid IN ({scope.sids})")
        return Aggregate(total, total)
    selection = select(database, cache, scope, plan.reach, plan.filters, _needed(scope.stream, plan))
    total = selection.count()
    if isinstance(plan.group_by, TimeGroups):
        return _by_time(selection, plan.group_by, total, plan.limit)
    if plan.group_by is not None:
        return _by_value(selection, plan.group_by, total, plan.limit)
    if plan.metric is Metric.COUNT:
        return Aggregate(total, total)
    assert plan.field is not None
    return Aggregate(total, _metric(selection, plan.metric, plan.field))


def _nothing(plan: AggregatePlan) -> Aggregate:
    if plan.group_by is not None:
        return Aggregate(0, None, ())
    return Aggregate(0, 0 if plan.metric in {Metric.COUNT, Metric.COUNT_DISTINCT, Metric.SUM} else None)


def _needed(stream: StreamTable, plan: AggregatePlan) -> list[int]:
    if isinstance(plan.group_by, TimeGroups):
        numbers = _time_numbers(stream, plan.group_by)
        return [*numbers]
    fields = [field for field in (plan.field, plan.group_by) if field is not None]
    return [column_of(stream, field).number for field in fields]


def _time_numbers(stream: StreamTable, groups: TimeGroups) -> tuple[int, ...]:
    if groups.field == stream.time_field:
        return TIME, QUARTER
    return (column_of(stream, groups.field).number,)


# Selecting


def select(
    database: Database,
    cache: ColumnCache,
    scope: Scope,
    reach: Reach,
    filters: Sequence[Filter],
    numbers: Sequence[int],
) -> Selection:
    """Find the rows of a scope."""
    stream = scope.stream
    wanted = [*numbers, *(column_of(stream, one.field).number for one in filters)]
    shelves = cache.get(database, stream, scope.shelves, wanted)
    masks = [_mask(cache, stream, shelf, reach, filters) for shelf in shelves]
    selection = Selection(stream, cache, shelves, masks)
    unsure = [one for one in filters if isinstance(one, ExactFilter) and _is_hash(stream, one)]
    if unsure or reach.resources is not None:
        masks = [
            _verified(database, shelf, mask, unsure, reach)
            for shelf, mask in zip(shelves, selection.masks, strict=True)
        ]
    return Selection(stream, cache, shelves, masks)


def _is_hash(stream: StreamTable, one: Filter) -> bool:
    return column_of(stream, one.field).kind is ColumnKind.HASH


def _mask(
    cache: ColumnCache, stream: StreamTable, shelf: ShelfColumns, reach: Reach, filters: Sequence[Filter]
) -> Array | None:
    parts = [shelf.column(LIVE)] if shelf.dead else []
    parts += [_passes(cache, stream, shelf, one) for one in filters]
    if reach.time is not None:
        times = shelf.column(TIME)
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
    # The number that stands for 'none' is smaller than all others, and must not pass for one of them.
    return passes if column.kind is ColumnKind.NUMBER else passes & (values != NO_INTEGER)


def _stored_value(cache: ColumnCache, stream: StreamTable, column: Column, value: Scalar) -> Any:
    if column.kind is ColumnKind.WORD:
        return np.uint32(cache.words(stream, column.number).numbers.get(str(value), 2**32 - 1))
    if column.kind is ColumnKind.HASH:
        return text_hash(str(value))
    return bindable(value)


def _verified(
    database: Database, shelf: ShelfColumns, mask: Array | None, unsure: Sequence[ExactFilter], reach: Reach
) -> Array:
    """Keep only rows whose key and very text fit: a checksum alone may lie."""
    places = np.flatnonzero(mask) if mask is not None else np.arange(shelf.rows)
    sure = np.zeros(shelf.rows, np.bool_)
    conditions = "".join(" AND field_text(body, ?) = ?" for _ in unsure)
    values = [value for one in unsure for value in (one.field, str(one.value))]
    for place in places.tolist():
        row = database.one(
            f"SELECT record_id FROM record WHERE rid = ?{conditions}",
            (shelf.sid << RID_SHIFT | place + 1, *values),
        )
        sure[place] = row is not None and (reach.resources is None or row[0] in reach.resources)
    return sure


# Numbers


def _metric(selection: Selection, metric: Metric, name: FieldName) -> int | float | str | None:
    column = column_of(selection.stream, name)
    known = [_known(column, values) for values in selection.values(column.number)]
    if metric is Metric.COUNT_DISTINCT:
        return len(np.unique(np.concatenate(known))) if known else 0
    if metric is Metric.SUM:
        if column.kind is ColumnKind.NUMBER:
            return _number_sum(known)
        return sum(integer_sum(values) for values in known)
    ends = [
        (values.min() if metric is Metric.MIN else values.max()).item() for values in known if len(values)
    ]
    if not ends:
        return None
    end = min(ends) if metric is Metric.MIN else max(ends)
    return _shown(selection.stream, name, end)


def _number_sum(arrays: Sequence[Array]) -> float:
    try:
        return float_sum(arrays)
    except OverflowError:
        raise ResourceLimit("The sum is larger than a number can be.") from None


def _known(column: Column, values: Array) -> Array:
    """Leave out rows that have no value."""
    if column.kind is ColumnKind.NUMBER:
        return values[~np.isnan(values)]
    none = {ColumnKind.WORD: 0, ColumnKind.BOOLEAN: -1}.get(column.kind, NO_INTEGER)
    return values[values != none]


# Groups


def _by_value(selection: Selection, name: FieldName, total: int, limit: int) -> Aggregate:
    column = column_of(selection.stream, name)
    keys, counts = _counts(selection, column)
    key_of = _key_of(selection, column, name)
    cut = np.partition(counts, len(counts) - limit)[len(counts) - limit] if len(counts) > limit else 0
    rows = [
        (count, key_of(key))
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
        if count >= cut and count
    ]
    rows.sort(key=lambda row: (-row[0], row[1] is None, _sortable(row[1])))
    groups = tuple(Group(key, count) for count, key in rows[:limit])
    return Aggregate(total, None, groups, total - sum(group.count for group in groups))


def _counts(selection: Selection, column: Column) -> tuple[Array, Array]:
    arrays = selection.values(column.number)
    if column.kind is ColumnKind.WORD:
        size = len(selection.cache.words(selection.stream, column.number).names)
        counts = np.zeros(size, np.int64)
        for array in arrays:
            counts += np.bincount(array, minlength=size)
        return np.arange(size), counts
    return np.unique(np.concatenate(arrays), return_counts=True, equal_nan=True)


def _key_of(selection: Selection, column: Column, name: FieldName) -> Callable[[Any], Scalar | None]:
    if column.kind is ColumnKind.WORD:
        return selection.cache.words(selection.stream, column.number).names.__getitem__
    if column.kind is ColumnKind.BOOLEAN:
        return lambda key: None if key < 0 else bool(key)
    if column.kind is ColumnKind.NUMBER:
        return lambda key: None if math.isnan(key) else _shown(selection.stream, name, key)
    return lambda key: None if key == NO_INTEGER else _shown(selection.stream, name, key)


def _shown(stream: StreamTable, name: FieldName, value: Any) -> Any:
    """Write a value the way its field does."""
    kind = stream.declaration.fields[name].kind
    if kind is FieldKind.NUMBER:
        # There are two zeros, and which of them comes first is chance.
        return float(value) + 0.0
    if not kind.is_time:
        return value
    text = iso(value)
    return text[:_DATE_CHARS] if kind is FieldKind.DATE and value % _DAY_US == 0 else text


def _sortable(key: Scalar | None) -> Any:
    return "" if key is None else key


def _by_time(selection: Selection, groups: TimeGroups, total: int, limit: int) -> Aggregate:
    if groups.field == selection.stream.time_field:
        times, steps = selection.values(TIME), selection.values(QUARTER)
    else:
        times = selection.values(column_of(selection.stream, groups.field).number)
        steps = [quarters(array) for array in times]
    known = [array != NO_INTEGER for array in times]
    times, steps = _where(times, known), _where(steps, known)
    found = count_buckets(times, steps, groups.granularity, groups.time_zone)
    first = sorted(found)[:limit]
    shown = [Group(bucket_name(number, groups.granularity), found[number]) for number in first]
    missing = total - sum(found.values())
    if missing and len(shown) < limit:
        shown.append(Group(None, missing))
    return Aggregate(total, None, tuple(shown), total - sum(group.count for group in shown))


def _where(arrays: Sequence[Array], masks: Sequence[Array]) -> list[Array]:
    return [array if mask.all() else array[mask] for array, mask in zip(arrays, masks, strict=True)]


def summaries(
    database: Database, catalog: Catalog, cache: ColumnCache, reaches: Sequence[Reach]
) -> tuple[ShelfSummary, ...]:
    """Count what each connection holds; one that holds nothing of a stream counts nothing."""
    heads = {sid: (live, at) for sid, live, at in database.all("SELECT sid, live, updated_at FROM shelf")}
    return tuple(
        _summary(
            database,
            catalog,
            cache,
            Reach(reach.stream, (connection_id,), (), reach.time, reach.resources),
            heads,
        )
        for reach in reaches
        for connection_id in reach.connection_ids
    )


def _summary(
    database: Database,
    catalog: Catalog,
    cache: ColumnCache,
    reach: Reach,
    heads: dict[int, tuple[int, int | None]],
) -> ShelfSummary:
    scope = scope_of(catalog, reach)
    (connection_id,) = reach.connection_ids
    if scope is None:
        return ShelfSummary(connection_id, reach.stream, 0, None)
    shelf: Shelf = scope.shelves[0]
    live, updated_at = heads[shelf.sid]
    if scope.is_whole:
        return ShelfSummary(connection_id, reach.stream, live, updated_at)
    count = select(database, cache, scope, reach, (), ()).count()
    # When hidden records came in is no business of somebody who sees only a part.
    return ShelfSummary(connection_id, reach.stream, count, None)
