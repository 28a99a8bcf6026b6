"""Check a SQLite store: the file, and everything in it. Changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import apsw

from headgate.model.maintenance import CheckReport, Damage, Progress
from headgate.store.maintenance.fsck import check_records
from headgate.store.sqlite.blobs import BlobFiles
from headgate.store.sqlite.database import SqliteDatabase, open_reader
from headgate.store.sqlite.migrate import all_migrations, migrate

_FILE_DAMAGES_MOST = 100


def check_store(database: SqliteDatabase, files: BlobFiles, progress: Progress) -> CheckReport:
    """Check the file, every shelf and every blob."""
    # SQLite's own check of the file runs beside, on another connection: it needs no Python.
    beside = open_reader(database.path)
    try:
        with ThreadPoolExecutor(1) as executor:
            checking = executor.submit(_check_file, beside)
            try:
                found = check_records(database, files, progress)
            except BaseException:
                beside.db.interrupt()
                raise
            damages = (*checking.result(), *_check_tables(database), *found.damages)
            return CheckReport(found.record_count, damages)
    finally:
        beside.db.close()


def _check_file(database: SqliteDatabase) -> list[Damage]:
    try:
        rows = database.all(f"PRAGMA integrity_check({_FILE_DAMAGES_MOST})")
    except apsw.Error as error:
        rows = [(str(error),)]
    return [Damage("file", " ".join(text.split())) for (text,) in rows if text != "ok"]


def _check_tables(database: SqliteDatabase) -> list[Damage]:
    """Compare the tables and their columns with those of a new store: names in the file can be damaged too."""
    expected = SqliteDatabase(database.path, apsw.Connection(":memory:"))
    try:
        migrate(expected, all_migrations())
        named = _columns(expected)
        try:
            found = _columns(database)
        except (apsw.Error, UnicodeDecodeError):
            return [Damage("file", "The names of tables and columns cannot be read.")]
        # A table that is missing is found where it is read; some of older versions are dropped when they are not needed.
        wrong = [name for name, columns in sorted(named.items()) if found.get(name, columns) != columns]
        return [Damage("file", f"The table {name} does not have its columns.") for name in wrong]
    finally:
        expected.db.close()


def _columns(database: SqliteDatabase) -> dict[str, list[tuple[Any, ...]]]:
    names = [
        name for (name,) in database.all("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    ]
    return {name: database.all("SELECT * FROM pragma_table_xinfo(?)", (name,)) for name in names}
