"""Search: records that hold all the words, newest of the best first.

What may be seen is part of the query itself: fields are columns of the index, shelves are words or row numbers
in it, time is the order of its rows. Ranking looks only at matches in visible fields of the row at hand; no
statistic of the whole index has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, NamedTuple

import msgspec

from headgate.model.grant import TimeConstraint
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import Reach, SearchPlan, SearchPosition, SearchReach
from headgate.model.query import Filter
from headgate.model.record import Record
from headgate.model.rows import Hit, SearchPage, Snippet
from headgate.store.projection import text_in
from headgate.store.snippets import Highlighter
from headgate.store.sqlite.catalog import Catalog, Shelf, StreamTable
from headgate.store.sqlite.database import Database
from headgate.store.sqlite.read.rows import FoundRow, RecordMaker, read_chunks, read_rows
from headgate.store.sqlite.read.scope import scope_of
from headgate.store.sqlite.row_numbers import (
    RID_OF_ROWID,
    SID_OF_ROWID,
    TIME_STEP_OF_ROWID,
    Tid,
    first_tid,
    time_step,
)
from headgate.store.sqlite.statements import SQL
from headgate.store.sqlite.write.declare import SLOTS, TITLE_SLOT
from headgate.store.sqlite.write.long_texts import CHUNK_CHARS, long_notes
from headgate.store.words import match_expression

#: So many of the newest matches are ranked; when there are more, the answer says so.
WINDOW = 300
#: So many matches are counted; when there are more, the answer has no count.
COUNT_MOST = 10_000
SNIPPETS_MOST = 3
_TITLE_WEIGHT = 3
_MASK_BITS = 24
_NEWEST = (1 << 63) - 1
_OLDEST = 0
_OVERLAP_CHARS = 512
#: Few shelves with a small part of the store are found by their words in the index; else by row number.
_FEW, _SMALL_PART, _STREAM_PART = 8, 5, 2.5


def register(connection: Any) -> None:
    """Add the function of the index by which matches are ranked."""
    connection.register_fts5_function("headgate_rank", _rank)


def _rank(api: Any) -> int:
    """Weigh a row by its own matches in the columns that the query names, and say which those were."""
    score = columns = 0
    for phrase in range(api.phrase_count):
        best = 0
        for column in api.phrase_columns(phrase):
            if column < SLOTS:
                columns |= 1 << column
                best = max(best, _TITLE_WEIGHT if column >= TITLE_SLOT else 1)
        score += best
    return score << _MASK_BITS | columns


@dataclass(frozen=True, slots=True)
class _Group:
    """Shelves that share what may be matched and when: one statement serves them all."""

    slots: tuple[int, ...]
    time: TimeConstraint | None
    resources: frozenset[RecordId] | None
    shelves: tuple[Shelf, ...]


class _Match(NamedTuple):
    """A row of the index that matches. A tuple: hundreds are made for a page, and most are not shown."""

    tid: Tid
    score: int
    #: The slots that match, as bits.
    columns: int

    @property
    def rough_place(self) -> tuple[int, int]:
        """Its place in the order of hits as far as the index knows it: by score, then by step of time."""
        return -self.score, -self.tid.time_step


class _Place(NamedTuple):
    """A place in the order of hits: the better match first, then the newer, then by key."""

    #: The score, negated.
    by_score: int
    #: The time, negated; _NEWEST for a record without one, which comes last.
    by_time: int
    record_id: str
    rid: int

    @property
    def rough_place(self) -> tuple[int, int]:
        """What a match at this place has as its rough place."""
        return self.by_score, -time_step(None if self.by_time == _NEWEST else -self.by_time)


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A match with its exact place in the order of hits, and its row."""

    place: _Place
    match: _Match
    row: FoundRow


def search(database: Database, catalog: Catalog, plan: SearchPlan) -> SearchPage:
    """Find hits and make them ready to show."""
    spread = _spread(catalog, plan.reaches)
    statements = [_statement(database, catalog, group, plan) for group in spread.groups]
    span = _span(plan.after)
    window, span = _window(database, statements, span)
    ranked = _in_order(database, window, span.seen, plan.limit + 1)
    shown = ranked[: plan.limit]
    hits = _hits(database, catalog, plan, spread, shown)
    is_all = span.is_first and span.bottom == _OLDEST
    count = None
    if plan.after is None:
        count = len(window) if is_all else _count(database, statements)
    following = _next(span, shown, has_more_here=len(ranked) > len(shown))
    return SearchPage(hits, following, count, is_all, len(window))


