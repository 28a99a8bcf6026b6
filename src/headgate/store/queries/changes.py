"""Changes: what is different, for one reach, between two change numbers.

Computed on the projection: a change of a field outside the reach is no change. A record that left the reach
is reported as a tombstone, and only to a reader that could see it before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import msgspec

from headgate.errors import CursorExpired, IntegrityBroken
from headgate.model.ids import RecordId
from headgate.model.plan import ChangesPlan, Reach
from headgate.model.record import Record, Tombstone
from headgate.model.rows import Changes
from headgate.store.format.records import ALL_FIELDS, RID_SHIFT, ChangeMark, change_marks
from headgate.store.format.streams import Shelf
from headgate.store.queries.rows import (
    COLUMNS,
    MAX_PAGE_BYTES,
    FoundColumns,
    FoundRow,
    RecordMaker,
    TooLargeHere,
    lost_row,
    row_bytes,
)
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

_AT_ONCE = 200
_MANY = 5000
#: How much one request looks at before it is answered with what it found, and with the place to go on from:
#: rows that a statement passes over count once, records that are compared as much as so many rows.
_WORK_MOST = 200_000
_WORK_PER_CANDIDATE = 20
#: In the event loop, where other requests wait: some milliseconds.
_LOOP_WORK = 10_000
#: How many rows one statement passes over at most.
_SPAN = 50_000
_CANDIDATE = f"{COLUMNS}, r.seq, r.born_seq, r.deleted"


class _Candidate(NamedTuple):
    """A record that may have changed: what a record is made of, and what decides whether it is given."""

    rid: int
    sid: int
    record_id: RecordId
    emitted_at: int
    ts: int | None
    long: bytes | None
    digest: bytes
    body: bytes | None
    changed: bytes | None
    #: The numbers of its last change, and of the one by which it first came in.
    seq: int
    born_seq: int
    is_deleted: bool

    @property
    def found(self) -> FoundColumns:
        """What the record is made of."""
        return cast("FoundColumns", self[: len(FoundRow._fields)])


class _Life(NamedTuple):
    """A change that may have moved a record in or out of a reach, and what the record was before it."""

    seq: int
    was_live: bool
    was_ts: int | None
    #: When the change came in.
    at: int


@dataclass(frozen=True, slots=True)
class _State:
    """What decides at one moment whether a record is in a reach, beside its key."""

    is_live: bool
    ts: int | None


@dataclass(frozen=True, slots=True)
class _ChangeSpan:
    """The reader's reach, and the two change numbers that are compared."""

    reach: Reach
    since: int
    horizon: int

    def covers(self, record_id: str, state: _State) -> bool:
        """Return whether a record of this key is inside the reach in that state."""
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


@dataclass(frozen=True, slots=True)
class _LostRow:
    """A record whose row cannot be read."""

    rid: int


@dataclass(frozen=True, slots=True)
class _Pause:
    """One request has looked at enough: the next one goes on after this row."""

    rid: int


@dataclass(slots=True)
class _WorkLeft:
    """How much this request may still look at."""

    rows: int

    def spend(self, *, rows: int = 0, candidates: int = 0) -> None:
        self.rows -= rows + candidates * _WORK_PER_CANDIDATE


def changes(database: Database, catalog: Catalog, plan: ChangesPlan) -> Changes:
    """Read a page of changes. It may hold fewer entries than asked for, or none, and still not be the last one."""
    now, pruned = _numbers(database)
    horizon = now if plan.horizon is None else plan.horizon
    if plan.since > now or horizon > now or 0 < plan.since < pruned:
        raise CursorExpired
    span = _ChangeSpan(plan.reach, plan.since, horizon)
    maker = RecordMaker(database, catalog, plan.reach, preview_chars=plan.preview_chars)
    entries: list[Record | Tombstone] = []
    last, left = plan.after or 0, min(MAX_PAGE_BYTES, database.most_bytes)
    space = left if plan.page_bytes is None else plan.page_bytes
    is_in_loop = database.most_bytes < MAX_PAGE_BYTES
    work = _WorkLeft(_LOOP_WORK if is_in_loop else _WORK_MOST)
    for candidate in _candidates(database, catalog.shelves_of(plan.reach), plan, last, work):
        if isinstance(candidate, _Pause):
            if is_in_loop:
                raise TooLargeHere
            return Changes(tuple(entries), horizon, candidate.rid, damaged=tuple(maker.damaged))
        if isinstance(candidate, _LostRow):
            maker.damaged += _lost(database, catalog, span, candidate.rid)
            continue
        entry = _entry(database, catalog, span, maker, candidate)
        if entry is None:
            continue
        left -= len(entry.body) if isinstance(entry, Record) else 0
        if left < 0 and is_in_loop:
            raise TooLargeHere
        space -= row_bytes(entry)
        is_cut = (left < 0 or space < 0) and bool(entries)
        if is_cut or len(entries) == plan.limit:
            return Changes(tuple(entries), horizon, last, is_cut=is_cut, damaged=tuple(maker.damaged))
        entries.append(entry)
        last = candidate.rid
    return Changes(tuple(entries), horizon, None, damaged=tuple(maker.damaged))


