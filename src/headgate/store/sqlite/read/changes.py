"""Changes: what is different, for one reach, between two change numbers.

Computed on the projection: a change of a field outside the reach is no change. A record that left the reach
is told as a tombstone, and only to those who could see it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.errors import CursorExpired
from headgate.model.ids import RecordId
from headgate.model.plan import ChangesPlan, Reach
from headgate.model.record import Record, Tombstone
from headgate.model.rows import Changes
from headgate.store.sqlite.catalog import Catalog, Shelf
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.read.rows import COLUMNS, RecordMaker
from headgate.store.sqlite.row_numbers import RID_SHIFT
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.derive import ALL_FIELDS

_AT_ONCE = 200
_MANY = 5000
_CANDIDATE = f"{COLUMNS}, r.seq, r.born_seq, r.ts, r.deleted, r.changed"


def changes(database: Database, catalog: Catalog, plan: ChangesPlan) -> Changes:
    """Read a page of changes.

    Raises:
        CursorExpired: changes since then are no longer known.
    """
    now, pruned = _numbers(database)
    horizon = now if plan.horizon is None else plan.horizon
    if plan.since > now or horizon > now or 0 < plan.since < pruned:
        raise CursorExpired
    session = _Session(plan.reach, plan.since, horizon)
    maker = RecordMaker(database, catalog, plan.reach.fields, preview_chars=plan.preview_chars)
    entries: list[Record | Tombstone] = []
    last = plan.after or 0
    for row in _candidates(database, catalog.shelves_of(plan.reach), plan, last):
        entry = _entry(database, catalog, session, maker, row)
        if entry is None:
            continue
        if len(entries) == plan.limit:
            return Changes(tuple(entries), horizon, last)
        entries.append(entry)
        last = row[0]
    return Changes(tuple(entries), horizon, None)


def _numbers(database: Database) -> tuple[int, int]:
    rows = dict(database.all(SQL["change_numbers"]))
    return rows["seq"], rows["pruned_seq"]


@dataclass(frozen=True, slots=True)
class _State:
    is_live: bool
    ts: int | None


@dataclass(frozen=True, slots=True)
class _Session:
    reach: Reach
    since: int
    horizon: int

    def covers(self, record_id: str, state: _State) -> bool:
        """Say whether a record of this key is inside the reach in that state."""
        reach, ts = self.reach, state.ts
        if not state.is_live:
            return False
        if reach.resources is not None and record_id not in reach.resources:
            return False
        if reach.time is None:
            return True
        if ts is None:
            return False
        after_start = reach.time.since is None or ts >= reach.time.since
        return after_start and (reach.time.until is None or ts < reach.time.until)


def _candidates(
    database: Database, shelves: Iterable[Shelf], plan: ChangesPlan, after: int
) -> Iterator[Sequence[Any]]:
    """Give every record that may have changed, in the order records first came in.

    That order, unlike the order of changes, does not depend on what happened to hidden fields.
    """
    for shelf in sorted(shelves, key=lambda shelf: shelf.sid):
        start, end = max(after, shelf.sid << RID_SHIFT), (shelf.sid + 1) << RID_SHIFT
        if start >= end:
            continue
        if plan.since == 0 or _are_many(database, shelf, plan.since, start):
            yield from _by_age(database, plan.since, start, end)
        else:
            yield from _by_seq(database, shelf, plan.since, start)


def _are_many(database: Database, shelf: Shelf, since: int, start: int) -> bool:
    """Say whether walking the shelf once, page by page, is less work than sorting its changes for every page."""
    count: int = database.value(
        SQL["count_changes"],
        (shelf.sid, since, start, _MANY),
    )
    return count == _MANY


def _by_age(database: Database, since: int, start: int, end: int) -> Iterator[Sequence[Any]]:
    # Those who have seen nothing yet need not be told of what is gone.
    gone = " AND r.deleted = 0" if since == 0 else ""
    while True:
        rows = database.all(
            f"SELECT {_CANDIDATE} FROM record r WHERE r.rid > ? AND r.rid < ? AND r.seq > ?{gone} "
            "ORDER BY r.rid LIMIT ?",
            (start, end, since, _AT_ONCE),
        )
        yield from rows
        if len(rows) < _AT_ONCE:
            return
        start = rows[-1][0]


def _by_seq(database: Database, shelf: Shelf, since: int, start: int) -> Iterator[Sequence[Any]]:
    rids = database.all(
        SQL["changed_rids"],
        (shelf.sid, since, start),
    )
    for (rid,) in rids:
        row = database.one(f"SELECT {_CANDIDATE} FROM record r WHERE r.rid = ?", (rid,))
        assert row is not None
        yield row


def _entry(
    database: Database, catalog: Catalog, session: _Session, maker: RecordMaker, row: Sequence[Any]
) -> Record | Tombstone | None:
    rid, sid, record_id, emitted_at = row[:4]
    seq, born_seq, ts, deleted, changed = row[7:]
    now = _State(not deleted, ts)
    lives: list[tuple[Any, ...]] = []
    if deleted or changed is not None:
        lives = database.all(SQL["lives"], (rid,))
    then, at_horizon = _state_at(session.since, lives, now), _state_at(session.horizon, lives, now)
    saw = born_seq <= session.since and session.covers(record_id, then)
    sees = born_seq <= session.horizon and session.covers(record_id, at_horizon)
    if saw and not sees:
        shelf = catalog.by_sid[sid]
        number, left_at = _left(session, record_id, lives, now)
        # What happened to it out of the reader's sight, even its end, is not told.
        at = emitted_at if deleted and number == seq else left_at
        return Tombstone(shelf.connection_id, shelf.stream.declaration.name, RecordId(record_id), at, at)
    if not sees or not session.covers(record_id, now):
        return None
    if saw and not _changed_between(session, changed, born_seq):
        return None
    return maker.make(row)


def _left(session: _Session, record_id: str, lives: Sequence[Sequence[Any]], now: _State) -> tuple[int, int]:
    """Give the change by which a record last left the reach, and when that came in."""
    left, is_inside = (0, 0), True
    for number, _, _, at in lives:
        if session.since < number <= session.horizon:
            was_inside, is_inside = is_inside, session.covers(record_id, _state_at(number, lives, now))
            if was_inside and not is_inside:
                left = (number, at)
    return left


def _state_at(number: int, lives: Sequence[Sequence[Any]], now: _State) -> _State:
    """Give what a record was right after a change number: what it was before the next change of its life."""
    for seq, was_live, was_ts, _ in lives:
        if seq > number:
            return _State(bool(was_live), was_ts)
    return now


def _changed_between(session: _Session, changed: bytes | None, born_seq: int) -> bool:
    numbers: dict[str, int] = msgspec.msgpack.decode(changed) if changed else {}
    rest = numbers.get(ALL_FIELDS, born_seq)
    return any(session.since < numbers.get(name, rest) <= session.horizon for name in session.reach.fields)