# Where a page starts


@dataclass(frozen=True, slots=True)
class _SearchSpan:
    """The rows that are ranked together, and how far they have been shown.

    Both ends stay the same from page to page: what comes and goes in between must not move a hit across them.
    """

    is_first: bool
    top: int
    #: None: as many as are ranked together.
    bottom: int | None
    #: The last hit that was shown.
    seen: _Place | None


def _span(after: SearchPosition | None) -> _SearchSpan:
    if after is None:
        return _SearchSpan(is_first=True, top=_NEWEST, bottom=None, seen=None)
    is_first, top, bottom, *seen = after.place
    assert isinstance(top, int)
    assert not isinstance(bottom, str)
    return _SearchSpan(bool(is_first), top, bottom, _Place._make(seen) if seen else None)


def _window(
    database: Database, statements: Sequence[_Statement], span: _SearchSpan
) -> tuple[list[_Match], _SearchSpan]:
    """Find the matches that are ranked together, and where they end."""
    if span.bottom is not None:
        return _newest(database, statements, span.top, span.bottom, -1), span
    found = _newest(database, statements, span.top, _OLDEST, WINDOW + 1)
    window = found[:WINDOW]
    bottom = int(window[-1].tid) if len(found) > WINDOW else _OLDEST
    top = min(span.top, window[0].tid + 1) if window else span.top
    return window, _SearchSpan(span.is_first, top, bottom, None)


def _next(span: _SearchSpan, shown: Sequence[_Ranked], *, has_more_here: bool) -> SearchPosition | None:
    if has_more_here:
        return SearchPosition((int(span.is_first), span.top, span.bottom, *shown[-1].place))
    # The next window holds what is older than everything in this one.
    return None if span.bottom == _OLDEST else SearchPosition((0, span.bottom, None))


# What may be matched


@dataclass(frozen=True, slots=True)
class Spread:
    """Where a search looks: groups of shelves, and which reach a shelf is seen through."""

    groups: tuple[_Group, ...]
    reaches: Mapping[int, SearchReach]


def _spread(catalog: Catalog, reaches: tuple[SearchReach, ...]) -> Spread:
    """Give where a search looks; a client sends the same reaches with every search, so that is remembered."""
    known = catalog.memo.spreads.get(reaches)
    if known is not None:
        return known
    by_sid = {shelf.sid: one for one in reaches for shelf in catalog.shelves_of(one.reach)}
    return catalog.memo.spreads.remember(reaches, Spread(tuple(_groups(catalog, reaches)), by_sid))


def _groups(catalog: Catalog, reaches: Iterable[SearchReach]) -> list[_Group]:
    found: dict[tuple[Any, ...], list[Shelf]] = {}
    for one in reaches:
        shelves = catalog.shelves_of(one.reach)
        slots = {stid: _slots(stream, one.search_fields) for stid, stream in _streams(shelves).items()}
        for shelf in shelves:
            if slots[shelf.stream.stid]:
                key = (slots[shelf.stream.stid], one.reach.time, one.reach.resources)
                found.setdefault(key, []).append(shelf)
    return [
        _Group(slots, time, resources, tuple(shelves)) for (slots, time, resources), shelves in found.items()
    ]


def _streams(shelves: Sequence[Shelf]) -> dict[int, StreamTable]:
    return {shelf.stream.stid: shelf.stream for shelf in shelves}


def _slots(stream: StreamTable, fields: Sequence[FieldName]) -> tuple[int, ...]:
    slots = tuple(sorted(stream.slots[name] for name in fields if name in stream.slots))
    # Streams that are searched whole share a statement, whatever slots they use.
    return tuple(range(SLOTS)) if len(slots) == len(stream.slots) and slots else slots


@dataclass(frozen=True, slots=True)
class _Statement:
    match: str
    conditions: str
    values: tuple[Any, ...]