def _numbers(database: Database) -> tuple[int, int]:
    rows = dict(database.all(database.sql["change_numbers"]))
    return rows["seq"], rows["pruned_seq"]


# Which records may have changed


def _candidates(
    database: Database, shelves: Iterable[Shelf], plan: ChangesPlan, after: int, work: _WorkLeft
) -> Iterator[_Candidate | _LostRow | _Pause]:
    """Return every record that may have changed, in the order in which records first came in, or a pause.

    That order, unlike the order of changes, does not depend on what happened to hidden fields.
    """
    for shelf in sorted(shelves, key=lambda shelf: shelf.sid):
        start = max(after, shelf.sid << RID_SHIFT)
        if start >= (shelf.sid + 1) << RID_SHIFT:
            continue
        if plan.reach.resources is not None:
            keys = msgspec.json.encode(sorted(plan.reach.resources)).decode()
            rids = database.all(database.sql["changed_rids_by_key"], (shelf.sid, plan.since, start, keys))
            yield from _one_by_one(database, rids, plan.since, work)
        elif plan.since == 0 or _are_many(database, shelf, plan.since, start):
            yield from _by_age(database, shelf, plan, start, work)
        else:
            yield from _by_seq(database, shelf, plan.since, start, work)


def _are_many(database: Database, shelf: Shelf, since: int, start: int) -> bool:
    """Return whether walking the shelf once, page by page, is less work than sorting its changes for every page."""
    count: int = database.value(database.sql["count_changes"], (shelf.sid, since, start, _MANY))
    return count == _MANY


def _by_age(
    database: Database, shelf: Shelf, plan: ChangesPlan, start: int, work: _WorkLeft
) -> Iterator[_Candidate | _LostRow | _Pause]:
    where, values = _may_be_visible(database, plan)
    sql = database.sql["candidates_by_age"].format(columns=_CANDIDATE, where=where)
    try:
        end: int = database.value(database.sql["last_number"], (start, (shelf.sid + 1) << RID_SHIFT))
        while start < end:
            if work.rows <= 0:
                yield _Pause(start)
                return
            until = min(start + _SPAN, start + max(work.rows, _AT_ONCE), end)
            rows = database.all(sql, (start, until, plan.since, *values, _AT_ONCE))
            reached = rows[-1][0] if len(rows) == _AT_ONCE else until
            work.spend(rows=reached - start, candidates=len(rows))
            # Rows get their names one by one: a page seldom needs all of them.
            yield from map(_Candidate._make, rows)
            start = reached
    except database.damage:
        # Somewhere on the way to them: an index gives their numbers, and each is read by itself.
        yield from _by_seq(database, shelf, plan.since, start, work)


def _may_be_visible(database: Database, plan: ChangesPlan) -> tuple[str, tuple[int, ...]]:
    """Write the condition that a row must meet to be looked at, and what it binds.

    A reader that has seen nothing yet needs no tombstones. One that has may have seen a record that is outside of
    its time now, if anything of the record ever changed.
    """
    time = plan.reach.time
    bounds = [] if time is None else [(">=", time.since), ("<", time.until)]
    inside = [f"r.ts {operator} ?" for operator, bound in bounds if bound is not None]
    values = tuple(bound for _, bound in bounds if bound is not None)
    if plan.since == 0:
        return "".join(f" AND {condition}" for condition in (database.sql["is_live"], *inside)), values
    if not inside:
        return "", ()
    return (
        f" AND (r.changed IS NOT NULL OR NOT ({database.sql['is_live']}) OR {' AND '.join(inside)})",
        values,
    )


def _by_seq(
    database: Database, shelf: Shelf, since: int, start: int, work: _WorkLeft
) -> Iterator[_Candidate | _LostRow | _Pause]:
    rids = database.all(database.sql["changed_rids"], (shelf.sid, since, start))
    yield from _one_by_one(database, rids, since, work)


def _one_by_one(
    database: Database, rids: Iterable[tuple[int]], since: int, work: _WorkLeft
) -> Iterator[_Candidate | _LostRow | _Pause]:
    for (rid,) in rids:
        if work.rows <= 0:
            yield _Pause(rid - 1)
            return
        work.spend(candidates=1)
        try:
            rows = database.rows(_Candidate, database.sql["one_candidate"].format(columns=_CANDIDATE), (rid,))
        except database.damage:
            yield _LostRow(rid)
            continue
        yield from (row for row in rows if since or not row.is_deleted)


