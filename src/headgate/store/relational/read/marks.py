"""List the records that are stored although they break their stream's schema."""

from __future__ import annotations

from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.rows import MarkedRecord, MarkedRecords, RecordProblem
from headgate.store.relational.catalog import Catalog
from headgate.store.relational.database import Database
from headgate.store.relational.row_numbers import RID_SHIFT


def marked_records(
    database: Database,
    catalog: Catalog,
    connection_id: ConnectionId,
    stream: StreamName,
    *,
    after: int,
    limit: int,
) -> MarkedRecords:
    """List some marked records of one stream of one connection.

    Raises:
        ConnectionNotFound: there is no such connection.
        StreamNotDeclared: its connector has no such stream.
    """
    catalog.stream_of(connection_id, stream)
    shelves = catalog.shelves_at(connection_id, stream)
    if not shelves:
        return MarkedRecords((), None)
    # Counted on from the first record of the first shelf.
    first = shelves[0].sid << RID_SHIFT
    rows: list[tuple[int, str]] = []
    for shelf in shelves:
        start = max(first + after, shelf.sid << RID_SHIFT)
        rows += database.all(database.sql["marked_records"], (start, (shelf.sid + 1) << RID_SHIFT, limit + 1))
    records = tuple(MarkedRecord(RecordId(key), _problems(database, rid)) for rid, key in rows[:limit])
    return MarkedRecords(records, rows[limit - 1][0] - first if len(rows) > limit else None)


def _problems(database: Database, rid: int) -> tuple[RecordProblem, ...]:
    return tuple(
        RecordProblem(pointer, message) for pointer, message in database.all(database.sql["marks"], (rid,))
    )
