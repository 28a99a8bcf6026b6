"""Search by meaning: the records with a passage that is similar to the query, the most similar first.

Every vector that may be seen is compared, and no other: the order depends on the visible text of a record and on the
query alone. There is no approximate index, which would miss most of what lies behind a narrow grant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from headgate.errors import CursorExpired, IntegrityBroken
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import SearchPlan, SearchPosition, Term
from headgate.model.query import SearchMode, SearchSort
from headgate.model.rows import Hit, SearchPage, Understood
from headgate.store.format.long_texts import long_notes
from headgate.store.format.projection import searched_text_in
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.format.vectors import Bytes, similarities
from headgate.store.queries.rows import FoundRow, RecordMaker, read_chunks, readable_keys, readable_rows
from headgate.store.queries.scope import passing
from headgate.store.search.matching import Matcher
from headgate.store.search.meaning_scope import (
    MeaningScope,
    VectorMemory,
    VisibleBlock,
    meaning_scope,
    pending_count,
    stale_texts,
)
from headgate.store.search.query import Need, SearchQuestion, understand
from headgate.store.search.scope import search_scope
from headgate.store.search.snippets import PASSAGE_CHARS, passage_snippet
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.vector_blocks import NO_TIME, Numbers

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


class SimilarPlace(NamedTuple):
    """A place in the order of hits: the more similar first, then the newer, then by key."""

    #: The similarity, negated; 0 where hits are ordered by time.
    by_similarity: int
    #: The time, negated; the largest number for none.
    by_time: int
    record_id: str
    rid: int


class SimilarRecord(NamedTuple):
    """A record, and the passage of it that is most similar."""

    place: SimilarPlace
    similarity: float
    fid: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SimilarRecords:
    """The most similar records in order."""

    records: Sequence[SimilarRecord]
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
        for one in (term, *term.alternatives)
        for word in one.words
    )


class MeaningSearch:
    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        segments: SegmentMemory,
        vectors: VectorMemory,
        plan: SearchPlan,
        asked: AskedMeaning,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._segments = segments
        self._plan = plan
        self._asked = asked
        self._vectors = vectors
        self._scope: MeaningScope = meaning_scope(database, catalog, plan.reaches, asked.model)
        self._question: SearchQuestion = understand(plan.terms)
        #: Whether words that must or must not occur stand in more places than one search reads.
        self.is_cut = False

    @property
    def weight(self) -> float:
        """How much similarity counts beside a match by words."""
        return self._asked.weight

    def page(self) -> SearchPage:
        """Return a page of hits."""
        found = self.similar()
        seen = _opened(self._plan.after)
        rest = [record for record in found.records if seen is None or record.place > seen]
        shown = rest[: self._plan.limit]
        hits, damaged = self.show(shown)
        return SearchPage(
            tuple(hits.values()),
            _sealed(shown[-1].place) if len(rest) > len(shown) else None,
            None,
            ranked_all=found.is_all,
            ranked_count=len(found.records),
            understood=Understood(excluded=tuple(need.name for need in self._question.excluded)),
            damaged=damaged,
            pending_count=found.pending_count,
            is_cut=self.is_cut,
        )

    def similar(self) -> SimilarRecords:
        """Find the most similar records."""
        stale = stale_texts(self._database, self._scope)
        blocks = self._vectors.visible(self._database, self._scope)
        best = self._best(blocks, stale)
        order = np.lexsort((best.rids, best.times, best.similarities))[::-1]
        ranked = self._with_places(best.chosen(order[:RANKED_MOST]))
        pending = pending_count(self._database, self._catalog, self._scope, stale)
        return SimilarRecords(ranked, len(order) <= RANKED_MOST, pending)

    # Comparing

    def _best(self, blocks: Sequence[VisibleBlock], stale: Mapping[int, set[int]]) -> _Passages:
        """Take the best passage of each record that is allowed, of as many records as are ranked, or more.

        All vectors are compared, but only the most similar passages are looked at further, and more of them if these
        are of too few records.
        """
        found = self._compared(blocks)
        near = np.flatnonzero(found >= self._asked.least_similarity)
        count = _LOOKED_AT
        while True:
            chosen = _most_similar(near, found, count)
            best = self._allowed(_best_of_each(_without(_passages(blocks, chosen, found), stale)))
            if len(best.rids) > RANKED_MOST or len(chosen) == len(near):
                return best
            count *= 4

    def _compared(self, blocks: Sequence[VisibleBlock]) -> Numbers:
        """Compare every visible vector with that of the query; gives the similarities, block after block."""
        parts = [similarities(self._asked.vector, block.rows.vectors, block.inverse) for block in blocks]
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    def _allowed(self, passages: _Passages) -> _Passages:
        """Leave out what filters do not let through, what holds an excluded word, and what lacks a quoted one."""
        stays = np.ones(len(passages.rids), np.bool_)
        if self._plan.filters:
            shelves = [self._catalog.by_sid[sid] for sid in self._scope.reaches]
            rids = passages.rids.tolist()
            stays &= np.isin(rids, passing(self._database, self._catalog, shelves, self._plan.filters, rids))
        strict = [need for need in self._question.needs if need.is_strict]
        if strict or self._question.excluded:
            scope = search_scope(self._catalog, self._plan.reaches)
            text = self._segments.visible_text(self._database, self._plan.reaches, scope)
            matcher = Matcher(self._database, text)

            def holders(need: Need) -> Numbers:
                return text.rids(text.columns.records_of(matcher.find(need).occurrences))

            for need in strict:
                stays &= np.isin(passages.rids, holders(need))
            for need in self._question.excluded:
                stays &= ~np.isin(passages.rids, holders(need))
            self.is_cut |= matcher.is_cut
        return passages.chosen(stays)

    def _with_places(self, passages: _Passages) -> list[SimilarRecord]:
        rids = passages.rids.tolist()
        keys = readable_keys(self._database, rids, msgspec.json.encode(rids).decode())
        by_time = self._plan.sort is SearchSort.TIME
        made = [
            SimilarRecord(
                SimilarPlace(
                    0 if by_time else -similarity, _AFTER_ALL if time == NO_TIME else -time, keys[rid], rid
                ),
                similarity / _PRECISION,
                fid,
                start,
                end,
            )
            for rid, fid, time, start, end, similarity in zip(
                *(column.tolist() for column in passages), strict=True
            )
            if rid in keys
        ]
        return sorted(made, key=lambda one: one.place)

    # Showing

    def show(self, shown: Sequence[SimilarRecord]) -> tuple[dict[int, Hit], tuple[RecordId, ...]]:
        """Make hits, by row number; returns them, and the damaged records that are left out."""
        rows = readable_rows(self._database, [one.place.rid for one in shown])
        damaged = [RecordId(one.place.record_id) for one in shown if one.place.rid not in rows]
        hits: dict[int, Hit] = {}
        for one in (place for place in shown if place.place.rid in rows):
            row = FoundRow._make(rows[one.place.rid])
            try:
                hits[row.rid] = self._hit(row, one)
            except IntegrityBroken:
                damaged.append(row.record_id)
        return hits, tuple(damaged)

    def _hit(self, row: FoundRow, one: SimilarRecord) -> Hit:
        reach = self._scope.reaches[row.sid]
        maker = RecordMaker(
            self._database, self._catalog, reach.reach, preview_chars=self._plan.preview_chars
        )
        name = self._scope.fields[row.sid, one.fid].name
        stream = self._catalog.by_sid[row.sid].stream
        shows_time = stream.time_field in reach.reach.fields
        return Hit(
            maker.make(row),
            (name,),
            (passage_snippet(name, self._text(row, name, one), start=one.start, end=one.end),),
            row.ts if shows_time else None,
            (),
            {SearchMode.SEMANTIC: one.similarity},
        )

    def _text(self, row: FoundRow, name: FieldName, one: SimilarRecord) -> str:
        """Read a text from the beginning of a passage on, a little further than what is shown of it."""
        end = min(one.end, one.start + PASSAGE_CHARS) + 1
        note = long_notes(row.long).get(name)
        if note is not None:
            fid = self._catalog.by_sid[row.sid].stream.fids[name]
            return read_chunks(self._database, row.rid, fid, one.start, min(end, note[0]))
        assert row.body is not None
        return searched_text_in(row.body, name)[one.start : end]


def _without(passages: _Passages, stale: Mapping[int, set[int]]) -> _Passages:
    """Leave out the passages of texts that have changed since."""
    stays = np.ones(len(passages.rids), np.bool_)
    for fid, rids in stale.items():
        stays &= ~((passages.fids == fid) & np.isin(passages.rids, np.array(sorted(rids), np.int64)))
    return passages.chosen(stays)


def _most_similar(near: Numbers, found: Numbers, count: int) -> Numbers:
    """Choose so many of the most similar passages, and all that count as being as similar as the last of them."""
    if len(near) <= count:
        return near
    edge = np.partition(found[near], -count)[-count]
    return near[found[near] >= (np.rint(edge * _PRECISION) - 0.5) / _PRECISION]


def _passages(blocks: Sequence[VisibleBlock], chosen: Numbers, found: Numbers) -> _Passages:
    """Return some passages as columns; they are numbered through, block after block, and in order."""
    ends = np.cumsum([len(block.rows) for block in blocks], dtype=np.int64)
    bounds = np.searchsorted(chosen, np.concatenate(([0], ends)))
    parts = [
        _passages_in(block, chosen[first:last] - (end - len(block.rows)), found[chosen[first:last]])
        for block, end, first, last in zip(blocks, ends, bounds[:-1], bounds[1:], strict=True)
        if first < last
    ]
    if not parts:
        return _Passages(*(np.empty(0, np.int64) for _ in _Passages._fields))
    return _Passages(*map(np.concatenate, zip(*parts, strict=True)))


def _passages_in(block: VisibleBlock, places: Numbers, found: Numbers) -> _Passages:
    rows, field = block.rows, block.field
    return _Passages(
        rows.numbers[places].astype(np.int64) | field.sid << RID_SHIFT,
        np.full(len(places), field.fid),
        rows.times[places] if field.shows_time else np.full(len(places), NO_TIME),
        rows.starts[places],
        rows.ends[places],
        np.rint(found * _PRECISION).astype(np.int64),
    )


def _best_of_each(passages: _Passages) -> _Passages:
    """Take the most similar passage of every record."""
    order = np.lexsort((passages.starts, passages.fids, -passages.similarities, passages.rids))
    ordered = passages.chosen(order)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = ordered.rids[1:] != ordered.rids[:-1]
    return ordered.chosen(is_first)


def _sealed(place: SimilarPlace) -> SearchPosition:
    return SearchPosition((_FORMAT, *place))


def _opened(after: SearchPosition | None) -> SimilarPlace | None:
    if after is None:
        return None
    if after.place[0] != _FORMAT:
        raise CursorExpired(param="cursor")
    return SimilarPlace._make(after.place[1:])