def _statement(database: Database, catalog: Catalog, group: _Group, plan: SearchPlan) -> _Statement:
    terms = " AND ".join(match_expression(term) for term in plan.terms)
    columns = " ".join(f"c{slot}" for slot in group.slots)
    match = f"{{{columns}}} : ({terms})"
    conditions: list[str] = []
    values: list[Any] = []
    if len(group.shelves) < catalog.shelf_count:
        words = _shelf_words(database, catalog, group)
        if words:
            match = f"({match}) AND ({{sh}} : ({' OR '.join(words)}))"
        if not words or words[0].startswith("t"):
            conditions.append(f"{SID_OF_ROWID} IN ({','.join(str(shelf.sid) for shelf in group.shelves)})")
    _bound_time(group.time, conditions)
    if group.resources is not None:
        conditions.append(
            f"(SELECT record_id FROM record WHERE rid = {RID_OF_ROWID}) IN (SELECT value FROM json_each(?))"
        )
        values.append(msgspec.json.encode(sorted(group.resources)).decode())
    _filter(catalog, group, plan.filters, conditions, values)
    return _Statement(match, "".join(f" AND {condition}" for condition in conditions), tuple(values))


def _shelf_words(database: Database, catalog: Catalog, group: _Group) -> list[str]:
    """Choose the words that the index finds these shelves by: their own, their streams', or none at all."""
    live = dict(database.all(SQL["live_counts"]))
    whole = sum(live.values())
    part = sum(live[shelf.sid] for shelf in group.shelves)
    if part * _SMALL_PART < whole and len(group.shelves) <= _FEW:
        return [f"s{shelf.sid}" for shelf in group.shelves]
    stids = {shelf.stream.stid for shelf in group.shelves}
    in_streams = sum(live[sid] for sid, shelf in catalog.by_sid.items() if shelf.stream.stid in stids)
    if in_streams * _STREAM_PART < whole and len(stids) <= _FEW:
        return [f"t{stid}" for stid in sorted(stids)]
    return []


def _bound_time(time: TimeConstraint | None, conditions: list[str]) -> None:
    """Rows are in order of time, so a bound is a row number; only at its edge is the exact time looked up."""
    if time is None:
        return
    # A record without a time is outside every range; its rows come before all others.
    first = time_step(time.since) if time.since is not None else 1
    conditions.append(f"rowid >= {first_tid(first)}")
    if time.since is not None:
        conditions.append(_exact(first, f"ts >= {int(time.since)}"))
    if time.until is not None:
        last = time_step(time.until)
        conditions.append(f"rowid < {first_tid(last + 1)}")
        conditions.append(_exact(last, f"ts < {int(time.until)}"))


def _exact(edge: int, condition: str) -> str:
    return f"({TIME_STEP_OF_ROWID} <> {edge} OR (SELECT {condition} FROM record WHERE rid = {RID_OF_ROWID}))"


def _filter(
    catalog: Catalog, group: _Group, filters: Sequence[Filter], conditions: list[str], values: list[Any]
) -> None:
    if not filters:
        return
    stream = group.shelves[0].stream
    everywhere = Reach(stream.declaration.name, tuple(shelf.connection_id for shelf in group.shelves), ())
    scope = scope_of(catalog, everywhere, filters)
    assert scope is not None
    conditions.append(
        f"EXISTS (SELECT 1 FROM record r{scope.join} WHERE r.rid = {RID_OF_ROWID}{scope.where})"
    )
    values.extend(scope.values)


# Finding and ranking


def _newest(
    database: Database, statements: Sequence[_Statement], top: int, bottom: int, most: int
) -> list[_Match]:
    """Find the newest matches between two rows, and no more than asked for; -1 asks for all."""
    found: list[_Match] = []
    for one in statements:
        rows = database.all(
            "SELECT rowid, headgate_rank(fts) FROM fts WHERE fts MATCH ? AND rowid < ? AND rowid >= ?"
            f"{one.conditions} ORDER BY rowid DESC LIMIT ?",
            (one.match, top, bottom, *one.values, most),
        )
        mask = (1 << _MASK_BITS) - 1
        found += [_Match(Tid(tid), weight >> _MASK_BITS, weight & mask) for tid, weight in rows]
    found.sort(key=lambda one: -one.tid)
    return found if most < 0 else found[:most]


