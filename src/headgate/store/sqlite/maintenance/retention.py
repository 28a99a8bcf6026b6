"""The horizon: how far back changes are known, and forgetting what lies behind it.

A bookmark lives for so many days and no longer, so nobody can ask for what happened before that: the keys of
records that were deleted then, and what others were before they changed, need not be kept. One note a day
says how old a change number is. Done in small steps, each a transaction of its own; whoever is stopped goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.model.plan import BOOKMARK_DAYS
from headgate.store.sqlite.catalog import bump_catalog
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.row_numbers import RID_SHIFT

#: A session that began with the oldest of bookmarks may be read on for a day; and days are counted whole.
KEEP_DAYS = BOOKMARK_DAYS + 2
_DAY_US = 24 * 3600 * 1_000_000
_AT_ONCE = 500


class ChangeRetention:
    """The steps that are still to be taken, by the clock."""

    __slots__ = ("_after", "_now")

    def __init__(self, now: Callable[[], int]) -> None:
        self._now = now
        #: The last place in the lives of records that has been looked at.
        self._after = (0, 0)

    def plan(self, database: Database) -> bool:
        """Say whether today is not noted yet, or something lies behind the horizon."""
        today = self._now() // _DAY_US
        return _is_unnoted(database, today) or _horizon(database, today) is not None

    def step(self, database: Database) -> bool:
        """Take one step; says whether more are left."""
        today = self._now() // _DAY_US
        with database.writing():
            if _is_unnoted(database, today):
                database.run("INSERT INTO change_day SELECT ?, v FROM meta WHERE k='seq'", (today,))
            horizon = _horizon(database, today)
            if horizon is None:
                return False
            self._after = _forget(database, horizon, self._after)
            if self._after == (0, 0):
                database.run("DELETE FROM change_day WHERE day < ?", (today - KEEP_DAYS,))
        return True


def _is_unnoted(database: Database, today: int) -> bool:
    """Say whether there are changes that no note covers, and none was made today."""
    row = database.one(
        "SELECT 1 FROM meta WHERE k='seq' AND v > (SELECT coalesce(max(seq), 0) FROM change_day) "
        "AND NOT EXISTS (SELECT 1 FROM change_day WHERE day=?)",
        (today,),
    )
    return row is not None


def _horizon(database: Database, today: int) -> int | None:
    """Give the last change number that is old enough; None: all that old was forgotten before."""
    seq: int | None = database.value("SELECT max(seq) FROM change_day WHERE day < ?", (today - KEEP_DAYS,))
    return seq


def _forget(database: Database, horizon: int, after: tuple[int, int]) -> tuple[int, int]:
    """Forget some of what lies behind a change number; gives the place to go on from, or the beginning."""
    # First: nobody may be told of half of what happened.
    database.run("UPDATE meta SET v = max(v, ?) WHERE k='pruned_seq'", (horizon,))
    rows = database.all(
        "SELECT l.rid, l.seq, r.deleted AND r.seq <= ?1 FROM life l LEFT JOIN record r ON r.rid = l.rid "
        "WHERE (l.rid, l.seq) > (?2, ?3) ORDER BY l.rid, l.seq LIMIT ?4",
        (horizon, *after, _AT_ONCE),
    )
    database.many("DELETE FROM life WHERE rid=? AND seq=?", [row[:2] for row in rows if row[1] <= horizon])
    _forget_tombstones(database, [rid for rid, _, is_gone in rows if is_gone])
    return (0, 0) if len(rows) < _AT_ONCE else (rows[-1][0], rows[-1][1])


def _forget_tombstones(database: Database, rids: Sequence[int]) -> None:
    for sid in {rid >> RID_SHIFT for rid in rids}:
        _drop_older_blocks(database, sid, [rid for rid in rids if rid >> RID_SHIFT == sid])
    database.many("DELETE FROM record WHERE rid=?", [(rid,) for rid in rids])


def _drop_older_blocks(database: Database, sid: int, rids: Sequence[int]) -> None:
    """Drop column blocks in which these records are still alive: nothing would tell their readers otherwise."""
    newest: Any = max(database.value("SELECT seq FROM record WHERE rid=?", (rid,)) for rid in rids)
    dropped = database.all(
        "UPDATE shelf SET col_seq=0 WHERE sid=? AND col_seq > 0 AND col_seq < ? RETURNING 1", (sid, newest)
    )
    if dropped:
        database.run("DELETE FROM column_block WHERE sid=?", (sid,))
        bump_catalog(database)
