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
from headgate.store.queries.aggregates import count_rows
from headgate.store.queries.scope import scope_of, visible_rows
from headgate.store.sql.catalog import Catalog
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
    if scope.is_whole:
        if reach.visible is None:
            updated_at = max(
                (
                    count_of_shelf.updated_at
                    for count_of_shelf in stored
                    if count_of_shelf.updated_at is not None
                ),
                default=None,
            )
        else:
            updated_at = _dated(database, scope.shelves[0].sid, scope.stream, reach.visible)
        return ShelfSummary(
            connection_id, reach.stream, sum(count_of_shelf.live for count_of_shelf in stored), updated_at
        )
    # Counted again only after something has changed there.
    state = tuple(count_of_shelf.seq for count_of_shelf in stored)
    known = catalog.memo.counts.get(reach)
    if known is None or known[0] != state:
        count = count_rows(database, visible_rows(scope, reach, with_typed=False))
        known = catalog.memo.counts.remember(reach, (state, count))
    # The time of the last change may be that of a hidden record: a client that sees a part must not learn it.
    return ShelfSummary(connection_id, reach.stream, known[1], None)


def _dated(database: Database, sid: int, stream: StreamTable, visible: Sequence[FieldName]) -> int | None:
    """Return when a record came or went, or one of these fields changed: changes of other fields do not count."""
    fids = [ANY_FIELD, *(stream.fids[name] for name in visible if name in stream.fids)]
    at: int | None = database.value(database.sql["shelf_dated"], (sid, msgspec.json.encode(fids).decode()))
    return at