def _in_order(
    database: Database, window: Sequence[_Match], seen: _Place | None, wanted: int
) -> list[_Ranked]:
    """Give the next hits of a window in order.

    Only records that can be among them, by what the index knows, are read.
    """
    near = _near(window, seen, wanted)
    rows = read_rows(database, [one.tid.rid for one in near])
    ranked = sorted(
        (_ranked(one, FoundRow._make(rows[one.tid.rid])) for one in near), key=lambda one: one.place
    )
    return [one for one in ranked if seen is None or one.place > seen]


def _near(window: Sequence[_Match], seen: _Place | None, wanted: int) -> list[_Match]:
    """Choose the matches that can be the next ones, by their rough places.

    Matches that share a rough place are in an order that only their records tell: all of them are chosen, or
    none. Some of those that share it with the last hit shown were shown before, so they do not count.
    """
    edge = None if seen is None else seen.rough_place
    placed = [(one.rough_place, one) for one in window]
    at_edge = [] if edge is None else [one for place, one in placed if place == edge]
    beyond = placed if edge is None else [(place, one) for place, one in placed if place > edge]
    beyond.sort(key=itemgetter(0))
    if len(beyond) > wanted:
        last_place, _ = beyond[wanted - 1]
        beyond = [(place, one) for place, one in beyond if place <= last_place]
    return at_edge + [one for _, one in beyond]


def _ranked(match: _Match, row: FoundRow) -> _Ranked:
    by_time = _NEWEST if row.ts is None else -row.ts
    return _Ranked(_Place(-match.score, by_time, row.record_id, row.rid), match, row)


def _count(database: Database, statements: Sequence[_Statement]) -> int | None:
    total = 0
    for one in statements:
        total += database.value(
            f"SELECT count(*) FROM (SELECT 1 FROM fts WHERE fts MATCH ?{one.conditions} LIMIT ?)",
            (one.match, *one.values, COUNT_MOST + 1 - total),
        )
        if total > COUNT_MOST:
            return None
    return total


# Showing


def _hits(
    database: Database, catalog: Catalog, plan: SearchPlan, spread: Spread, ranked: Sequence[_Ranked]
) -> tuple[Hit, ...]:
    highlighter = Highlighter(plan.terms)
    makers: dict[tuple[FieldName, ...], RecordMaker] = {}
    hits: list[Hit] = []
    for one in ranked:
        reach = spread.reaches[one.row.sid]
        fields = reach.reach.fields
        if fields not in makers:
            makers[fields] = RecordMaker(database, catalog, fields, preview_chars=plan.preview_chars)
        record = makers[fields].make(one.row)
        hits.append(_hit(database, reach, catalog.by_sid[one.row.sid], one, record, highlighter))
    return tuple(hits)


def _hit(
    database: Database,
    reach: SearchReach,
    shelf: Shelf,
    one: _Ranked,
    record: Record,
    highlighter: Highlighter,
) -> Hit:
    columns, slots = one.match.columns, shelf.stream.slots
    matched = tuple(name for name in reach.search_fields if columns >> slots.get(name, _MASK_BITS) & 1)
    snippets = [
        snippet
        for name in matched[:SNIPPETS_MOST]
        if (snippet := _snippet(database, shelf, one.row, name, highlighter)) is not None
    ]
    is_shown = shelf.stream.time_field in reach.reach.fields
    return Hit(record, matched, tuple(snippets), one.row.ts if is_shown else None)


def _snippet(
    database: Database, shelf: Shelf, row: FoundRow, name: FieldName, highlighter: Highlighter
) -> Snippet | None:
    note = long_notes(row.long).get(name)
    if note is not None:
        return _snippet_of_long(database, row.rid, shelf.stream.fids[name], name, note[0], highlighter)
    assert row.body is not None
    text = text_in(row.body, name)
    return None if text is None else highlighter.snippet(name, text)


def _snippet_of_long(
    database: Database, rid: int, fid: int, name: FieldName, chars: int, highlighter: Highlighter
) -> Snippet | None:
    """Look for the first match chunk by chunk, each with a little of the one before it."""
    for start in range(0, chars, CHUNK_CHARS):
        begin = max(0, start - _OVERLAP_CHARS)
        text = read_chunks(database, rid, fid, begin, min(start + CHUNK_CHARS, chars))
        snippet = highlighter.snippet(name, text, whole=False, at=begin)
        if snippet is not None:
            return snippet
    return None
