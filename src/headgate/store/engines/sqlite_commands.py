"""What maintenance does to a home whose records are in a file.

Every method imports what it needs when it is called: the shortest command does not load what the longest one needs.
"""
# ruff: noqa: PLC0415 - for that reason

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.home import Home
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.maintenance import CheckReport, Copied, Erased, Progress, StoreStats

if TYPE_CHECKING:
    from headgate.store.maintenance.copying import StoreSide


class SqliteCommands:
    """Implements `maintenance.StoreCommands`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def stats(self) -> StoreStats:
        """Measure what the store holds."""
        from headgate.store.maintenance.sqlite_home import reading_store, space_of
        from headgate.store.maintenance.stats import stats

        with reading_store(self._home) as database:
            return stats(database, lambda: space_of(database))

    def check(self, progress: Progress) -> CheckReport:
        """Check the file and every record."""
        from headgate.store.maintenance import sqlite_check
        from headgate.store.maintenance.sqlite_home import blob_files, reading_store

        with reading_store(self._home) as database:
            return sqlite_check.check_store(database, blob_files(self._home), progress)

    def back_up(self, target: Path, progress: Progress, *, names: Sequence[str] = ()) -> Copied:
        """Copy the store and its files into a new directory, and the named files beside the store."""
        from headgate.store.maintenance import backup
        from headgate.store.maintenance.sqlite_home import blob_files, reading_store

        with reading_store(self._home) as database:
            copy = backup.FileCopy(database, blob_files(self._home), progress)
            return backup.back_up(copy, self._home, target, names=names)

    def restore(self, source: Path, progress: Progress, *, end_at: int | None) -> Copied:
        """Check a backup and put it into the home, which must have no store."""
        from headgate.store.maintenance import backup

        return backup.restore(source, self._home, progress, end_at=end_at)

    def erase_connection(self, connection_id: ConnectionId) -> Erased:
        """Erase a connection with all its records and files."""
        from headgate.store.changes import erase
        from headgate.store.maintenance.sqlite_home import SqliteRemains, writing_store

        with writing_store(self._home) as database:
            return erase.erase_connection(database, SqliteRemains(database, self._home), connection_id)

    def erase_record(self, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId) -> Erased:
        from headgate.store.changes import erase
        from headgate.store.maintenance.sqlite_home import SqliteRemains, writing_store

        key = erase.hash_key(self._home)
        with writing_store(self._home) as database:
            remains = SqliteRemains(database, self._home)
            return erase.erase_record(
                database, remains, connection_id, stream=stream, record_id=record_id, key=key
            )

    @contextmanager
    def to_read(self) -> Generator[StoreSide]:
        """Open the store as the source of a copy."""
        from headgate.store.maintenance.sqlite_home import blob_files, reading_store
        from headgate.store.maintenance.sqlite_side import SqliteSide

        with reading_store(self._home) as database:
            yield SqliteSide(database, blob_files(self._home))

    @contextmanager
    def to_fill(self) -> Generator[StoreSide]:
        """Open the store as the target of a copy; one that is not there is made."""
        from headgate.store.maintenance.sqlite_side import side_to_fill
        from headgate.store.sqlite.database import translate_errors

        side = side_to_fill(self._home)
        try:
            with translate_errors():
                yield side
        finally:
            side.database.finish()
