"""What ``headgate store`` does to a home, beside a program that may be using it.

This is the one module of the store that the command line imports. It needs no extra itself: every function imports
what it needs when it is called, which also keeps the shortest command from loading what the longest one needs.
"""
# ruff: noqa: PLC0415 - for that reason

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from headgate.home import Home
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.maintenance import CheckReport, Copied, Erased, Progress, StoreStats


def store_stats(home: Home) -> StoreStats:
    """Measure what a home's store holds."""
    from headgate.store.sqlite.maintenance.opening import reading_store
    from headgate.store.sqlite.maintenance.stats import stats

    with reading_store(home) as database:
        return stats(database)


def check_store(home: Home, progress: Progress) -> CheckReport:
    """Check every record of a home's store."""
    from headgate.store.sqlite.maintenance import fsck
    from headgate.store.sqlite.maintenance.opening import blob_files, reading_store

    with reading_store(home) as database:
        return fsck.check_store(database, blob_files(home), progress)


def back_up_store(home: Home, target: Path, progress: Progress, *, names: Sequence[str] = ()) -> Copied:
    """Copy a home's store and its files into a new directory, and the named files beside the store."""
    from headgate.store.sqlite.maintenance import backup
    from headgate.store.sqlite.maintenance.opening import reading_store

    with reading_store(home) as database:
        return backup.back_up(database, home, target, progress, names=names)


def back_up_encrypted(
    home: Home, target: Path, progress: Progress, *, passphrase: str, names: Sequence[str] = ()
) -> Copied:
    """Copy a home's store, its files and the named files into one file that a passphrase opens."""
    from headgate.store.sqlite.maintenance import encrypted

    encrypted.refuse_existing(target)
    with encrypted.workplace(home) as place:
        copied = back_up_store(home, place, progress, names=names)
        encrypted.pack(place, target, passphrase)
    return copied


def is_encrypted_backup(source: Path) -> bool:
    """Say whether a passphrase is needed for a backup."""
    from headgate.store.sqlite.maintenance import encrypted

    return encrypted.is_encrypted_backup(source)


@contextmanager
def decrypted_backup(source: Path, home: Home, passphrase: str) -> Generator[Path]:
    """Give the directory of an encrypted backup, inside the home, while the block runs."""
    from headgate.store.sqlite.maintenance import encrypted

    with encrypted.workplace(home) as place:
        encrypted.unpack(source, place, passphrase)
        yield place


def verify_backup(source: Path, progress: Progress) -> Copied:
    """Check a backup; change nothing."""
    from headgate.store.sqlite.maintenance import backup

    return backup.verify(source, progress)


def restore_backup(source: Path, home: Home, progress: Progress, *, revoke_at: int | None) -> Copied:
    """Check a backup and put it into a home that has no store, its grants revoked if a time is given."""
    from headgate.store.sqlite.maintenance import backup

    return backup.restore(source, home, progress, revoke_at=revoke_at)


def erase_connection(home: Home, connection_id: ConnectionId) -> Erased:
    """Erase a connection with all its records and files."""
    from headgate.store.sqlite.maintenance import erase
    from headgate.store.sqlite.maintenance.opening import writing_store

    with writing_store(home) as database:
        return erase.erase_connection(database, home, connection_id)


def erase_record(
    home: Home, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId
) -> Erased:
    """Erase one record."""
    from headgate.store.sqlite.maintenance import erase
    from headgate.store.sqlite.maintenance.opening import writing_store

    with writing_store(home) as database:
        return erase.erase_record(database, home, connection_id, stream=stream, record_id=record_id)
