"""Check a store: the file, every record and everything stored beside it, and every blob. Changes nothing.

Each shelf is read in one transaction, so that a program may go on writing meanwhile.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import apsw

from headgate.model.ids import BlobId
from headgate.model.maintenance import CheckReport, Damage, Progress
from headgate.store.sqlite.catalog import Catalog, current
from headgate.store.sqlite.database import Database, open_reader
from headgate.store.sqlite.maintenance.shelf_check import ShelfCheck
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.blobs import BlobFiles

_FILE_DAMAGES_MOST = 100
_PIECE_BYTES = 1024 * 1024


def check_store(database: Database, files: BlobFiles, progress: Progress) -> CheckReport:
    """Check the file, every shelf and every blob."""
    # SQLite's own check of the file runs beside, on another connection: it needs no Python.
    beside = open_reader(database.path)
    try:
        with ThreadPoolExecutor(1) as executor:
            checking = executor.submit(_check_file, beside)
            try:
                with _garbage_collection_off():
                    done, damages = _check_records(database, files, progress)
            except BaseException:
                beside.db.interrupt()
                raise
            return CheckReport(done, (*checking.result(), *damages))
    finally:
        beside.db.close()


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


def _check_records(database: Database, files: BlobFiles, progress: Progress) -> tuple[int, list[Damage]]:
    damages: list[Damage] = []
    done = 0
    try:
        with database.reading(float("inf")):
            catalog = current(database, Catalog())
            shelves = sorted(database.all(SQL["live_counts"]))
            damages += _strays(database, {sid for sid, _ in shelves})
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
    return done, damages


def _check_file(database: Database) -> list[Damage]:
    try:
        rows = database.all(f"PRAGMA integrity_check({_FILE_DAMAGES_MOST})")
    except apsw.Error as error:
        rows = [(str(error),)]
    return [Damage("file", " ".join(text.split())) for (text,) in rows if text != "ok"]


def _strays(database: Database, known: set[int]) -> Iterator[Damage]:
    sid = -1
    while row := database.one(SQL["next_sid_of_records"], (sid,)):
        (sid,) = row
        if sid not in known:
            yield Damage("place", f"There are records of shelf {sid}, which does not exist.")


def _blobs(database: Database, files: BlobFiles) -> Iterator[Damage]:
    for blob_id, size in database.all(SQL["blobs"]):
        path = files.path(BlobId(blob_id))
        if not path.exists():
            yield Damage("blob", f"The file {blob_id} is missing.")
            continue
        hashed, read = hashlib.sha256(), 0
        with path.open("rb") as file:
            while piece := file.read(_PIECE_BYTES):
                hashed.update(piece)
                read += len(piece)
        if read != size or f"blob_{hashed.hexdigest()}" != blob_id:
            yield Damage("blob", f"The file {blob_id} is not what was stored.")
