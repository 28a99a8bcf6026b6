"""A store whose file cannot be written: reads go on, and every write is refused with the reason.

Lost permissions and file systems that were mounted for reading alone look the same from here; a disk that was full
when the file was opened is another reason.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from headgate.errors import StorageFull, StorageReadOnly
from headgate.home import has_room
from headgate.store.changes import word_index
from headgate.store.changes.writer import IdleTask, Writer
from headgate.store.sql.database import Database, refuse_unfinished_copy
from headgate.store.sql.word_segments import is_current
from headgate.store.sqlite.database import SqliteDatabase, open_reader, open_writer, translate_errors
from headgate.store.sqlite.migrate import all_migrations, migrate, version_of
from headgate.tasks import Supervisor


class NoWriter:
    """Takes the place of the writer, and refuses every job."""

    is_able = False

    def __init__(self, reason: type[StorageReadOnly | StorageFull] = StorageReadOnly) -> None:
        self._reason = reason

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left for idle tasks to do."""
        return True

    def refuse_without_room(self) -> NoReturn:
        """Refuse."""
        raise self._reason

    async def run(
        self, work: Callable[[Database], Any], *, in_transaction: bool = True, is_small: bool = False
    ) -> NoReturn:
        """Refuse."""
        del work, in_transaction, is_small
        raise self._reason

    async def run_alone(self, work: Callable[[Database], Any], *, is_small: bool = False) -> NoReturn:
        """Refuse."""
        await self.run(work, is_small=is_small)

    async def close(self) -> None:
        """There is nothing to finish."""


def start_writer(
    path: Path, *, idle_tasks: Sequence[IdleTask] = (), supervisor: Supervisor | None = None
) -> Writer | NoWriter:
    """Open a file for writing and bring it up to date; or, if it can only be read, use it as it is."""
    try:
        return Writer(
            _open_newest(path),
            idle_tasks=(word_index.WordFilling(), *idle_tasks),
            has_room=functools.partial(has_room, path.parent),
            supervisor=supervisor,
        )
    except (StorageReadOnly, StorageFull) as trouble:
        _refuse_unless_newest(path)
        return NoWriter(type(trouble))


def _open_newest(path: Path) -> SqliteDatabase:
    database = open_writer(path)
    try:
        with translate_errors(database):
            migrate(database, all_migrations())
            refuse_unfinished_copy(database)
            word_index.bring_up_to_date(database, word_index.OPENING_SECONDS)
    except BaseException:
        database.db.close()
        raise
    return database


def _refuse_unless_newest(path: Path) -> None:
    if not path.exists():
        raise StorageReadOnly(f"There is no store in {path.parent}, and none can be made there.")
    reader = open_reader(path)
    try:
        refuse_unfinished_copy(reader)
        is_newest = version_of(reader) == all_migrations()[-1].number and is_current(reader)
    finally:
        reader.db.close()
    if not is_newest:
        raise StorageReadOnly("The store is of an older version, and cannot be brought to this one.")
