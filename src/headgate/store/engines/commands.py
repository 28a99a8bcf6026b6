"""What ``headgate store`` does to a home, beside a program that may be using it.

This is the one module of the store that the command line imports. It needs no extra itself: every function imports
what it needs when it is called, which also keeps the shortest command from loading what the longest one needs.
"""
# ruff: noqa: PLC0415 - for that reason

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from headgate.errors import ConfigInvalid
from headgate.home import Home, HomeInDatabase
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.maintenance import CheckReport, Copied, Erased, Moved, Progress, StoreStats

if TYPE_CHECKING:
    from headgate.store.engines.postgres_commands import PostgresCommands
    from headgate.store.maintenance.sqlite_side import SqliteSide


def commands_of(home: Home) -> SqliteCommands | PostgresCommands:
    """Return what can be done to a home, wherever its records are."""
    if not isinstance(home, HomeInDatabase):
        return SqliteCommands(home)
    from headgate.store.engines.postgres_commands import PostgresCommands

    return PostgresCommands(home)


class SqliteCommands:
    """What can be done to a home whose records are in a file."""

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
        from headgate.store.maintenance import fsck
        from headgate.store.maintenance.sqlite_home import blob_files, reading_store

        with reading_store(self._home) as database:
            return fsck.check_store(database, blob_files(self._home), progress)

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

    def is_gone(self, connection_id: ConnectionId) -> bool:
        """Return whether a connection of that id was removed."""
        from headgate.store.changes import accounts
        from headgate.store.maintenance.sqlite_home import reading_store

        with reading_store(self._home) as database:
            return accounts.is_gone(database, connection_id)

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
    def to_read(self) -> Generator[SqliteSide]:
        """Open the store as the source of a copy."""
        from headgate.store.maintenance.sqlite_home import blob_files, reading_store
        from headgate.store.maintenance.sqlite_side import SqliteSide

        with reading_store(self._home) as database:
            yield SqliteSide(database, blob_files(self._home))

    @contextmanager
    def to_fill(self) -> Generator[SqliteSide]:
        """Open the store as the target of a copy; one that is not there is made."""
        from headgate.store.maintenance.sqlite_side import side_to_fill
        from headgate.store.sqlite.database import translate_errors

        side = side_to_fill(self._home)
        try:
            with translate_errors():
                yield side
        finally:
            side.database.finish()


def copy_store(source: Home, target: Home, progress: Progress) -> Moved:
    """Copy the records of a home into another place, whole, or so far that the next call goes on."""
    from headgate.store.maintenance import copying

    with commands_of(source).to_read() as read, commands_of(target).to_fill() as filled:
        return copying.copy_store(read, filled, progress)


def back_up_encrypted(
    home: Home, target: Path, progress: Progress, *, passphrase: str, names: Sequence[str] = ()
) -> Copied:
    """Copy a home's store, its files and the named files into one file that a passphrase opens."""
    from headgate.store.maintenance import encrypted_backup

    encrypted_backup.refuse_existing(target)
    with encrypted_backup.workplace(home) as place:
        copied = commands_of(home).back_up(place, progress, names=names)
        encrypted_backup.pack(place, target, passphrase)
    return copied


def backup_to_send(home: Home, passphrase: str, *, names: Sequence[str]) -> IO[bytes]:
    """Copy a home as `back_up_encrypted` does, into an open file without a name: closed, it is gone."""
    import tempfile

    from headgate.store.maintenance import encrypted_backup

    with encrypted_backup.workplace(home) as place:
        commands_of(home).back_up(place, lambda _done, _total: None, names=names)
        file = tempfile.TemporaryFile(dir=home.path)  # noqa: SIM115 - the caller sends and closes it
        try:
            encrypted_backup.write_packed(place, file, passphrase)
            file.seek(0)
        except BaseException:
            file.close()
            raise
    return file


def make_role(home: Home, password: str) -> str:
    """Make a role of the database that sees one home alone; returns its name."""
    if not isinstance(home, HomeInDatabase):
        raise ConfigInvalid(
            "The records of this home are in a file, which needs no role.",
            hint="Set store_url to a database.",
        )
    from headgate.store.postgres import migrate

    return migrate.make_role(home.url, migrate.open_place(home.url, home.name, makes=False), password)


def is_encrypted_backup(source: Path) -> bool:
    """Return whether a passphrase is needed for a backup."""
    from headgate.store.maintenance import encrypted_backup

    return encrypted_backup.is_encrypted_backup(source)


@contextmanager
def decrypted_backup(source: Path, home: Home, passphrase: str) -> Generator[Path]:
    """Return the directory of an encrypted backup, inside the home, while the block runs."""
    from headgate.store.maintenance import encrypted_backup

    with encrypted_backup.workplace(home) as place:
        encrypted_backup.unpack(source, place, passphrase)
        yield place


def verify_backup(source: Path, progress: Progress) -> Copied:
    """Check a backup; change nothing."""
    from headgate.store.maintenance import backup

    return backup.verify(source, progress)
