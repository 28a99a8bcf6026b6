"""What ``headgate store`` does to a home, beside a program that may be using it.

This is the one module of the store that the command line imports. It needs no extra itself: every function imports
what it needs when it is called, which also keeps the shortest command from loading what the longest one needs.
"""
# ruff: noqa: PLC0415 - for that reason

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from headgate.errors import ConfigInvalid
from headgate.home import Home, HomeInDatabase
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.maintenance import CheckReport, Copied, Erased, Moved, Progress, StoreStats

if TYPE_CHECKING:
    from headgate.store.maintenance.copying import StoreSide


class StoreCommands(Protocol):
    """What an engine does to one home."""

    def stats(self) -> StoreStats:
        """Measure what the store holds."""
        ...

    def check(self, progress: Progress) -> CheckReport:
        """Check every record."""
        ...

    def back_up(self, target: Path, progress: Progress, *, names: Sequence[str] = ()) -> Copied:
        """Copy the store and its files into a new directory, and the named files of the home."""
        ...

    def restore(self, source: Path, progress: Progress, *, end_at: int | None) -> Copied:
        """Check a backup and put it into the home, which must have no store; with a time, its credentials are ended."""
        ...

    def erase_connection(self, connection_id: ConnectionId) -> Erased:
        """Erase a connection with all its records and files."""
        ...

    def erase_record(
        self, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId
    ) -> Erased: ...

    def to_read(self) -> AbstractContextManager[StoreSide]:
        """Open the store as the source of a copy."""
        ...

    def to_fill(self) -> AbstractContextManager[StoreSide]:
        """Open the store as the target of a copy; one that is not there is made."""
        ...


def commands_of(home: Home) -> StoreCommands:
    """Return what can be done to a home, wherever its records are."""
    if isinstance(home, HomeInDatabase):
        from headgate.store.engines.postgres_commands import PostgresCommands

        return PostgresCommands(home)
    from headgate.store.engines.sqlite_commands import SqliteCommands

    return SqliteCommands(home)


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
        made = tempfile.TemporaryFile(dir=home.path)  # noqa: SIM115 - the caller sends and closes it
        try:
            encrypted_backup.write_packed(place, made, passphrase)
            made.seek(0)
        except BaseException:
            made.close()
            raise
    return made


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
