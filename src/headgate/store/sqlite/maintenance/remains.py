"""Remove the bytes that an erasure leaves in a home: files, copies of the store, and what the WAL holds."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.home import Home
from headgate.model.ids import BlobId
from headgate.store.sqlite.database import SqliteDatabase
from headgate.store.sqlite.maintenance.opening import blob_files, remove_copy, truncate_wal
from headgate.store.sqlite.paths import FILE


class SqliteRemains:
    """Implements `relational.maintenance.erase.Remains`; SQLite itself writes zeros over deleted rows."""

    def __init__(self, database: SqliteDatabase, home: Home) -> None:
        self._database = database
        self._home = home

    def remove_blobs(self, blob_ids: Sequence[BlobId]) -> None:
        """Remove files."""
        blob_files(self._home).remove(blob_ids)

    def remove_copies(self) -> int:
        """Remove copies of the store that migrations and stopped commands left."""
        directory = self._home.path
        copies = [*directory.glob(f"{FILE}.before-*"), *directory.glob(f".{FILE}.*")]
        for copy in copies:
            remove_copy(copy)
        return len(copies)

    def remove_bytes(self) -> None:
        """Empty the WAL.

        Raises:
            StorageUnusable: readers kept it in use all the while.
        """
        truncate_wal(self._database)
