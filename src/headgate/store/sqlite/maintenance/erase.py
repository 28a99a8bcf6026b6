"""Erase for good: after this, no byte of what was erased is left in any file of the home.

A deletion leaves a tombstone with the record's key, and its words in the index until that is next merged. An
erasure leaves a row without content, named by a keyed hash, so that nobody's columns count it any more; every
bookmark of changes ends, so that clients read anew and forget it too.
"""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass

from headgate.errors import ConnectionNotFound, NotFound
from headgate.home import Home, read_or_create_private
from headgate.model.ids import BlobId, ConnectionId, RecordId, StreamName
from headgate.model.maintenance import Erased
from headgate.store.sqlite.catalog import Catalog, Shelf, bump_catalog, current
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.maintenance.opening import blob_files, remove_copy, truncate_wal
from headgate.store.sqlite.maintenance.snapshot import Snapshot
from headgate.store.sqlite.paths import FILE
from headgate.store.sqlite.write import accounts
from headgate.store.sqlite.write.derive import text_row
from headgate.store.sqlite.write.long_texts import values_of

_KEY_FILE = "erase.key"
_KEY_BYTES = 32


def erase_record(
    database: Database, home: Home, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId
) -> Erased:
    """Erase one record, or what is left of one that was deleted.

    Raises:
        NotFound: there is no such record.
        StorageUnusable: it is gone from the store, but others keep its log from being emptied.
    """
    key = _hash_key(home)
    try:
        with database.writing():
            catalog = current(database, Catalog())
            shelf = catalog.shelves.get((connection_id, stream))
            row = None if shelf is None else _find(database, shelf, record_id)
            if shelf is None or row is None:
                raise NotFound(f"There is no record '{record_id}' in that stream.")
            _forget_words(database, shelf, row)
            _forget_rows(database, shelf, row, _hashed(key, row.rid, record_id))
            _forget_beside(database)
    finally:
        # Also when nothing was found: an earlier try may have been stopped right before this.
        removed = _remove_files(database, home)
        Snapshot().run(database)
        truncate_wal(database)
    return Erased(1, *removed)


def erase_connection(database: Database, home: Home, connection_id: ConnectionId) -> Erased:
    """Erase a connection with everything it brought.

    Raises:
        ConnectionNotFound: there is no such connection.
        StorageUnusable: it is gone from the store, but others keep its log from being emptied.
    """
    try:
        with database.writing():
            catalog = current(database, Catalog())
            if connection_id not in catalog.connections:
                raise ConnectionNotFound("There is no such connection.", hint="See 'headgate store stats'.")
            count = _live_of(database, connection_id)
            accounts.delete(database, connection_id)
            _merge_index(database)
            _forget_beside(database)
    finally:
        removed = _remove_files(database, home)
        truncate_wal(database)
    return Erased(count, *removed)


@dataclass(frozen=True, slots=True)
class _Row:
    rid: int
    ts: int | None
    is_deleted: bool
    changed: bytes | None
    long: bytes | None
    body: bytes | None


def _find(database: Database, shelf: Shelf, record_id: str) -> _Row | None:
    row = database.one(
        "SELECT rid, ts, deleted, changed, long, body FROM record WHERE sid=? AND record_id=?",
        (shelf.sid, record_id),
    )
    return None if row is None else _Row(row[0], row[1], bool(row[2]), *row[3:])


def _forget_words(database: Database, shelf: Shelf, row: _Row) -> None:
    stream = shelf.stream
    if not stream.slots:
        return
    if row.body is not None:
        values = values_of(database, stream, row.rid, row.long, row.body)
        # Always on, it would make every update of a record many times slower.
        _set_secure(database, 1)
        database.texts.take_out(tuple(stream.slots.values()), [text_row(stream, row.rid, row.ts, values)])
        database.texts.flush(database.many)
        _set_secure(database, 0)
    if _may_linger(database, shelf, row):
        _merge_index(database)


