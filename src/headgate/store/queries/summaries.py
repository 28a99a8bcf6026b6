"""How much each connection holds of a stream, as far as a reach goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from headgate.model.ids import FieldName
from headgate.model.plan import Reach
from headgate.model.rows import ShelfSummary
from headgate.store.format.records import ANY_FIELD
from headgate.store.format.streams import StreamTable
from headgate.store.queries.scope import SqlScope, column_of, scope_of, visible_rows
from headgate.store.sql.catalog import Catalog, ReachCount
from headgate.store.sql.database import Database


class _ShelfCount(NamedTuple):
    live: int
    updated_at: int | None
    #: The number of the last change.
    seq: int


def summaries(database: Database, catalog: Catalog, reaches: Sequence[Reach]) -> tuple[ShelfSummary, ...]:
    """Count the visible records of each stream of each connection; 0 where a connection has no such stream."""
    rows = database.all(database.sql["shelf_totals"])
    counts = {sid: _ShelfCount(*rest) for sid, *rest in rows}
    return tuple(
        _summary(database, catalog, replace(reach, connection_ids=(connection_id,), fields=()), counts)
        for reach in reaches
        for connection_id in reach.connection_ids
    )


def _summary(
    database: Database, catalog: Catalog, reach: Reach, counts: Mapping[int, _ShelfCount]
) -> ShelfSummary:
    scope = scope_of(catalog, reach)
    (connection_id,) = reach.connection_ids
    if scope is None:
        return ShelfSummary(connection_id, reach.stream, 0, None)
    stored = [counts[shelf.sid] for shelf in scope.shelves]
    # Counted again only after something has changed there.
    state = tuple(count_of_shelf.seq for count_of_shelf in stored)
    remembered = catalog.memo.counts.get(reach)
    if remembered is None or remembered[0] != state:
        counted = _whole(database, scope, reach) if scope.is_whole else _part(database, scope, reach)
        remembered = catalog.memo.counts.remember(reach, (state, counted))
    count, span, emitted_at = remembered[1]
    if not scope.is_whole:
        # The time of the last change may be that of a hidden record: a client that sees a part must not learn it.
        return ShelfSummary(connection_id, reach.stream, count, None, span, emitted_at)
    times = (count_of_shelf.updated_at for count_of_shelf in stored)
    updated_at = max((time for time in times if time is not None), default=None)
    if reach.visible is not None:
        updated_at = _dated(database, scope.shelves[0].sid, scope.stream, reach.visible)
    live = sum(count_of_shelf.live for count_of_shelf in stored)
    return ShelfSummary(connection_id, reach.stream, live, updated_at, span, updated_at)


def _ordered_time(stream: StreamTable, reach: Reach) -> FieldName | None:
    """Return the time field of a stream, if records are ordered by it and the reach shows it."""
    name = stream.time_field
    is_shown = name is not None and (reach.visible is None or name in reach.visible)
    return name if is_shown and stream.declaration.cursor_field == name else None


def _whole(database: Database, scope: SqlScope, reach: Reach) -> ReachCount:
    """Find the ends of whole shelves in the index of their order; how many records they hold is known."""
    if _ordered_time(scope.stream, reach) is None:
        return 0, None, None
    ends = [
        scope.dialect.shown_sort(end)
        for shelf in scope.shelves
        for statement in ("oldest_sort", "newest_sort")
        for (end,) in database.all(database.sql[statement], (shelf.sid,))
    ]
    known = [end for end in ends if isinstance(end, int)]
    return 0, (min(known), max(known)) if known else None, None


def _part(database: Database, scope: SqlScope, reach: Reach) -> ReachCount:
    """Count the visible records of shelves, and find the times that they span."""
    name = _ordered_time(scope.stream, reach)
    rows = visible_rows(scope, reach, with_typed=False)
    ends, emitted = "NULL, NULL", "NULL"
    if rows.has_records:
        # What records hold themselves needs no other table.
        ends, emitted = "min(r.ts), max(r.ts)" if name is not None else ends, "max(r.emitted_at)"
    elif name is not None:
        time = scope.dialect.typed_column(column_of(scope.stream, name))
        ends = f"min({time}), max({time})"
    select = f"count(*), {ends}, {emitted}"
    sql = database.sql["aggregate"].format(select=select, rows=rows.sql, groups="")
    ((count, first, last, emitted_at),) = database.all(sql, rows.values)
    return count, None if first is None else (first, last), emitted_at


def _dated(database: Database, sid: int, stream: StreamTable, visible: Sequence[FieldName]) -> int | None:
    """Return when a record came or went, or one of these fields changed: changes of other fields do not count."""
    fids = [ANY_FIELD, *(stream.fids[name] for name in visible if name in stream.fids)]
    at: int | None = database.value(database.sql["shelf_dated"], (sid, msgspec.json.encode(fids).decode()))
    return at
