"""A store whose file cannot be written: what is there is read on, and every write says why it cannot be.

Lost permissions and file systems that were mounted for reading alone look the same from here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from headgate.errors import StorageReadOnly
from headgate.store.sqlite.database import Database, open_reader, open_writer, translate_errors
from headgate.store.sqlite.migrate import all_migrations, migrate, version_of
from headgate.store.sqlite.writer import IdleTask, Writer


class NoWriter:
    """Stands where the writer would, and refuses."""

    is_able = False

    @property
    def is_settled(self) -> bool:
        """Whether all that idle time is used for has been done."""
        return True

    async def run(self, work: Callable[[Database], Any], *, in_transaction: bool = True) -> NoReturn:
        """Refuse.

        Raises:
            StorageReadOnly: always.
        """
        del work, in_transaction
        raise StorageReadOnly

    async def run_alone(self, work: Callable[[Database], Any]) -> NoReturn:
        """Refuse.

        Raises:
            StorageReadOnly: always.
        """
        await self.run(work)

    async def close(self) -> None:
        """There is nothing to finish."""


def start_writer(path: Path, *, idle_tasks: Sequence[IdleTask] = ()) -> Writer | NoWriter:
    """Open a file for writing and bring it to the newest schema; or, if it can only be read, take it as it is.

    Raises:
        StorageReadOnly: it cannot be written, and there is none, or it is not of this version.
    """
    try:
        return Writer(_open_newest(path), idle_tasks=idle_tasks)
    except StorageReadOnly:
        _refuse_unless_newest(path)
        return NoWriter()


def _open_newest(path: Path) -> Database:
    database = open_writer(path)
    try:
        with translate_errors(database):
            migrate(database, all_migrations())
    except BaseException:
        database.db.close()
        raise
    return database


def _refuse_unless_newest(path: Path) -> None:
    if not path.exists():
        raise StorageReadOnly(f"There is no store in {path.parent}, and none can be made there.")
    reader = open_reader(path)
    try:
        found = version_of(reader)
    finally:
        reader.db.close()
    if found != all_migrations()[-1].number:
        raise StorageReadOnly("The store is of an older version, and cannot be brought to this one.")
