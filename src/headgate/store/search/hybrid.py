"""Search by words and by meaning: the best of both lists, in one order by the scores they have in each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.ids import RecordId
from headgate.model.plan import SearchPlan, SearchPosition
from headgate.model.query import SearchMode, SearchSort
from headgate.model.rows import Hit, SearchPage
from headgate.store.format.row_numbers import RID_SHIFT
from headgate.store.queries.rows import born_until
from headgate.store.search.hits import RankedHit
from headgate.store.search.lexical import LexicalRanking, LexicalSearch, as_far_as_indexed
from headgate.store.search.meaning import AskedMeaning, MeaningSearch, SimilarRecord
from headgate.store.search.meaning_scope import VectorMemory
from headgate.store.search.query import understand
from headgate.store.search.scope import search_scope
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

#: So many of each list are put together; what is further down in both would not come up.
LISTED_MOST = 200
#: What the places of this version look like.
_FORMAT = "h1"
_ENLARGED = 1 << 40
_Found = TypeVar("_Found", RankedHit, SimilarRecord)


class _HybridPlace(NamedTuple):
    """Where a page ends.

    Ranks shift when records come and go. Those that came after the first page are left out of the later ones, and
    the next page begins after the last record shown, wherever that is by then.
    """

    #: The change number of the store when the first page was made, so enlarged that its length in a cursor is always
    #: the same: hidden records have a part in it.
    horizon: int
    shown_count: int
    last_rid: int


class HybridSearch:
    """One search by words and by meaning."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        plan: SearchPlan,
        words: LexicalSearch,
        meaning: MeaningSearch,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._plan = plan
        self._words = words
        self._meaning = meaning

    def page(self) -> SearchPage:
        """Return a page of hits."""
        seen = _opened(self._plan.after)
        horizon = (
            self._database.value(self._database.sql["change_number"]) | _ENLARGED
            if seen is None
            else seen.horizon
        )
        ranking, similar = self._words.ranking(), self._meaning.similar()
        by_words = self._until({one.place.rid: one for one in ranking.in_order[:LISTED_MOST]}, horizon)
        by_meaning = self._until(
            {record.place.rid: record for record in similar.records[:LISTED_MOST]}, horizon
        )
        order = self._in_order(by_words, by_meaning)
        start = 0 if seen is None else _start(order, seen)
        shown = order[start : start + self._plan.limit]
        end = start + len(shown)
        hits, damaged = self._show(shown, by_words, by_meaning, ranking)
        return SearchPage(
            hits,
            _sealed(_HybridPlace(horizon, end, shown[-1])) if end < len(order) else None,
            None,
            ranked_all=len(ranking.in_order) <= LISTED_MOST and len(similar.records) <= LISTED_MOST,
            ranked_count=len(order),
            understood=self._words.understood(ranking.found),
            damaged=damaged,
            pending_count=similar.pending_count,
            is_cut=self._words.is_cut or self._meaning.is_cut,
        )

    def _until(self, found: dict[int, _Found], horizon: int) -> dict[int, _Found]:
        """Leave out what came after the first page."""
        known = born_until(self._database, list(found), horizon ^ _ENLARGED)
        return {rid: one for rid, one in found.items() if rid in known}

    def _in_order(
        self, by_words: Mapping[int, RankedHit], by_meaning: Mapping[int, SimilarRecord]
    ) -> list[int]:
        order = fuse(
            {rid: -one.place.by_score for rid, one in by_words.items()},
            {rid: one.similarity for rid, one in by_meaning.items()},
            self._meaning.weight,
        )
        if self._plan.sort is SearchSort.TIME:
            order.sort(key=lambda rid: (by_words.get(rid) or by_meaning[rid]).place.by_time)
        return order

    def _show(
        self,
        shown: Sequence[int],
        by_words: Mapping[int, RankedHit],
        by_meaning: Mapping[int, SimilarRecord],
        ranking: LexicalRanking,
    ) -> tuple[tuple[Hit, ...], tuple[RecordId, ...]]:
        """Make hits: with the words around the match where there is one, else with the similar passage."""
        with_words, damaged = self._words.show(
            [by_words[rid] for rid in shown if rid in by_words], ranking.found
        )
        others, more_damaged = self._meaning.show([by_meaning[rid] for rid in shown if rid not in by_words])
        by_key = {(hit.record.connection_id, hit.record.stream, hit.record.id): hit for hit in with_words}
        hits: list[Hit] = []
        for rid in shown:
            shelf = self._catalog.by_sid[rid >> RID_SHIFT]
            hit = others.get(rid)
            if rid in by_words:
                hit = by_key.get((shelf.connection_id, shelf.name, RecordId(by_words[rid].place.record_id)))
            if hit is not None:
                hits.append(msgspec.structs.replace(hit, scores=_scores(rid, by_words, by_meaning)))
        return tuple(hits), (*damaged, *more_damaged)


