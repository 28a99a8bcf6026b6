"""Open a home's store for maintenance, beside a program that may be using it.

A store must exist: nothing here creates one.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import apsw

from headgate.errors import ConfigInvalid, StorageUnusable
from headgate.home import Home
from headgate.model.ids import BlobId
from headgate.store.format import analyser
from headgate.store.sql.database import refuse_unfinished_copy
from headgate.store.sqlite import BLOBS, FILE
from headgate.store.sqlite.database import BUSY_MS, SqliteDatabase, open_reader, open_writer, translate_errors
from headgate.store.sqlite.migrate import all_migrations, migrate, version_of
from headgate.system import open_private, write_at

if TYPE_CHECKING:
    from headgate.store.maintenance.stats import TakenSpace
    from headgate.store.sqlite.blobs import BlobFiles

_TRY_MS = 500


@contextmanager
def reading_store(home: Home) -> Generator[SqliteDatabase]:
    """Open a home's store for reading."""
    database = open_reader(_existing(home))
    try:
        with translate_errors():
            _refuse_other_versions(database)
            yield database
    finally:
        database.db.close()


@contextmanager
def writing_store(home: Home) -> Generator[SqliteDatabase]:
    """Open a home's store for writing; the last process to close it leaves no WAL behind."""
    from headgate.store.changes import word_index  # noqa: PLC0415 - slow to import; readers do without

    database = open_writer(_existing(home))
    try:
        with translate_errors():
            migrate(database, all_migrations())
            refuse_unfinished_copy(database)
            word_index.bring_up_to_date(database)
            yield database
    finally:
        database.db.close()


def space_of(database: SqliteDatabase) -> TakenSpace:
    """Measure the file and its WAL."""
    from headgate.store.maintenance.stats import TakenSpace  # noqa: PLC0415 - needed by one command

    return TakenSpace(
        version_of(database), _size(database.path), _size(Path(f"{database.path}-wal")), is_shared=False
    )


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def blob_files(home: Home) -> BlobFiles:
    """Open the directory of files of a home."""
    from headgate.store.sqlite.blobs import BlobFiles  # noqa: PLC0415 - slow to import, and seldom needed

    return BlobFiles(home.path / BLOBS)


def remove_copy(path: Path) -> None:
    """Remove a file or a directory if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def truncate_wal(database: SqliteDatabase) -> None:
    """Move the whole WAL into the file and cut it to nothing."""
    # While this waits for readers, other writers wait as well: so it waits a short time, and often.
    database.run(f"PRAGMA busy_timeout={_TRY_MS}")
    try:
        if not any(_try_truncate(database) for _ in range(BUSY_MS // _TRY_MS)):
            raise StorageUnusable(
                "The log could not be emptied while others read the store.",
                hint="Stop the program that reads it, then run the command again.",
            )
    finally:
        database.run(f"PRAGMA busy_timeout={BUSY_MS}")


def _try_truncate(database: SqliteDatabase) -> bool:
    try:
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    except apsw.BusyError:
        return False
    return True


def _existing(home: Home) -> Path:
    path = home.path / FILE
    if not path.exists():
        raise ConfigInvalid(f"There is no store in {home.path}.", hint="Choose another home with --home DIR.")
    return path


def _refuse_other_versions(database: SqliteDatabase) -> None:
    schema, known = version_of(database), all_migrations()[-1].number
    if schema != known:
        age = "newer" if schema > known else "older"
        raise StorageUnusable(
            f"The store was made by a {age} version (schema {schema}, this program knows {known}).",
            hint="Use that version, or serve the home once with this one.",
        )
    refuse_unfinished_copy(database)
    words: int = database.value(database.sql["words_version"])
    if words == -analyser.VERSION:
        raise StorageUnusable(
            "The store's word index is being made.", hint="Serve the home, and try again when it is complete."
        )
    if words != analyser.VERSION:
        raise StorageUnusable(
            "The store's words were indexed by another version.",
            hint="Use that version, or serve the home once with this one.",
        )


class SqliteRemains:
    """Implements `changes.erase.Remains`; SQLite itself writes zeros over deleted rows."""

    def __init__(self, database: SqliteDatabase, home: Home) -> None:
        self._database = database
        self._home = home

    def remove_blobs(self, blob_ids: Sequence[BlobId]) -> None:
        """Remove files."""
        blob_files(self._home).remove(blob_ids)

    def remove_copies(self) -> int:
        directory = self._home.path
        copies = [*directory.glob(f"{FILE}.before-*"), *directory.glob(f".{FILE}.*")]
        for copy in copies:
            remove_copy(copy)
        return len(copies)

    def forget_cursors(self) -> None:
        """Write zeros over the files of cursors, which processes have mapped."""
        for path in self._home.cursors.glob("*"):
            handle = open_private(path, os.O_RDWR)
            try:
                write_at(handle, bytes(os.fstat(handle).st_size), 0)
                os.fsync(handle)
            finally:
                os.close(handle)

    def remove_bytes(self) -> None:
        """Empty the WAL."""
        truncate_wal(self._database)
