"""The chores of ``headgate store``, each on a whole home, beside a program that may be using it.

Each brings in what it needs when it is asked for: together they would keep the shortest of them waiting.
"""
# ruff: noqa: PLC0415 - for that reason

from __future__ import annotations

from pathlib import Path

from headgate.home import Home
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.maintenance import Copied, Erased, Examination, StoreStats
from headgate.store.sqlite.maintenance.opening import Progress, blob_files, reading_store, writing_store


def home_stats(home: Home) -> StoreStats:
    """Tell what a home's store holds."""
    from headgate.store.sqlite.maintenance.stats import stats

    with reading_store(home) as database:
        return stats(database)


def examine_home(home: Home, progress: Progress) -> Examination:
    """Look at every record of a home's store."""
    from headgate.store.sqlite.maintenance import fsck

    with reading_store(home) as database:
        return fsck.examine(database, blob_files(home), progress)


def back_up_home(home: Home, target: Path, progress: Progress) -> Copied:
    """Copy a home's store and its files into a new directory."""
    from headgate.store.sqlite.maintenance import backup

    with reading_store(home) as database:
        return backup.back_up(database, home, target, progress)


def erase_connection(home: Home, connection_id: ConnectionId) -> Erased:
    """Erase a connection with everything it brought."""
    from headgate.store.sqlite.maintenance import erase

    with writing_store(home) as database:
        return erase.erase_connection(database, home, connection_id)


def erase_record(
    home: Home, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId
) -> Erased:
    """Erase one record."""
    from headgate.store.sqlite.maintenance import erase

    with writing_store(home) as database:
        return erase.erase_record(database, home, connection_id, stream=stream, record_id=record_id)
