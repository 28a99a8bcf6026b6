"""Pages with filters, counts and extents: rows are found in columns, then read one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from headgate.model.plan import PagePlan
from headgate.model.query import Count, Order
from headgate.model.rows import Extent, Page
from headgate.store.relational.catalog import Catalog
from headgate.store.relational.column_values import ColumnKind
from headgate.store.relational.columns.cache import ColumnCache
from headgate.store.relational.columns.selection import Selection, select
from headgate.store.relational.columns.specs import NO_INTEGER, Array, OwnColumn
from headgate.store.relational.database import Database
from headgate.store.relational.read.pages import PageKey, page, page_keys, place_of
from headgate.store.relational.read.scope import SqlScope, column_of, scope_of
from headgate.store.relational.row_numbers import RID_SHIFT


def needs_columns(plan: PagePlan) -> bool:
    """Say whether a page is better found in columns than by walking its stream's order."""
    return bool(plan.filters) or plan.count is not Count.NONE or plan.with_extent


def filtered_page(database: Database, catalog: Catalog, cache: ColumnCache, plan: PagePlan) -> Page:
    """Read a page whose rows are found in columns."""
    scope = scope_of(catalog, plan.reach, plan.filters)
    if scope is None:
        return page(database, catalog, plan)
    number = _sort_column(scope, plan)
    numbers = [OwnColumn.TIME] if number is None else [OwnColumn.TIME, number]
    selection = select(database, cache, scope, plan.reach, plan.filters, numbers)
    keys = None
    if plan.filters and number is not None:
        keys = _keys(database, catalog, selection, scope, plan, number)
    found = page(database, catalog, plan, keys)
    count = None if plan.count is Count.NONE else selection.count()
    extent = _extent(selection) if plan.with_extent else None
    return Page(found.records, found.next, count, extent, is_cut=found.is_cut, damaged=found.damaged)


def _sort_column(scope: SqlScope, plan: PagePlan) -> int | None:
    """Give the column that holds the order, if numbers do."""
    name = scope.stream.declaration.cursor_field
    if name is None or not plan.by_cursor_field:
        return None
    if name == scope.stream.time_field:
        return OwnColumn.TIME
    column = column_of(scope.stream, name)
    return None if column.kind in {ColumnKind.WORD, ColumnKind.HASH} else column.number


def _keys(
    database: Database, catalog: Catalog, selection: Selection, scope: SqlScope, plan: PagePlan, number: int
) -> list[PageKey]:
    wanted = plan.limit + 1
    found: list[PageKey] = []
    if plan.after is None or plan.after.sort is not None:
        found = _placed(database, catalog, selection, plan, number)
    if len(found) >= wanted:
        return found[:wanted]
    # Rows without a place in the order come last, and are few: they are found by walking.
    rest = page_keys(database, catalog, plan, scope) if _has_placeless(selection, number) else []
    return (found + [key for key in rest if key.sort is None])[:wanted]


def _has_placeless(selection: Selection, number: int) -> bool:
    return any(bool((~_known(values)).any()) for values in selection.values(number))


def _known(values: Array) -> Array:
    return ~np.isnan(values) if values.dtype.kind == "f" else values != NO_INTEGER


def _placed(
    database: Database, catalog: Catalog, selection: Selection, plan: PagePlan, number: int
) -> list[PageKey]:
    sorts, rids = _joined(selection, number)
    sign = -1 if plan.order is Order.DESC else 1
    if plan.after is not None:
        after: Any = plan.after.sort
        ahead = sorts <= after if plan.order is Order.DESC else sorts >= after
        sorts, rids = sorts[ahead], rids[ahead]
    chosen = _first(sorts * sign, plan.limit + 1, _ties(sorts, plan))
    keys = _page_keys(database, rids[chosen].tolist(), sorts[chosen].tolist())
    keys.sort(key=lambda key: (key.sort, key.record_id, key.sid), reverse=plan.order is Order.DESC)
    if plan.after is None:
        return keys
    after_sort = database.dialect.sort_value(plan.after.sort)
    place = (after_sort, plan.after.record_id, place_of(database, catalog, plan.after, plan))
    return [key for key in keys if _is_after(key, place, plan)]


def _joined(selection: Selection, number: int) -> tuple[Array, Array]:
    sorts: list[Array] = []
    rids: list[Array] = []
    for shelf, mask in zip(selection.shelves, selection.masks, strict=True):
        values = shelf.column(number)
        known = _known(values) if mask is None else mask & _known(values)
        places = np.flatnonzero(known)
        sorts.append(values[places])
        rids.append(places + ((shelf.sid << RID_SHIFT) + 1))
    return np.concatenate(sorts), np.concatenate(rids)


def _ties(sorts: Array, plan: PagePlan) -> int:
    """Count the rows that stand at the very place the page starts after: some of them are behind it."""
    if plan.after is None:
        return 0
    place: Any = plan.after.sort
    return int(np.count_nonzero(sorts == place))


def _first(places: Array, wanted: int, ties: int) -> Array:
    """Choose the first rows in order, and all that share the last one's place."""
    most = wanted + ties
    if len(places) <= most:
        return np.arange(len(places))
    last = np.partition(places, most - 1)[most - 1]
    return np.flatnonzero(places <= last)


def _page_keys(database: Database, rids: Sequence[int], sorts: Sequence[Any]) -> list[PageKey]:
    names = dict(database.all(database.sql["keys_by_number"], (msgspec.json.encode(rids).decode(),)))
    stored = map(database.dialect.sort_value, sorts)
    return [PageKey(rid, rid >> RID_SHIFT, names[rid], sort) for rid, sort in zip(rids, stored, strict=True)]


def _is_after(key: PageKey, place: Any, plan: PagePlan) -> bool:
    here: Any = (key.sort, key.record_id, key.sid)
    return here < place if plan.order is Order.DESC else here > place


def _extent(selection: Selection) -> Extent:
    known = [values[values != NO_INTEGER] for values in selection.values(OwnColumn.TIME)]
    ends = [(int(values.min()), int(values.max())) for values in known if len(values)]
    if not ends:
        return Extent(selection.count(), None, None)
    return Extent(selection.count(), min(first for first, _ in ends), max(last for _, last in ends))