def _may_linger(database: Database, shelf: Shelf, row: _Row) -> bool:
    """Say whether earlier words of the record may be in parts of the index that are not merged yet."""
    if row.is_deleted or row.changed is not None:
        return True
    versions: int = database.value(
        "SELECT count(*) FROM declaration WHERE connector_key=?", (shelf.stream.connector_key,)
    )
    return versions > 1


def _set_secure(database: Database, on: int) -> None:
    database.run("INSERT INTO fts(fts, rank) VALUES('secure-delete', ?)", (on,))


def _merge_index(database: Database) -> None:
    """Write the index anew, without the words of rows that have left it.

    An index in one part counts as merged already, whatever marks of rows that left are in it. A row that
    comes and goes makes a second part, and so the merging happens.
    """
    database.run("INSERT INTO fts(rowid, sh) VALUES(0, 's0')")
    database.run("INSERT INTO fts(fts, rowid, sh) VALUES('delete', 0, 's0')")
    database.run("INSERT INTO fts(fts) VALUES('optimize')")


def _forget_rows(database: Database, shelf: Shelf, row: _Row, name: str) -> None:
    for table in (shelf.stream.table, "chunk", "blob_use", "life"):
        database.run(f"DELETE FROM {table} WHERE rid=?", (row.rid,))
    seq = _next_seq(database)
    database.run(
        "UPDATE record SET record_id=?, seq=?, born_seq=?, sort=NULL, ts=NULL, emitted_at=0, deleted=1, "
        "changed=NULL, long=NULL, digest=x'', body=NULL WHERE rid=?",
        (name, seq, seq, row.rid),
    )
    database.run("DELETE FROM column_block WHERE sid=?", (shelf.sid,))
    database.run(
        "UPDATE shelf SET live=live-?, seq=?, col_seq=0 WHERE sid=?", (not row.is_deleted, seq, shelf.sid)
    )


def _forget_beside(database: Database) -> None:
    """Forget what is kept beside records, and note which files go with them."""
    database.run("DELETE FROM idempotency")
    # Bookmarks older than this are refused; and whoever planned to note column blocks has to look again.
    database.run("UPDATE meta SET v=? WHERE k='pruned_seq'", (_next_seq(database),))
    bump_catalog(database)
    # An earlier version of a record may have referred to a file that no record refers to now.
    unused = "blob_id NOT IN (SELECT blob_id FROM blob_use)"
    database.run(f"INSERT OR IGNORE INTO blob_gone SELECT blob_id FROM blob WHERE {unused}")
    database.run(f"DELETE FROM blob WHERE {unused}")


def _remove_files(database: Database, home: Home) -> tuple[int, int]:
    """Remove files that are noted as gone, and copies that care left; gives how many of each.

    Only after the rows that named them are gone for good: whoever is stopped in between has a whole store,
    and the next erasure removes the rest.
    """
    files = blob_files(home)
    with database.writing():
        # One may have come back since.
        database.run("DELETE FROM blob_gone WHERE blob_id IN (SELECT blob_id FROM blob)")
        gone = database.all("SELECT blob_id FROM blob_gone")
        for (blob_id,) in gone:
            files.remove(BlobId(blob_id))
        database.run("DELETE FROM blob_gone")
    copies = [*home.path.glob(f"{FILE}.before-*"), *home.path.glob(f".{FILE}.*")]
    for copy in copies:
        remove_copy(copy)
    return len(gone), len(copies)


def _next_seq(database: Database) -> int:
    return database.value("UPDATE meta SET v = v + 1 WHERE k='seq' RETURNING v")


def _live_of(database: Database, connection_id: ConnectionId) -> int:
    return database.value("SELECT coalesce(sum(live), 0) FROM shelf WHERE connection_id=?", (connection_id,))


def _hash_key(home: Home) -> bytes:
    return read_or_create_private(home.keys / _KEY_FILE, lambda: secrets.token_bytes(_KEY_BYTES))


def _hashed(key: bytes, rid: int, record_id: str) -> str:
    return f"erased_{hmac.digest(key, f'{rid}/{record_id}'.encode(), 'sha256').hex()}"
