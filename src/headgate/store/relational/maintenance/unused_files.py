"""Remove the bytes of files that no record uses any more: their records changed, or went, or never came.

A file is stored before the record that uses it, so one that was stored lately stays. One that was in use may be being
read: it goes when it is found unused a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headgate.model.ids import BlobId
from headgate.store.relational.database import Database
from headgate.store.relational.maintenance.erase import remove_gone

HOUR_US = 3600 * 1_000_000
#: How long a file may wait for the record that uses it.
WAIT_US = 24 * HOUR_US
_AT_ONCE = 500

#: Removes the bytes of files, inside the writer's transaction.
RemoveFiles = Callable[[Database, Sequence[BlobId]], None]


class UnusedFiles:
    """An idle task: once an hour, by the clock, remove the files that were unused an hour ago and still are."""

    name = "unused files"

    __slots__ = ("_next_at", "_now", "_remove", "_remove_unfinished", "_unused_since")

    def __init__(
        self,
        now: Callable[[], int],
        remove: RemoveFiles,
        remove_unfinished: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._now = now
        self._remove = remove
        self._remove_unfinished = remove_unfinished
        self._next_at = 0
        self._unused_since: dict[BlobId, int] = {}

    def plan(self, database: Database) -> bool:
        """Return whether it is time to look."""
        del database
        return self._now() >= self._next_at

    def step(self, database: Database) -> bool:
        """Remove some files; returns whether more are left."""
        now = self._now()
        with database.writing():
            unused = [BlobId(row[0]) for row in database.all(database.sql["unused_blobs"], (now - WAIT_US,))]
            self._unused_since = {one: self._unused_since.get(one, now) for one in unused}
            due = [one for one, since in self._unused_since.items() if since <= now - HOUR_US]
            rows = [(one,) for one in due[:_AT_ONCE]]
            database.many(database.sql["note_gone_blob"], rows)
            database.many(database.sql["delete_blob"], rows)
        # After the rows that name them: a process that is stopped in between leaves a whole store.
        remove_gone(database, lambda gone: self._remove(database, gone))
        self._remove_unfinished(now)
        if len(due) <= _AT_ONCE:
            self._next_at = now + HOUR_US
        return len(due) > _AT_ONCE
