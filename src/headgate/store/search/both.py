"""Search by words and by meaning: the best of either list in one order.

Where both is only what a search does by itself, it is by words alone until every visible text has its vectors, and
where more records hold all the words than are merged: pages by words lead to each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.plan import SearchPlan, SearchPosition
from headgate.model.query import SearchMode, SearchSort
from headgate.model.rows import Hit, SearchPage
from headgate.store.queries.rows import born_until
from headgate.store.search.hits import Match
from headgate.store.search.lexical import LexicalRanking, LexicalSearch
from headgate.store.search.meaning import AskedMeaning, MeaningSearch, SearchMemory, SimilarRecords
from headgate.store.search.merging import by_coverage, merged
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

#: So many of each list are put together; what is further down in both would not come up.
LISTED_MOST = 200
#: What the places of this version look like.
_FORMAT = "h1"
#: Added to a change number, so that its length in a cursor is always the same: hidden records have a part in it.
_ENLARGED = 1 << 40


class _HybridPlace(NamedTuple):
    """Where a page ends.

    Ranks shift when records come and go. Those that came after the first page are left out of the later ones, and
    the next page begins after the last record shown, wherever that is by then.
    """

    #: The change number of the store when the first page was made, enlarged.
    horizon: int
    shown_count: int
    last_rid: int


@dataclass(frozen=True, slots=True)
class _Merged:
    """The matches of both lists by row number, and all of them in one order."""

    by_words: Mapping[int, Match]
    by_meaning: Mapping[int, Match]
    order: Sequence[int]


class SearchByBoth:
    """One search for one page."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        memory: SearchMemory,
        plan: SearchPlan,
        question: AskedMeaning,
    ) -> None:
        listed = replace(plan, limit=LISTED_MOST, ahead=0, after=None, sort=SearchSort.RELEVANCE)
        self._database = database
        self._plan = plan
        self._by_words = LexicalSearch(database, catalog, memory.segments, plan)
        self._words = LexicalSearch(database, catalog, memory.segments, listed)
        self._meaning = MeaningSearch(database, catalog, memory, listed, question)

    def page(self) -> SearchPage:
        """Return a page of hits."""
        after = self._plan.after
        if self._plan.or_words and after is not None and after.place[0] != _FORMAT:
            # What began by words goes on by words.
            return self._by_words.page()
        if self._plan.or_words and after is None and not self._meaning.is_complete:
            return replace(self._by_words.page(), pending_count=self._meaning.pending_count)
        ranking = self._words.ranking()
        if self._plan.or_words and after is None and ranking.counts.whole > LISTED_MOST:
            return self._by_words.page()
        return self._page(ranking, self._meaning.similar())

    def _page(self, ranking: LexicalRanking, similar: SimilarRecords) -> SearchPage:
        seen = _read_position(self._plan.after)
        database = self._database
        horizon = seen.horizon if seen else database.value(database.sql["change_number"]) | _ENLARGED
        both = self._merged(ranking, similar, horizon)
        order = both.order
        start = 0
        if seen is not None:
            start = order.index(seen.last_rid) + 1 if seen.last_rid in order else seen.shown_count
        page_rids = order[start : start + self._plan.most_hits]
        end = start + len(page_rids)
        places = {
            rid: SearchPosition((_FORMAT, horizon, start + place, rid))
            for place, rid in enumerate(page_rids, 1)
        }
        # With the words around the match where there is one, else with the similar passage.
        shown = [both.by_words[rid] for rid in page_rids if rid in both.by_words]
        hits, damaged = self._words.show(shown, ranking.found)
        others, more_damaged = self._meaning.show(
            [both.by_meaning[rid] for rid in page_rids if rid not in both.by_words]
        )
        return SearchPage(
            tuple(_scored(hits | others, places, both)),
            places[page_rids[-1]] if end < len(order) else None,
            None,
            ranked_all=len(ranking.in_order) <= LISTED_MOST and len(similar.records) <= LISTED_MOST,
            ranked_count=len(order),
            understood=self._words.understood(ranking.found, ranking.word_counts),
            damaged=(*damaged, *more_damaged),
            pending_count=similar.pending_count,
            is_cut=self._words.is_cut or self._meaning.is_cut,
            mode=SearchMode.HYBRID,
            matched_all=ranking.counts.whole,
        )

    def _merged(self, ranking: LexicalRanking, similar: SimilarRecords, horizon: int) -> _Merged:
        by_words = self._born_until(ranking.in_order[:LISTED_MOST], horizon)
        by_meaning = self._born_until(similar.records[:LISTED_MOST], horizon)
        order = merged(
            {rid: match.score for rid, match in by_words.items()},
            {rid: match.score for rid, match in by_meaning.items()},
            self._meaning.weight * by_coverage(ranking.coverage),
        )
        if self._plan.sort is SearchSort.TIME:
            order.sort(key=lambda rid: (by_words.get(rid) or by_meaning[rid]).place.by_time)
        return _Merged(by_words, by_meaning, order)

    def _born_until(self, matches: Sequence[Match], horizon: int) -> dict[int, Match]:
        """Return matches by row number, without those that came after the first page."""
        known = born_until(self._database, [match.place.rid for match in matches], horizon ^ _ENLARGED)
        return {match.place.rid: match for match in matches if match.place.rid in known}


def _scored(hits: Mapping[int, Hit], places: Mapping[int, SearchPosition], both: _Merged) -> list[Hit]:
    """Return hits in order, each with the scores that it has in either list."""
    lists = {SearchMode.LEXICAL: both.by_words, SearchMode.SEMANTIC: both.by_meaning}
    return [
        replace(
            hits[rid],
            scores={mode: matches[rid].score for mode, matches in lists.items() if rid in matches},
            place=place,
        )
        for rid, place in places.items()
        if rid in hits
    ]


def _read_position(after: SearchPosition | None) -> _HybridPlace | None:
    if after is None:
        return None
    if after.place[0] != _FORMAT:
        raise CursorExpired(param="cursor")
    return _HybridPlace._make(after.place[1:])
