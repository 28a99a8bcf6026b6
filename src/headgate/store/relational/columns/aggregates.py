"""Aggregates: exact numbers over columns, whatever number of connections they come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import replace

from headgate.errors import ResourceLimit
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.plan import AggregatePlan, Reach, TimeGroups
from headgate.model.query import Metric
from headgate.model.rows import Aggregate, Group, ShelfSummary
from headgate.store.relational.catalog import Catalog, Column, StreamTable
from headgate.store.relational.column_values import ColumnKind
from headgate.store.relational.columns.cache import ColumnCache
from headgate.store.relational.columns.calendar import bucket_name, count_buckets
from headgate.store.relational.columns.grouping import aggregate_groups
from headgate.store.relational.columns.selection import Selection, select
from headgate.store.relational.columns.specs import NO_INTEGER, Array, OwnColumn
from headgate.store.relational.columns.sums import float_sum, integer_sum
from headgate.store.relational.columns.values import has_value, key_writer, shown, time_values
from headgate.store.relational.database import Database
from headgate.store.relational.read.scope import column_of, scope_of
from headgate.store.relational.write.change_marks import ANY_FIELD


def aggregate(database: Database, catalog: Catalog, cache: ColumnCache, plan: AggregatePlan) -> Aggregate:
    """Compute what the plan asks for."""
    scope = scope_of(catalog, plan.reach, plan.filters)
    if scope is None:
        return _of_nothing(plan)
    if plan.metric is Metric.COUNT and plan.group_by is None and scope.is_whole:
        total = database.value(database.sql["live_of_shelves"].format(sids=scope.sids))
        return Aggregate(total, total)
    selection = select(database, cache, scope, plan.reach, plan.filters, _needed(scope.stream, plan))
    total = selection.count()
    if plan.group_by is not None:
        return _grouped(selection, plan, plan.group_by, total)
    if plan.field is None:
        return Aggregate(total, total)
    return _metric(selection, plan.metric, plan.field, total)


def _of_nothing(plan: AggregatePlan) -> Aggregate:
    none = None if plan.field is None else 0
    if plan.group_by is not None:
        return Aggregate(0, None, (), 0, none, none)
    value = 0 if plan.metric in {Metric.COUNT, Metric.COUNT_DISTINCT, Metric.SUM} else None
    return Aggregate(0, value, missing_count=none, unreadable_count=none)


def _needed(stream: StreamTable, plan: AggregatePlan) -> Sequence[int]:
    numbers: list[int] = []
    for key in (plan.field, plan.group_by, plan.then_by):
        if isinstance(key, TimeGroups):
            numbers += _time_columns(stream, key)
        elif key is not None:
            numbers.append(column_of(stream, key).number)
    return numbers


def _time_columns(stream: StreamTable, groups: TimeGroups) -> Sequence[int]:
    if groups.field == stream.time_field:
        return OwnColumn.TIME, OwnColumn.QUARTER_HOUR
    return (column_of(stream, groups.field).number,)


# One number


def _metric(selection: Selection, metric: Metric, name: FieldName, total: int) -> Aggregate:
    column = column_of(selection.stream, name)
    known = [values[has_value(column, values)] for values in selection.values(column.number)]
    value = _value(column, metric, known)
    if metric in {Metric.MIN, Metric.MAX} and value is not None:
        value = shown(selection.stream, name, value)
    without = total - sum(len(values) for values in known)
    unreadable = sum(int(marked.sum()) for marked in selection.unreadable(name)) if without else 0
    return Aggregate(total, value, missing_count=without - unreadable, unreadable_count=unreadable)


def _value(column: Column, metric: Metric, known: Sequence[Array]) -> Any:
    if metric is Metric.COUNT_DISTINCT:
        return len(np.unique(np.concatenate(known))) if known else 0
    if metric is Metric.SUM:
        if column.kind is ColumnKind.NUMBER:
            return _number_sum(known)
        return sum(integer_sum(values) for values in known)
    if metric is Metric.MIN:
        return min((values.min().item() for values in known if len(values)), default=None)
    return max((values.max().item() for values in known if len(values)), default=None)


def _number_sum(arrays: Sequence[Array]) -> float:
    try:
        return float_sum(arrays)
    except OverflowError:
        raise ResourceLimit("The sum is larger than a number can be.") from None


# Groups


def _grouped(
    selection: Selection, plan: AggregatePlan, group_by: FieldName | TimeGroups, total: int
) -> Aggregate:
    if plan.metric is not Metric.COUNT or plan.then_by is not None:
        return aggregate_groups(selection, plan, total)
    if isinstance(group_by, TimeGroups):
        return _by_time(selection, group_by, total, plan.limit)
    return _by_value(selection, group_by, total, plan.limit)


def _by_value(selection: Selection, name: FieldName, total: int, limit: int) -> Aggregate:
    column = column_of(selection.stream, name)
    keys, counts = _counts(selection, column)
    key_of = key_writer(selection, column, name)
    cut = np.partition(counts, len(counts) - limit)[len(counts) - limit] if len(counts) > limit else 0
    groups = [
        Group(key_of(key), count)
        for key, count in zip(keys.tolist(), counts.tolist(), strict=True)
        if count >= cut and count
    ]
    groups.sort(key=_largest_first)
    shown = tuple(groups[:limit])
    return Aggregate(total, None, shown, total - sum(group.count for group in shown))


def _largest_first(group: Group) -> tuple[int, bool, Any]:
    return -group.count, group.key is None, "" if group.key is None else group.key


def _counts(selection: Selection, column: Column) -> tuple[Array, Array]:
    arrays = selection.values(column.number)
    if column.kind is ColumnKind.WORD:
        size = len(selection.texts(column.number).texts)
        counts = np.zeros(size, np.int64)
        for array in arrays:
            counts += np.bincount(array, minlength=size)
        return np.arange(size), counts
    return np.unique(np.concatenate(arrays), return_counts=True, equal_nan=True)


def _by_time(selection: Selection, groups: TimeGroups, total: int, limit: int) -> Aggregate:
    times, steps = time_values(selection, groups)
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


# How much each connection holds


class _ShelfCount(NamedTuple):
    live: int
    updated_at: int | None


def summaries(
    database: Database, catalog: Catalog, cache: ColumnCache, reaches: Sequence[Reach]
) -> tuple[ShelfSummary, ...]:
    """Count the visible records of each stream of each connection; 0 where a connection has no such stream."""
    rows = database.all(database.sql["shelf_totals"])
    counts = {sid: _ShelfCount(*rest) for sid, *rest in rows}
    return tuple(
        _summary(database, catalog, cache, _one_connection(reach, connection_id), counts)
        for reach in reaches
        for connection_id in reach.connection_ids
    )


def _one_connection(reach: Reach, connection_id: ConnectionId) -> Reach:
    return replace(reach, connection_ids=(connection_id,), fields=())


def _summary(
    database: Database, catalog: Catalog, cache: ColumnCache, reach: Reach, counts: Mapping[int, _ShelfCount]
) -> ShelfSummary:
    scope = scope_of(catalog, reach)
    (connection_id,) = reach.connection_ids
    if scope is None:
        return ShelfSummary(connection_id, reach.stream, 0, None)
    if scope.is_whole:
        found = [counts[shelf.sid] for shelf in scope.shelves]
        if reach.visible is None:
            updated_at = max((one.updated_at for one in found if one.updated_at is not None), default=None)
        else:
            updated_at = _dated(database, scope.shelves[0].sid, scope.stream, reach.visible)
        return ShelfSummary(connection_id, reach.stream, sum(one.live for one in found), updated_at)
    count = select(database, cache, scope, reach, (), ()).count()
    # The time of the last change may be that of a hidden record: a client that sees a part must not learn it.
    return ShelfSummary(connection_id, reach.stream, count, None)


def _dated(database: Database, sid: int, stream: StreamTable, visible: Sequence[FieldName]) -> int | None:
    """Give when a record came or went, or one of these fields changed: changes of other fields do not count."""
    fids = [ANY_FIELD, *(stream.fids[name] for name in visible if name in stream.fids)]
    at: int | None = database.value(database.sql["shelf_dated"], (sid, msgspec.json.encode(fids).decode()))
    return at
