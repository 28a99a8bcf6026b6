"""Retention of changes: remove what no bookmark may ask for any more.

A bookmark is valid for a number of days. What happened before that is never asked for again, so the keys of records
that were deleted then, and what other records were before they changed, are removed. One row a day notes which
change number the store had. The work is done in small steps, each in one transaction: a process that is stopped
leaves the rest to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headgate.model.ids import BlobId
from headgate.model.instants import DAY_US
from headgate.model.plan import BOOKMARK_DAYS
from headgate.store.changes.erase import remove_gone
from headgate.store.sql.database import Database

#: A session that began with the oldest bookmark may go on for a day, and days are counted whole.
KEEP_DAYS = BOOKMARK_DAYS + 2
_ROWS_AT_ONCE = 500


#: The first place in the order of the life table: a row number, and the number of a change.
_BEGINNING = (0, 0)


class ChangeRetention:
    """An idle task that removes old changes, by the clock."""

    name = "old changes"

    __slots__ = ("_after", "_now")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        self._after = _BEGINNING

    def plan(self, database: Database) -> bool:
        today = self._now() // DAY_US
        return _is_undated(database, today) or _last_old_change(database, today) is not None

    def step(self, database: Database) -> bool:
        today = self._now() // DAY_US
        with database.writing():
            if _is_undated(database, today):
                database.run(database.sql["note_day"], (today,))
            last = _last_old_change(database, today)
            if last is None:
                return False
            self._after = _remove_changes(database, last, self._after)
            if self._after == _BEGINNING:
                database.run(database.sql["delete_days"], (today - KEEP_DAYS,))
        return True


def _is_undated(database: Database, today: int) -> bool:
    return database.one(database.sql["has_undated_changes"], (today,)) is not None


def _last_old_change(database: Database, today: int) -> int | None:
    """Find the last change number that is old enough; None if everything that old was removed before."""
    seq: int | None = database.value(database.sql["last_change_before"], (today - KEEP_DAYS,))
    return seq


def _remove_changes(database: Database, last: int, after: tuple[int, int]) -> tuple[int, int]:
    """Remove some changes up to a number; returns the place to go on from, or the beginning when all are gone."""
    # Bookmarks are refused first: a client must not be given half of what happened.
    database.run(database.sql["raise_pruned_seq"], (last,))
    rows = database.all(database.sql["some_lives"], (last, *after, _ROWS_AT_ONCE))
    database.many(database.sql["delete_life"], [(rid, seq) for rid, seq, _ in rows if seq <= last])
    database.many(
        database.sql["delete_record_row"], [(rid,) for rid, _, is_old_tombstone in rows if is_old_tombstone]
    )
    return _BEGINNING if len(rows) < _ROWS_AT_ONCE else (rows[-1][0], rows[-1][1])


HOUR_US = 3600 * 1_000_000
#: How long a file may wait for the record that uses it.
WAIT_US = 24 * HOUR_US
_AT_ONCE = 500

#: Removes the bytes of files, inside the writer's transaction.
RemoveFiles = Callable[[Database, Sequence[BlobId]], None]


class UnusedFiles:
    """An idle task: once an hour, by the clock, remove the files that were unused an hour ago and still are.

    Their records changed, or went, or never came. A file is stored before the record that uses it, so one that was stored
    lately stays. One that was in use may be being read: it goes when it is found unused a second time.
    """

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
        del database
        return self._now() >= self._next_at

    def step(self, database: Database) -> bool:
        now = self._now()
        stored_before = now - WAIT_US
        unused = [BlobId(row[0]) for row in database.all(database.sql["unused_blobs"], (stored_before,))]
        self._unused_since = {blob_id: self._unused_since.get(blob_id, now) for blob_id in unused}
        due = [blob_id for blob_id, since in self._unused_since.items() if since <= now - HOUR_US]
        if due:
            with database.writing():
                rows = [(blob_id, stored_before) for blob_id in due[:_AT_ONCE]]
                database.many(database.sql["delete_unused_blob"], rows)
                database.many(database.sql["note_gone_blob"], [(blob_id,) for blob_id, _ in rows])
        if database.one(database.sql["gone_blobs"]) is not None:
            # After the rows that name them: a process that is stopped in between leaves a whole store.
            remove_gone(database, lambda gone: self._remove(database, gone))
        self._remove_unfinished(now)
        if len(due) <= _AT_ONCE:
            self._next_at = now + HOUR_US
        return len(due) > _AT_ONCE
