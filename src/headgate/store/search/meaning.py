"""Search by meaning: the records with a passage that is similar to the query, the most similar first.

Every vector that may be seen is compared, and no other: the order depends on the visible text of a record and on the
query alone. There is no approximate index, which would miss most of what lies behind a narrow grant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass, field as member
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.ids import FieldName
from headgate.model.plan import Reach, SearchPlan, SearchPosition, SearchReach, Term
from headgate.model.query import SearchMode, SearchSort
from headgate.model.record import Record
from headgate.model.rows import Hit, SearchPage, Understood
from headgate.store.format.arrays import np
from headgate.store.format.records import RID_SHIFT, long_notes, searched_text_in, shelf_rows
from headgate.store.format.vector_gaps import MadeVectors, NumberRange
from headgate.store.format.vectors import Bytes, Floats, inverse_lengths, similarities
from headgate.store.queries.rows import FoundRow, read_chunks, readable_keys
from headgate.store.queries.scope import passing, scope_of
from headgate.store.search.asked import from_sender, within_spans
from headgate.store.search.hits import Match, Place, ShownHits, show
from headgate.store.search.matching import Matcher
from headgate.store.search.query import Need, SearchQuestion, understand
from headgate.store.search.scope import Bounds, SearchedField, SizedMemory, inside, search_scope
from headgate.store.search.snippets import PASSAGE_CHARS, passage_snippet
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import NO_TIME, Numbers, VectorBlock, fids_key, read_block

#: So many of the most similar records are ranked; of a search by meaning, the rest has little to do with it.
RANKED_MOST = 1000
#: So many passages are looked at first to find as many records.
_LOOKED_AT = 8 * RANKED_MOST
#: What the places of this version look like.
_FORMAT = "m1"
#: Similarities are compared to four digits, so that those of equal texts are equal on every machine.
_PRECISION = 10_000
_AFTER_ALL = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class AskedMeaning:
    """The query as a vector, and how similar a passage must be to have anything to do with it."""

    vector: Bytes
    least_similarity: float
    #: How much similarity counts beside a match by words.
    weight: float
    model: str


@dataclass(frozen=True, slots=True)
class SimilarRecords:
    """The most similar records in order."""

    records: Sequence[Match]
    #: False when there were too many to rank.
    is_all: bool
    #: How many visible records have no vectors yet.
    pending_count: int


class _Passages(NamedTuple):
    """Passages as columns: what is compared and ordered."""

    rids: Numbers
    fids: Numbers
    times: Numbers
    starts: Numbers
    ends: Numbers
    similarities: Numbers

    def chosen(self, places: Numbers) -> _Passages:
        return _Passages(*(column[places] for column in self))


def question_text(terms: Sequence[Term]) -> str:
    """Return the text that stands for a query: its words in order, without those that are excluded."""
    return " ".join(
        word
        for term in terms
        if not term.is_excluded
        for choice in (term, *term.alternatives)
        for word in choice.words
    )


#: What a reader remembers of vectors, in bytes: those of a million passages of the default model, and more.
VECTOR_BYTES = 384 * 1024 * 1024
#: Records without vectors are counted up to so many.
PENDING_MOST = 10_000


@dataclass(frozen=True, slots=True)
class MeaningScope:
    """The fields that are compared, which reach each shelf is seen through, and how far its vectors are made."""

    fields: Mapping[tuple[int, int], SearchedField]
    reaches: Mapping[int, SearchReach]
    #: The shelves that have vectors, and of each shelf the records that have none yet.
    with_vectors: AbstractSet[int]
    missing: Mapping[int, Sequence[NumberRange]]


@dataclass(frozen=True, slots=True)
class VisibleBlock:
    """What may be seen of a block."""

    field: SearchedField
    rows: VectorBlock
    #: One divided by the length of each vector.
    inverse: Floats

    @property
    def size_bytes(self) -> int:
        """How much memory it takes, about."""
        return self.rows.vectors.size + 24 * len(self.rows)


def meaning_scope(
    database: Database, catalog: Catalog, reaches: Sequence[SearchReach], model: str
) -> MeaningScope:
    """Find out where a search by meaning looks, and how far the vectors are made there."""
    shelves = {shelf.sid: (shelf, reach) for reach in reaches for shelf in catalog.shelves_of(reach.reach)}
    fields: dict[tuple[int, int], SearchedField] = {}
    with_vectors: set[int] = set()
    missing: dict[int, Sequence[NumberRange]] = {}
    sids = msgspec.json.encode(sorted(shelves)).decode()
    for sid, total, *state in database.all(database.sql["visible_vector_shelves"], (sids,)):
        shelf, seen_through = shelves[sid]
        fids = shelf.stream.with_vectors
        made = MadeVectors()
        if state[:2] == [model, fids_key(fids.values())]:
            made = MadeVectors.read(*state[2:])
        if made.filled:
            with_vectors.add(sid)
        missing[sid] = made.missing(total)
        bounds = Bounds(seen_through.reach.time, seen_through.reach.resources)
        for name in seen_through.meaning_fields:
            if name in fids:
                fields[sid, fids[name]] = SearchedField(
                    sid, fids[name], name, 1.0, bounds, seen_through.shows_time
                )
    return MeaningScope(
        fields, {sid: seen_through for sid, (_, seen_through) in shelves.items()}, with_vectors, missing
    )


class VectorMemory:
    """The blocks of vectors that a reader has seen."""

    def __init__(self) -> None:
        self._blocks = SizedMemory[tuple[int, Bounds | None], VisibleBlock](VECTOR_BYTES)

    def visible(self, database: Database, scope: MeaningScope) -> list[VisibleBlock]:
        """Return what may be seen of every block; a block never changes, so it is read once."""
        pairs = [key for key in sorted(scope.fields) if key[0] in scope.with_vectors]
        blocks: list[VisibleBlock | None] = []
        values = (msgspec.json.encode(pairs).decode(),)
        for bid, sid, fid in database.all(database.sql["visible_vector_blocks"], values):
            field = scope.fields[sid, fid]
            key = (bid, None if field.bounds.is_open else field.bounds)
            blocks.append(self._blocks.get(key, lambda bid=bid, field=field: _read(database, bid, field)))
        return [block for block in blocks if block is not None]


@dataclass(frozen=True, slots=True)
class SearchMemory:
    """What searches remember; used in one thread."""

    segments: SegmentMemory = member(default_factory=SegmentMemory)
    vectors: VectorMemory = member(default_factory=VectorMemory)


def _read(database: Database, bid: int, field: SearchedField) -> VisibleBlock | None:
    """Read a block and leave out the rows that may not be seen; None: there are no others."""
    rows = read_block(database, bid)
    if not field.bounds.is_open:
        rows = rows.chosen(inside(database, field, rows.numbers, rows.times))
    return VisibleBlock(field, rows, inverse_lengths(rows.vectors)) if len(rows) else None


def stale_texts(database: Database, scope: MeaningScope) -> dict[int, set[int]]:
    """Return the row numbers of the texts that changed since their vectors were made, by field."""
    stale: dict[int, set[int]] = {}
    for sid in scope.reaches:
        rows = database.all(database.sql["stale_texts"], (*shelf_rows(sid), -1))
        for rid, fid in rows:
            if (sid, fid) in scope.fields:
                stale.setdefault(fid, set()).add(rid)
    return stale


def pending_count(
    database: Database, catalog: Catalog, scope: MeaningScope, stale: Mapping[int, set[int]]
) -> int:
    """Count the visible records whose vectors are still to be made, up to a bound."""
    again = sorted(set[int]().union(*stale.values()))
    is_behind = {sid for sid, ranges in scope.missing.items() if ranges}
    behind = {sid for sid, _ in scope.fields} & (is_behind | {rid >> RID_SHIFT for rid in again})
    return min(PENDING_MOST, sum(_pending_on(database, catalog, scope, sid, again) for sid in behind))


def _pending_on(
    database: Database, catalog: Catalog, scope: MeaningScope, sid: int, again: Sequence[int]
) -> int:
    shelf, reach = catalog.by_sid[sid], scope.reaches[sid].reach
    rows = scope_of(catalog, Reach(shelf.name, (shelf.connection_id,), (), reach.time, reach.resources))
    assert rows is not None
    first, last = shelf_rows(sid)
    sql = database.sql["count_pending"].format(where=rows.where, most=PENDING_MOST)
    missing = [(first + numbers.first - 1, first + numbers.last + 1) for numbers in scope.missing[sid]]
    waiting = [
        rid for rid in again if first < rid < last and not any(low < rid < high for low, high in missing)
    ]
    # Those that wait again are counted once, beside no other.
    parts = [(low, high, "[]") for low, high in missing] + [
        (last, last, msgspec.json.encode(waiting).decode())
    ]
    return sum(database.value(sql, (*part, *rows.values)) for part in parts)


class MeaningSearch:
    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        memory: SearchMemory,
        plan: SearchPlan,
        question: AskedMeaning,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._memory = memory
        self._plan = plan
        self._asked = question
        self._scope: MeaningScope = meaning_scope(database, catalog, plan.reaches, question.model)
        self._stale = stale_texts(database, self._scope)
        self._question: SearchQuestion = understand(plan.terms)
        #: Whether words that must or must not occur stand in more places than one search reads.
        self.is_cut = False

    @property
    def weight(self) -> float:
        """How much similarity counts beside a match by words."""
        return self._asked.weight

    @property
    def is_complete(self) -> bool:
        """Whether there is text to compare, and all of it that is visible has its vectors."""
        return bool(self._scope.fields) and not self.pending_count

    @property
    def pending_count(self) -> int:
        """How many visible records wait for their vectors, up to a bound."""
        return pending_count(self._database, self._catalog, self._scope, self._stale)

    def page(self) -> SearchPage:
        """Return a page of hits."""
        similar = self.similar()
        seen = _read_position(self._plan.after)
        rest = [record for record in similar.records if seen is None or record.place > seen]
        page_matches = rest[: self._plan.most_hits]
        hits, damaged = self.show(page_matches)
        places = {match.place.rid: _position(match.place) for match in page_matches}
        return SearchPage(
            tuple(replace(hit, place=places[rid]) for rid, hit in hits.items()),
            _position(page_matches[-1].place) if len(rest) > len(page_matches) else None,
            None,
            ranked_all=similar.is_all,
            ranked_count=len(similar.records),
            understood=Understood(excluded=tuple(need.name for need in self._question.excluded)),
            damaged=damaged,
            pending_count=similar.pending_count,
            is_cut=self.is_cut,
            mode=SearchMode.SEMANTIC,
        )

    def similar(self) -> SimilarRecords:
        blocks = self._memory.vectors.visible(self._database, self._scope)
        best = self._best(blocks, self._stale)
        order = np.lexsort((best.rids, best.times, best.similarities))[::-1]
        ranked = self._with_places(best.chosen(order[:RANKED_MOST]))
        return SimilarRecords(ranked, len(order) <= RANKED_MOST, self.pending_count)

    # Comparing

    def _best(self, blocks: Sequence[VisibleBlock], stale: Mapping[int, set[int]]) -> _Passages:
        """Take the best passage of each record that is allowed, of as many records as are ranked, or more.

        All vectors are compared, but only the most similar passages are looked at further, and more of them if these
        are of too few records.
        """
        compared = self._compared(blocks)
        near = np.flatnonzero(compared >= self._asked.least_similarity)
        count = _LOOKED_AT
        while True:
            chosen = _most_similar(near, compared, count)
            best = self._allowed(_best_of_each(_without(_passages(blocks, chosen, compared), stale)))
            if len(best.rids) > RANKED_MOST or len(chosen) == len(near):
                return best
            count *= 4

    def _compared(self, blocks: Sequence[VisibleBlock]) -> Numbers:
        """Compare every visible vector with that of the query; returns the similarities, block after block."""
        parts = [similarities(self._asked.vector, block.rows.vectors, block.inverse) for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def _allowed(self, passages: _Passages) -> _Passages:
        """Leave out what filters do not let through, what holds an excluded word, and what lacks a quoted one."""
        stays = np.ones(len(passages.rids), np.bool_)
        if self._plan.filters:
            shelves = [self._catalog.by_sid[sid] for sid in self._scope.reaches]
            rids = passages.rids.tolist()
            stays &= np.isin(rids, passing(self._database, self._catalog, shelves, self._plan.filters, rids))
        reaches = self._scope.reaches
        if self._plan.spans:
            stays &= within_spans(self._plan, reaches, passages.rids, passages.times)
        strict = [need for need in self._question.needs if need.is_strict]
        if strict or self._question.excluded or self._plan.sender is not None:
            scope = search_scope(self._catalog, self._plan.reaches)
            text = self._memory.segments.visible_text(self._database, self._plan.reaches, scope)
            matcher = Matcher(self._database, text)

            def holders(need: Need) -> Numbers:
                return text.rids(text.columns.records_of(matcher.find(need).occurrences))

            for need in strict:
                stays &= np.isin(passages.rids, holders(need))
            for need in self._question.excluded:
                stays &= ~np.isin(passages.rids, holders(need))
            if self._plan.sender is not None:
                senders = from_sender(self._plan, reaches, matcher, text)
                stays &= np.isin(passages.rids, text.rids(senders))
            self.is_cut |= matcher.is_cut
        return passages.chosen(stays)

    def _with_places(self, passages: _Passages) -> list[Match]:
        rids = passages.rids.tolist()
        keys = readable_keys(self._database, rids)
        by_time = self._plan.sort is SearchSort.TIME
        matches: list[Match] = []
        for rid, fid, time, start, end, similarity in zip(
            *(column.tolist() for column in passages), strict=True
        ):
            if rid in keys:
                age = _AFTER_ALL if time == NO_TIME else -time
                place = Place(0, 0 if by_time else -similarity, age, keys[rid], rid)
                matches.append(Match(place, similarity / _PRECISION, passage=(fid, start, end)))
        return sorted(matches)

    # Showing

    def show(self, matches: Sequence[Match]) -> ShownHits:
        reaches = self._scope.reaches
        return show(self._database, self._catalog, self._plan, reaches, matches, self._hit)

    def _hit(self, match: Match, row: FoundRow, record: Record, time: int | None) -> Hit:
        fid, start, end = match.passage
        name = self._scope.fields[row.sid, fid].name
        snippet = passage_snippet(name, self._text(row, name, match), start=start, end=end)
        return Hit(record, (name,), (snippet,), time, (), {SearchMode.SEMANTIC: match.score})

    def _text(self, row: FoundRow, name: FieldName, match: Match) -> str:
        """Read a text from the beginning of a passage on, a little further than what is shown of it."""
        fid, start, end = match.passage
        end = min(end, start + PASSAGE_CHARS) + 1
        note = long_notes(row.long).get(name)
        if note is not None:
            return read_chunks(self._database, row.rid, fid, start, min(end, note[0]))
        assert row.body is not None
        return searched_text_in(row.body, name)[start:end]


def _without(passages: _Passages, stale: Mapping[int, set[int]]) -> _Passages:
    """Leave out the passages of texts that have changed since."""
    stays = np.ones(len(passages.rids), np.bool_)
    for fid, rids in stale.items():
        stays &= ~((passages.fids == fid) & np.isin(passages.rids, np.array(sorted(rids), np.int64)))
    return passages.chosen(stays)


def _most_similar(near: Numbers, compared: Numbers, count: int) -> Numbers:
    """Choose so many of the most similar passages, and all that count as being as similar as the last of them."""
    if len(near) <= count:
        return near
    edge = np.partition(compared[near], -count)[-count]
    return near[compared[near] >= (np.rint(edge * _PRECISION) - 0.5) / _PRECISION]


def _passages(blocks: Sequence[VisibleBlock], chosen: Numbers, compared: Numbers) -> _Passages:
    """Return some passages as columns; they are numbered through, block after block, and in order."""
    ends = np.cumsum([len(block.rows) for block in blocks], dtype=np.int64)
    bounds = np.searchsorted(chosen, np.concatenate(([0], ends)))
    parts = [
        _passages_in(block, chosen[first:last] - (end - len(block.rows)), compared[chosen[first:last]])
        for block, end, first, last in zip(blocks, ends, bounds[:-1], bounds[1:], strict=True)
        if first < last
    ]
    if not parts:
        return _Passages(*(np.empty(0, np.int64) for _ in _Passages._fields))
    return _Passages(*map(np.concatenate, zip(*parts, strict=True)))


def _passages_in(block: VisibleBlock, places: Numbers, compared: Numbers) -> _Passages:
    rows, field = block.rows, block.field
    return _Passages(
        rows.numbers[places].astype(np.int64) | field.sid << RID_SHIFT,
        np.full(len(places), field.fid),
        rows.times[places] if field.shows_time else np.full(len(places), NO_TIME),
        rows.starts[places],
        rows.ends[places],
        np.rint(compared * _PRECISION).astype(np.int64),
    )


def _best_of_each(passages: _Passages) -> _Passages:
    """Take the most similar passage of every record."""
    order = np.lexsort((passages.starts, passages.fids, -passages.similarities, passages.rids))
    ordered = passages.chosen(order)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = ordered.rids[1:] != ordered.rids[:-1]
    return ordered.chosen(is_first)


def _position(place: Place) -> SearchPosition:
    return SearchPosition((_FORMAT, *place[1:]))


def _read_position(after: SearchPosition | None) -> Place | None:
    if after is None:
        return None
    if after.place[0] != _FORMAT:
        raise CursorExpired(param="cursor")
    return Place._make((0, *after.place[1:]))
