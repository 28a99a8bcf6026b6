"""Erase records: afterwards no read finds anything of them; what is left of their bytes, an engine removes.

A deletion leaves a tombstone with the record's key, and the record's words in the index until that is next merged.
An erasure leaves a tombstone without content under a keyed hash.
It ends every bookmark of changes, so that clients read everything again and drop the record too.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from headgate.errors import ConnectionNotFound, NotFound
from headgate.home import Home, read_or_create_private
from headgate.model.ids import BlobId, ConnectionId, RecordId, StreamName
from headgate.model.maintenance import Erased
from headgate.store.changes import accounts
from headgate.store.format.records import N_MASK
from headgate.store.format.streams import Shelf
from headgate.store.sql.catalog import current
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import erase_vectors
from headgate.store.sql.word_segments import purge_record

_KEY_FILE = "erase.key"
_KEY_BYTES = 32


class _RecordToErase(NamedTuple):
    rid: int
    deleted: int


class Remains(Protocol):
    """What an engine removes once the rows are gone for good."""

    def remove_blobs(self, blob_ids: Sequence[BlobId]) -> None:
        """Remove the bytes of files, inside a writer's transaction."""

    def remove_copies(self) -> int:
        """Remove copies of the store that migrations and stopped commands left; returns how many."""
        ...

    def forget_cursors(self) -> None:
        """Remove the cursors that are kept: they hold the keys of records, sealed."""

    def remove_bytes(self) -> None:
        """Remove the bytes that deleted rows leave behind."""


def erase_record(
    database: Database,
    remains: Remains,
    connection_id: ConnectionId,
    *,
    stream: StreamName,
    record_id: RecordId,
    key: bytes,
) -> Erased:
    """Erase one record, or the tombstone of one that was deleted; the tombstone's key is hashed with a secret key."""
    try:
        with database.writing():
            catalog = current(database)
            # One that a rule has hidden since has a tombstone among the others, with its key.
            shelves = catalog.shelves_at(connection_id, stream)
            erased = [(at, row) for at in shelves if (row := _find(database, at, record_id)) is not None]
            if not erased:
                raise NotFound(f"There is no record '{record_id}' in that stream.")
            for shelf, row in erased:
                _erase_words(database, shelf, row)
                _erase_rows(database, shelf, row, _erased_id(key, row.rid, record_id))
            _erase_notes(database)
    finally:
        # Also when nothing was found: an earlier try may have been stopped right before this.
        blobs, copies = _remove_files(database, remains)
        remains.remove_bytes()
    return Erased(1, blobs, copies)


def erase_connection(database: Database, remains: Remains, connection_id: ConnectionId) -> Erased:
    """Erase a connection with all its records and files."""
    try:
        with database.writing():
            catalog = current(database)
            if connection_id not in catalog.connections:
                raise ConnectionNotFound("There is no such connection.", hint="See 'headgate store stats'.")
            count: int = database.value(database.sql["live_of_connection"], (connection_id,))
            accounts.delete(database, connection_id)
            _erase_notes(database)
    finally:
        blobs, copies = _remove_files(database, remains)
        remains.remove_bytes()
    return Erased(count, blobs, copies)


def _find(database: Database, shelf: Shelf, record_id: str) -> _RecordToErase | None:
    row = database.one(database.sql["record_to_erase"], (shelf.sid, record_id))
    return None if row is None else _RecordToErase(*row)


def _erase_words(database: Database, shelf: Shelf, row: _RecordToErase) -> None:
    database.texts.take_out(row.rid, shelf.stream.searched.values())
    database.texts.flush(database)
    purge_record(database, shelf.sid, row.rid & N_MASK)
    erase_vectors(database, row.rid)


def _erase_rows(database: Database, shelf: Shelf, row: _RecordToErase, erased_id: str) -> None:
    for table in (*database.dialect.typed_tables(shelf.stream.stid), "chunk", "blob_use", "invalid", "life"):
        database.many(database.sql["delete_rows_of_record"].format(table=table), [(row.rid,)])
    seq = _next_change_number(database)
    database.run(database.sql["erase_record"], (erased_id, seq, seq, row.rid))
    database.run(database.sql["note_erasure"], (0 if row.deleted else 1, seq, shelf.sid))


def _erase_notes(database: Database) -> None:
    """Remove what the store notes about records elsewhere, and note which files are to be removed."""
    database.run(database.sql["delete_idempotency_keys"])
    # Bookmarks older than this are refused.
    database.run(database.sql["set_pruned_seq"], (_next_change_number(database),))
    # An earlier version of a record may have referred to a file that no record refers to now.
    database.run(database.sql["note_unused_blobs"])
    database.run(database.sql["delete_unused_blobs"])


def _remove_files(database: Database, remains: Remains) -> tuple[int, int]:
    """Remove files that are noted as gone, and copies of the store that were left; returns how many of each.

    This comes after the rows that named them are gone for good: a process that is stopped in between leaves a
    whole store, and the next erasure removes the rest.
    """
    remains.forget_cursors()
    return remove_gone(database, remains.remove_blobs), remains.remove_copies()


def remove_gone(database: Database, remove: Callable[[Sequence[BlobId]], None]) -> int:
    """Remove the files that are noted as gone and were not stored again; returns how many there were."""
    with database.writing():
        database.run(database.sql["unnote_stored_blobs"])
        gone = [BlobId(blob_id) for (blob_id,) in database.all(database.sql["gone_blobs"])]
        remove(gone)
        database.run(database.sql["delete_gone_blobs"])
    return len(gone)


def _next_change_number(database: Database) -> int:
    return database.value(database.sql["next_change_number"])


def hash_key(home: Home) -> bytes:
    """Return the secret with which the keys of erased records are hashed; it is made when it is first needed."""
    return read_or_create_private(
        home.keys / _KEY_FILE, lambda: secrets.token_bytes(_KEY_BYTES), least_bytes=_KEY_BYTES
    )


def _erased_id(key: bytes, rid: int, record_id: str) -> str:
    return f"erased_{hmac.digest(key, f'{rid}/{record_id}'.encode(), 'sha256').hex()}"
