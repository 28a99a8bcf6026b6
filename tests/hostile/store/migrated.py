"""F23: kill a process at each write it makes while it migrates a store, and look at what it left.

``python -m tests.hostile.store.migrated PLACE`` works on copies of PLACE/home and prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

from headgate.store.sqlite import FILE
from headgate.store.sqlite.database import SqliteDatabase, open_writer
from headgate.store.sqlite.migrate import Migration, all_migrations, migrate, version_of
from tests.hostile.store.disks import Disk, Effect, watched

_NEWEST = all_migrations()[-1].number
#: Steps that a later version may take: each changes the schema and the rows, so that half of one would show.
STEPS = (
    *all_migrations(),
    Migration(
        _NEWEST + 1,
        "a.sql",
        "ALTER TABLE shelf ADD COLUMN noted INTEGER; UPDATE shelf SET noted = live; "
        "CREATE TABLE noted(rid INTEGER PRIMARY KEY) STRICT; INSERT INTO noted SELECT rid FROM record;",
    ),
    Migration(_NEWEST + 2, "b.sql", "INSERT INTO meta VALUES('b', 2); DELETE FROM noted WHERE rid % 2;"),
)


@dataclass
class DeadlyDisk(Disk):
    """Kills its own process instead of doing one of the writes."""

    kill_at: int = 0

    def note(self, effect: Effect) -> None:
        del effect
        self.calls += 1
        if self.calls == self.kill_at:
            os.kill(os.getpid(), signal.SIGKILL)


def migrate_and_die(path: Path, kill_at: int) -> bool:
    """Migrate in a child that dies at one write; says whether it died."""
    child = os.fork()
    if child == 0:
        with watched(DeadlyDisk(kill_at=kill_at)) as vfs:
            database = open_writer(path, vfs=vfs)
            migrate(database, STEPS)
            database.db.close()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def look(path: Path) -> str:
    """Say which version is there, whether it is whole, and whether what came before it was kept."""
    database = open_writer(path)
    version = version_of(database) - _NEWEST
    tables = {name for (name,) in database.all("SELECT name FROM sqlite_schema")}
    rows: int = database.value("SELECT count(*) FROM record")
    noted = database.value("SELECT count(*) FROM noted") if "noted" in tables else None
    is_whole = (noted, _has_b(database)) == ((None, False), (rows, False), (rows // 2, True))[version]
    is_whole = is_whole and database.all("PRAGMA integrity_check") == [("ok",)]
    migrate(database, STEPS)
    is_resumed = version_of(database) == STEPS[-1].number and _has_b(database)
    database.db.close()
    has_copy = path.with_name(f"{FILE}.before-{_NEWEST + 1:04}").exists()
    return f"{version} {'whole' if is_whole and is_resumed and has_copy else 'BROKEN'}"


def _has_b(database: SqliteDatabase) -> bool:
    return database.one("SELECT 1 FROM meta WHERE k='b'") is not None


def run(place: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    kill_at, died = 0, True
    while died:
        kill_at += 1
        copy = place / f"copy{kill_at}"
        shutil.copytree(place / "home", copy)
        died = migrate_and_die(copy / FILE, kill_at)
        state = look(copy / FILE)
        found[state] = found.get(state, 0) + 1
        shutil.rmtree(copy)
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(run(Path(sys.argv[1]))) + "\n")
