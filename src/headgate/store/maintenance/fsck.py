"""Check a store: every record and everything stored beside it, and every file. Changes nothing.

Each shelf is read in one transaction, so that a program may go on writing meanwhile.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Protocol

from headgate.errors import BlobNotFound
from headgate.model.ids import BlobId
from headgate.model.maintenance import CheckReport, Damage, Progress
from headgate.store.maintenance.copied_tables import FACTS
from headgate.store.maintenance.shelf_check import ShelfCheck
from headgate.store.sql.catalog import Catalog, current, is_catalog_changed
from headgate.store.sql.database import Database


class BlobPieces(Protocol):
    """Where the bytes of files lie, for work that waits for them."""

    def pieces(self, blob_id: BlobId) -> Iterator[bytes]:
        """Read a file in pieces.

        Raises:
            BlobNotFound: it is not there.
        """
        ...


def check_records(database: Database, files: BlobPieces, progress: Progress) -> CheckReport:
    """Check every shelf and every file."""
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
            catalog = current(database, Catalog())
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