def _lost(database: Database, catalog: Catalog, span: _ChangeSpan, rid: int) -> list[RecordId]:
    """Name a live record whose row cannot be read, if it is certain that the reader may see it."""
    row, dialect = lost_row(database, rid), database.dialect
    declared = catalog.by_sid[rid >> RID_SHIFT].stream.declaration
    has_time = span.reach.time is None or declared.cursor_field == span.reach.time.field
    if row is None or not has_time:
        raise IntegrityBroken("A record in the store's file cannot be read.")
    state = _State(is_live=True, ts=dialect.shown_sort(row.sort) if span.reach.time is not None else None)
    return [row.record_id] if span.covers(row.record_id, state) else []


# What a reader gets of them


def _entry(
    database: Database, catalog: Catalog, span: _ChangeSpan, maker: RecordMaker, candidate: _Candidate
) -> Record | Tombstone | None:
    """Compare what the reader saw at the first number with what is there at the second.

    ============  ==============  ========================================================
    in the reach  in the reach    entry
    at ``since``  at ``horizon``
    ============  ==============  ========================================================
    no            no              none
    no            yes             the record
    yes           no              a tombstone
    yes           yes             the record if a field of the reach changed, otherwise none
    ============  ==============  ========================================================

    A record is given as it is now. If it left the reach after ``horizon`` there is no entry: the next session,
    which starts at ``horizon``, reports its end.
    """
    record_id = candidate.record_id
    now = _State(not candidate.is_deleted, candidate.ts)
    lives = _lives(database, candidate)
    was_visible = candidate.born_seq <= span.since and span.covers(
        record_id, _state_at(span.since, lives, now)
    )
    is_visible = candidate.born_seq <= span.horizon and span.covers(
        record_id, _state_at(span.horizon, lives, now)
    )
    if was_visible and not is_visible:
        if span.reach.with_hidden and _is_elsewhere(database, catalog, candidate):
            return None
        return _tombstone(catalog, span, candidate, lives, now)
    if not is_visible or not span.covers(record_id, now):
        return None
    if was_visible and not _has_changed(span, candidate):
        return None
    return maker.make_intact(candidate.found)


def _is_elsewhere(database: Database, catalog: Catalog, candidate: _Candidate) -> bool:
    """Return whether a record that left its shelf is on the other one: a rule has hidden it, or hides it no longer."""
    here = catalog.by_sid[candidate.sid]
    others = [
        shelve for shelve in catalog.shelves_at(here.connection_id, here.name) if shelve.sid != here.sid
    ]
    return any(
        database.one(database.sql["live_record"], (other.sid, candidate.record_id)) for other in others
    )


def _lives(database: Database, candidate: _Candidate) -> list[_Life]:
    if not candidate.is_deleted and candidate.changed is None:
        return []
    return database.rows(_Life, database.sql["lives"], (candidate.rid,))


def _tombstone(
    catalog: Catalog, span: _ChangeSpan, candidate: _Candidate, lives: Sequence[_Life], now: _State
) -> Tombstone:
    shelf = catalog.by_sid[candidate.sid]
    left = _left(span, candidate.record_id, lives, now)
    # What happened to the record outside the reach, even its deletion, is not reported.
    at = candidate.emitted_at if candidate.is_deleted and left.seq == candidate.seq else left.at
    return Tombstone(shelf.connection_id, shelf.name, candidate.record_id, at, at)


def _left(span: _ChangeSpan, record_id: str, lives: Sequence[_Life], now: _State) -> _Life:
    """Return the change by which a record that was in the reach last left it."""
    left, is_inside = _Life(0, was_live=True, was_ts=None, at=0), True
    for life in lives:
        if span.since < life.seq <= span.horizon:
            was_inside, is_inside = is_inside, span.covers(record_id, _state_at(life.seq, lives, now))
            if was_inside and not is_inside:
                left = life
    return left


def _state_at(number: int, lives: Sequence[_Life], now: _State) -> _State:
    """Return what a record was right after a change number: what it was before the next change of its life."""
    for life in lives:
        if life.seq > number:
            return _State(bool(life.was_live), life.was_ts)
    return now


def _has_changed(span: _ChangeSpan, candidate: _Candidate) -> bool:
    marks = change_marks(candidate.changed)
    rest = marks.get(ALL_FIELDS, ChangeMark(candidate.born_seq, None))
    return any(span.since < marks.get(name, rest).seq <= span.horizon for name in span.reach.fields)
