"""Bring a file to the schema of this version: numbered steps forward, each whole or not at all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from headgate.errors import StorageUnusable
from headgate.store.format.columns import Column, ColumnKind
from headgate.store.sqlite.database import SqliteDatabase, connect, create_private
from headgate.system import sync_directory

_NAME = re.compile(r"(\d{4})_\w+\.sql")
_PAGES_AT_ONCE = 512
#: The step from which on typed tables hold the exact values of numbers.
_EXACT_VALUES = "_exact_values.sql"


@dataclass(frozen=True, slots=True)
class Migration:
    """One step: its number and its statements."""

    number: int
    name: str
    sql: str


def all_migrations() -> tuple[Migration, ...]:
    """Return every step, in order."""
    steps = [
        Migration(int(match[1]), file.name, file.read_text(encoding="utf-8"))
        for file in files("headgate.store.sqlite").joinpath("migrations").iterdir()
        if (match := _NAME.fullmatch(file.name))
    ]
    return tuple(sorted(steps, key=lambda step: step.number))


def migrate(database: SqliteDatabase, steps: tuple[Migration, ...]) -> int:
    """Take the steps that the file has not taken; a file that holds records is backed up first.

    Gives the number of steps taken.
    """
    at = version_of(database)
    newest = steps[-1].number
    if at > newest:
        raise StorageUnusable(
            f"The store was made by a newer version (schema {at}, this program knows {newest}).",
            hint="Use that version, or restore a backup made before it.",
        )
    missing = [step for step in steps if step.number > at]
    if missing and at > 0:
        backup(database, database.path.with_name(f"{database.path.name}.before-{missing[0].number:04}"))
    for step in missing:
        with database.writing():
            # Another process may have taken the step while this one waited for its turn.
            if version_of(database) < step.number:
                database.run(step.sql)
                if step.name.endswith(_EXACT_VALUES):
                    _add_exact_columns(database)
                database.run(f"PRAGMA user_version={step.number}")
    return len(missing)


def _add_exact_columns(database: SqliteDatabase) -> None:
    for stid, number in database.all(database.sql["columns_without_scale"]):
        database.dialect.add_typed_column(database, stid, Column(number, ColumnKind.SCALED))


def version_of(database: SqliteDatabase) -> int:
    """Return which step a file has taken last; 0 for a new one."""
    version: int = database.value("PRAGMA user_version")
    return version


def backup(
    database: SqliteDatabase, target: Path, progress: Callable[[int, int], None] = lambda _done, _total: None
) -> None:
    """Copy the store as it is at one commit, while others go on using it, and check the copy."""
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    create_private(partial)
    copy = connect(str(partial))
    try:
        with database.reading(float("inf")):
            _copy(database, copy, progress)
        copy.execute("PRAGMA journal_mode=delete").fetchall()
        is_good = copy.execute("PRAGMA quick_check").fetchall() == [("ok",)]
        copy.close()
        if is_good:
            partial.replace(target)
            sync_directory(target.parent)
    finally:
        copy.close()
        partial.unlink(missing_ok=True)
    if not is_good:
        raise StorageUnusable("The copy is damaged; it was not kept.", hint="Run 'headgate store fsck'.")


def _copy(database: SqliteDatabase, copy: Any, progress: Callable[[int, int], None]) -> None:
    """Copy page by page. The transaction around it has read: so it sees one state, whatever is written meanwhile."""
    version_of(database)
    with copy.backup("main", database.db, "main") as running:
        while not running.done:
            running.step(_PAGES_AT_ONCE)
            progress(running.page_count - running.remaining, running.page_count)
