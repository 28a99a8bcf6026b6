"""Move the WAL into the file, at moments that the writer chooses."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import apsw

if TYPE_CHECKING:
    from headgate.store.sqlite.database import SqliteDatabase

#: When the WAL is copied into the file, and when readers are asked to let go of it so that it starts again.
WAL_BYTES = 32 * 1024 * 1024
WAL_BYTES_MOST = 48 * 1024 * 1024
_WAL_WAIT_MS = 1000


def shorten_wal(database: SqliteDatabase) -> None:
    """Copy a long WAL into the file; ask readers to let go of a very long one."""
    wal = Path(f"{database.path}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size >= WAL_BYTES:
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
    if size >= WAL_BYTES_MOST:
        _checkpoint(database, apsw.SQLITE_CHECKPOINT_RESTART)


def move_wal(database: SqliteDatabase) -> None:
    """Move all of the WAL into the file; waiting for readers keeps the writers of other processes waiting as well."""
    _checkpoint(database, apsw.SQLITE_CHECKPOINT_TRUNCATE)


def _checkpoint(database: SqliteDatabase, mode: int) -> None:
    """Wait a moment for readers to let go of the WAL."""
    waited: int = database.value("PRAGMA busy_timeout")
    database.run(f"PRAGMA busy_timeout={_WAL_WAIT_MS}")
    try:
        database.db.wal_checkpoint(mode=mode)
    finally:
        database.run(f"PRAGMA busy_timeout={waited}")
