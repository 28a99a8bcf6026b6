"""Check a store: every record and everything stored beside it, and every file. Changes nothing.

Each shelf is read in one transaction, so that a program may go on writing meanwhile.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

import apsw

from headgate.errors import BlobNotFound
from headgate.model.ids import BlobId
from headgate.model.maintenance import CheckReport, Damage, Progress
from headgate.store.maintenance.copied_tables import FACTS
from headgate.store.maintenance.shelf_check import ShelfCheck
from headgate.store.sql.catalog import current, is_catalog_changed
from headgate.store.sql.database import Database
from headgate.store.sqlite.blobs import BlobFiles
from headgate.store.sqlite.database import SqliteDatabase, open_reader
from headgate.store.sqlite.migrate import all_migrations, migrate


class BlobPieces(Protocol):
    """Where the bytes of files lie, for work that waits for them."""

    def pieces(self, blob_id: BlobId) -> Iterator[bytes]:
        """Read a file in pieces.

        Raises:
            BlobNotFound: it is not there.
        """
        ...


def check_records(database: Database, files: BlobPieces, progress: Progress) -> CheckReport:
    with _garbage_collection_off():
        return _check(database, files, progress)


@contextmanager
def _garbage_collection_off() -> Generator[None]:
    """Save the collector's passes: millions of rows come and go, and none is part of a cycle."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _check(database: Database, files: BlobPieces, progress: Progress) -> CheckReport:
    damages: list[Damage] = []
    done = 0
    try:
        with database.reading(float("inf")):
            catalog = current(database)
            shelves = sorted(database.all(database.sql["live_counts"]))
            damages += _strays(database, {sid for sid, _ in shelves})
            damages += _catalog(database)
        total: int = sum(live for _, live in shelves)
        # The rows of a stream that is no longer declared are skipped: no read reaches them.
        for shelf in [catalog.by_sid[sid] for sid, _ in shelves if sid in catalog.by_sid]:
            check = ShelfCheck(database, shelf)
            for count in check.run():
                progress(done + count, total)
            done += check.live
            damages += check.damages
        damages += _blobs(database, files)
    except Exception as error:  # noqa: BLE001 - a damaged file can break what any line here relies on
        damages.append(
            Damage("unreadable", f"The catalog of the store cannot be read ({type(error).__name__}).")
        )
    return CheckReport(done, tuple(damages))


def _catalog(database: Database) -> Iterator[Damage]:
    if is_catalog_changed(database):
        yield Damage("catalog", "Declarations, connections or rules are not what was stored.")
    known = {name for name, _ in database.all(database.sql["facts"])}
    for name in sorted({*FACTS} - known):
        yield Damage("catalog", f"The store does not know its {name}.")


def _strays(database: Database, known: set[int]) -> Iterator[Damage]:
    sid = -1
    while row := database.one(database.sql["next_sid_of_records"], (sid,)):
        (sid,) = row
        if sid not in known:
            yield Damage("place", f"There are records of shelf {sid}, which does not exist.")


def _blobs(database: Database, files: BlobPieces) -> Iterator[Damage]:
    for blob_id, size in database.all(database.sql["blobs"]):
        hashed, read = hashlib.sha256(), 0
        try:
            for piece in files.pieces(BlobId(blob_id)):
                hashed.update(piece)
                read += len(piece)
        except BlobNotFound:
            yield Damage("blob", f"The file {blob_id} is missing.")
            continue
        if read != size or f"blob_{hashed.hexdigest()}" != blob_id:
            yield Damage("blob", f"The file {blob_id} is not what was stored.")


_FILE_DAMAGES_MOST = 100


def check_store(database: SqliteDatabase, files: BlobFiles, progress: Progress) -> CheckReport:
    # SQLite's own check of the file runs beside, on another connection: it needs no Python.
    beside = open_reader(database.path)
    try:
        with ThreadPoolExecutor(1) as executor:
            checking = executor.submit(_check_file, beside)
            try:
                report = check_records(database, files, progress)
            except BaseException:
                beside.db.interrupt()
                raise
            damages = (*checking.result(), *_check_tables(database), *report.damages)
            return CheckReport(report.record_count, damages)
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
            columns_there = _columns(database)
        except (apsw.Error, UnicodeDecodeError):
            return [Damage("file", "The names of tables and columns cannot be read.")]
        # A table that is missing is found where it is read; some of older versions are dropped when they are not needed.
        wrong = [
            name for name, columns in sorted(named.items()) if columns_there.get(name, columns) != columns
        ]
        return [Damage("file", f"The table {name} does not have its columns.") for name in wrong]
    finally:
        expected.db.close()


def _columns(database: SqliteDatabase) -> dict[str, list[tuple[Any, ...]]]:
    names = [
        name for (name,) in database.all("SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')")
    ]
    return {name: database.all("SELECT * FROM pragma_table_xinfo(?)", (name,)) for name in names}
