"""Summaries: how much each shelf holds, as far as somebody may see."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.model.plan import Reach
from headgate.model.rows import ShelfSummary
from headgate.store.sqlite.aggregates import select
from headgate.store.sqlite.catalog import Catalog, Shelf
from headgate.store.sqlite.columns import ColumnCache
from headgate.store.sqlite.connection import Database
from headgate.store.sqlite.scope import scope_of


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
