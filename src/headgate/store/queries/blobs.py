"""Find files through the visible records that refer to them."""

from __future__ import annotations

from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import BlobPlan
from headgate.model.rows import FoundBlob
from headgate.store.queries.scope import scope_of
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database


def find_blobs(database: Database, catalog: Catalog, plan: BlobPlan) -> tuple[FoundBlob, ...]:
    """Find a file through visible records: for each connection, the first that refers to it."""
    found: dict[str, FoundBlob] = {}
    size = database.one(database.sql["blob"], (plan.blob_id,))
    for reach in plan.reaches if size is not None else ():
        scope = scope_of(catalog, reach)
        if scope is None:
            continue
        names = {scope.stream.fids[name]: name for name in reach.fields if name in scope.stream.fids}
        rows = database.all(
            database.sql["blob_users"].format(sids=scope.sids, where=scope.where),
            (plan.blob_id, *scope.values),
        )
        for fid, mime, sid, record_id in rows:
            shelf = catalog.by_sid[sid]
            if fid in names and shelf.connection_id not in found and size is not None:
                found[shelf.connection_id] = FoundBlob(
                    plan.blob_id,
                    shelf.connection_id,
                    reach.stream,
                    RecordId(record_id),
                    FieldName(names[fid]),
                    mime or size[0],
                    size[1],
                )
    return tuple(found.values())
