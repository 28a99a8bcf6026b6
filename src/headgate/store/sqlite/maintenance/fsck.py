"""Check a SQLite store: the file, and everything in it. Changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import apsw

from headgate.model.maintenance import CheckReport, Damage, Progress
from headgate.store.relational.maintenance.fsck import check_records
from headgate.store.relational.write.blobs import BlobFiles
from headgate.store.sqlite.database import SqliteDatabase, open_reader

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
            return CheckReport(found.record_count, (*checking.result(), *found.damages))
    finally:
        beside.db.close()


def _check_file(database: SqliteDatabase) -> list[Damage]:
    try:
        rows = database.all(f"PRAGMA integrity_check({_FILE_DAMAGES_MOST})")
    except apsw.Error as error:
        rows = [(str(error),)]
    return [Damage("file", " ".join(text.split())) for (text,) in rows if text != "ok"]