def _scores(
    rid: int, by_words: Mapping[int, RankedHit], by_meaning: Mapping[int, SimilarRecord]
) -> dict[SearchMode, float]:
    scores: dict[SearchMode, float] = {}
    if rid in by_words:
        scores[SearchMode.LEXICAL] = float(-by_words[rid].place.by_score)
    if rid in by_meaning:
        scores[SearchMode.SEMANTIC] = by_meaning[rid].similarity
    return scores


def _start(order: Sequence[int], seen: _HybridPlace) -> int:
    return order.index(seen.last_rid) + 1 if seen.last_rid in order else seen.shown_count


def _sealed(place: _HybridPlace) -> SearchPosition:
    return SearchPosition((_FORMAT, *place))


def _opened(after: SearchPosition | None) -> _HybridPlace | None:
    if after is None:
        return None
    if after.place[0] != _FORMAT:
        raise CursorExpired(param="cursor")
    return _HybridPlace._make(after.place[1:])


_Thing = TypeVar("_Thing", bound=Hashable)


def fuse(by_words: Mapping[_Thing, float], by_meaning: Mapping[_Thing, float], weight: float) -> list[_Thing]:
    """Put what either search found in one order, the best first; of equal ones, the first by words.

    A score counts as its part of the best score of the same search, and one by meaning ``weight`` times that. Ranks
    alone would make a far better match by words count hardly more than the next.
    """
    scores: defaultdict[_Thing, float] = defaultdict(float)
    for found, factor in ((by_words, 1.0), (by_meaning, weight)):
        best = max(found.values(), default=0)
        for thing, score in found.items():
            scores[thing] += factor * score / best if best > 0 else 0
    return sorted(scores, key=lambda thing: -scores[thing])


@dataclass(frozen=True, slots=True)
class SearchMemory:
    """What searches remember; used in one thread."""

    segments: SegmentMemory = field(default_factory=SegmentMemory)
    vectors: VectorMemory = field(default_factory=VectorMemory)


def search_by_meaning(
    database: Database, catalog: Catalog, memory: SearchMemory, plan: SearchPlan, asked: AskedMeaning
) -> SearchPage:
    """Find hits by meaning, or by words and meaning."""
    if plan.mode is SearchMode.SEMANTIC:
        page = MeaningSearch(database, catalog, memory.segments, memory.vectors, plan, asked).page()
        # Quoted and excluded words are looked up in the word index.
        is_asked = any(term.is_strict or term.is_excluded for term in plan.terms)
        return as_far_as_indexed(database, page) if is_asked else page
    listed = replace(plan, limit=LISTED_MOST, after=None, sort=SearchSort.RELEVANCE)
    scope = search_scope(catalog, plan.reaches)
    question = understand(plan.terms)
    text = memory.segments.visible_text(database, plan.reaches, scope)
    words = LexicalSearch(database, catalog, listed, scope, text, question)
    meaning = MeaningSearch(database, catalog, memory.segments, memory.vectors, listed, asked)
    return as_far_as_indexed(database, HybridSearch(database, catalog, plan, words, meaning).page())
