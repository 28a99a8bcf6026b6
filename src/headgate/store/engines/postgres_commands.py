"""What maintenance does to a home whose records are in PostgreSQL.

A backup is the same directory that a SQLite store gives: the records of one state, copied into a file. So it can be
restored into a file as well as into a database.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from headgate.errors import StorageUnusable
from headgate.home import Home, HomeInDatabase
from headgate.model.ids import BlobId, ConnectionId, RecordId, StreamName
from headgate.model.maintenance import CheckReport, Copied, EndedCredentials, Erased, Progress, StoreStats
from headgate.store.changes import accounts, erase
from headgate.store.maintenance import backup, copying, fsck
from headgate.store.maintenance.backup import end_credentials
from headgate.store.maintenance.postgres_side import PostgresSide
from headgate.store.maintenance.sqlite_side import finish_file, side_to_fill
from headgate.store.maintenance.stats import TakenSpace, stats
from headgate.store.postgres.blobs import BlobRows, remove_parts
from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL
from headgate.store.postgres.migrate import open_place, place_to_fill

#: The tables that hold anything of a record.
_RECORD_TABLES = (
    "record", "typed", "child_key", "life", "chunk", "blob", "blob_part", "blob_use", "invalid",
    "word_segment", "word_leaf", "word_gone", "vector_block", "vector_stale", "idempotency", "connection", "shelf", "kept_cursor",
)  # fmt: skip


class PostgresCommands:
    """Has the methods of `commands.SqliteCommands`."""

    def __init__(self, home: HomeInDatabase) -> None:
        self._home = home

    def stats(self) -> StoreStats:
        """Measure what the home holds; the space is that of all homes of the database."""
        with _opened(self._existing()) as database:
            return stats(database, lambda: _space(database))

    def check(self, progress: Progress) -> CheckReport:
        """Check every record. The files of the database are the server's to check."""
        with _opened(self._existing()) as database:
            return fsck.check_records(database, BlobRows(database.place), progress)

    def back_up(self, target: Path, progress: Progress, *, names: Sequence[str] = ()) -> Copied:
        """Copy the records of one state into a file, with the files that they refer to."""
        with self.to_read() as source:
            return backup.back_up(_RowCopy(source, progress), self._home, target, names=names)

    def restore(self, source: Path, progress: Progress, *, end_at: int | None) -> Copied:
        """Check a backup and copy it into the home, which must be empty in the database."""
        with backup.restoring(source, self._home, progress) as (copy, copied), self.to_fill() as target:
            ended = EndedCredentials()

            def end() -> None:
                nonlocal ended
                if end_at is not None:
                    ended = end_credentials(target, end_at)

            copying.copy_store(copy, target, progress, before_opening=end)
        return replace(copied, ended=ended)

    def is_gone(self, connection_id: ConnectionId) -> bool:
        """Return whether a connection of that id was removed."""
        with _opened(self._existing()) as database:
            return accounts.is_gone(database, connection_id)

    def erase_connection(self, connection_id: ConnectionId) -> Erased:
        """Erase a connection with all its records and files."""
        with _opened(self._existing()) as database:
            return erase.erase_connection(database, _PostgresRemains(database), connection_id)

    def erase_record(self, connection_id: ConnectionId, *, stream: StreamName, record_id: RecordId) -> Erased:
        key = erase.hash_key(self._home)
        with _opened(self._existing()) as database:
            remains = _PostgresRemains(database)
            return erase.erase_record(
                database, remains, connection_id, stream=stream, record_id=record_id, key=key
            )

    @contextmanager
    def to_read(self) -> Generator[PostgresSide]:
        """Open the home as the source of a copy."""
        with _opened(self._existing()) as database:
            yield PostgresSide(database)

    @contextmanager
    def to_fill(self) -> Generator[PostgresSide]:
        """Open the home as the target of a copy; one that is not there is made."""
        with _opened(place_to_fill(self._home.url, self._home.name)) as database:
            yield PostgresSide(database)
            # Without it the server would choose indexes by guesses until it counts by itself.
            database.run(SQL["gather_statistics"])

    def _existing(self) -> HomePlace:
        return open_place(self._home.url, self._home.name, makes=False)


@contextmanager
def _opened(place: HomePlace) -> Generator[PostgresDatabase]:
    database = PostgresDatabase(place)
    try:
        with translated():
            yield database
    finally:
        database.finish()


def _space(database: PostgresDatabase) -> TakenSpace:
    ((schema, size),) = database.all(SQL["space_of_tables"])
    return TakenSpace(schema, size, 0, is_shared=True)


class _RowCopy:
    """Implements `backup.StoreCopy`: the rows of one state, in a file."""

    def __init__(self, source: PostgresSide, progress: Progress) -> None:
        self._source = source
        self._progress = progress

    def write(self, directory: Path) -> None:
        target = side_to_fill(Home(directory))
        try:
            copying.copy_store(self._source, target, self._progress)
        finally:
            finish_file(target.database)


class _PostgresRemains:
    """Implements `changes.erase.Remains`."""

    def __init__(self, database: PostgresDatabase) -> None:
        self._database = database

    def remove_blobs(self, blob_ids: Sequence[BlobId]) -> None:
        remove_parts(self._database, blob_ids)

    def forget_cursors(self) -> None:
        self._database.run(SQL["drop_cursors"])

    def remove_copies(self) -> int:
        """Nothing is copied before a migration here."""
        return 0

    def remove_bytes(self) -> None:
        refused = [text for text in self._vacuum() if "skipping" in text]
        if refused:
            raise StorageUnusable(
                "What was erased is gone from every read, but this role may not free its space.",
                hint=f"Run VACUUM {', '.join(_RECORD_TABLES)} as the owner of the tables.",
            )

    def _vacuum(self) -> Iterator[str]:
        connection = self._database.connected()
        notices: list[str] = []

        def note(diagnostic: object) -> None:
            notices.append(str(getattr(diagnostic, "message_primary", "")))

        connection.add_notice_handler(note)
        try:
            self._database.run(SQL["vacuum"].format(tables=", ".join(_RECORD_TABLES)))
        finally:
            connection.remove_notice_handler(note)
        yield from notices
