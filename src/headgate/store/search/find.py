"""Search: by words, by meaning, or by both; of both, the best of either list in one order by the scores they have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from headgate.errors import CursorExpired
from headgate.model.plan import SearchPlan, SearchPosition
from headgate.model.query import SearchMode, SearchSort
from headgate.model.rows import Hit, SearchPage
from headgate.store.queries.rows import born_until
from headgate.store.search.hits import Match
from headgate.store.search.lexical import LexicalSearch
from headgate.store.search.meaning import AskedMeaning, MeaningSearch, SearchMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import is_current

#: So many of each list are put together; what is further down in both would not come up.
LISTED_MOST = 200
#: What the places of this version look like.
_FORMAT = "h1"
#: Added to a change number, so that its length in a cursor is always the same: hidden records have a part in it.
_ENLARGED = 1 << 40


def find(
    database: Database,
    catalog: Catalog,
    memory: SearchMemory,
    plan: SearchPlan,
    question: AskedMeaning | None = None,
) -> SearchPage:
    """Find a page of hits; a search by meaning, or by both, needs the vector of its query."""
    if question is None:
        page = LexicalSearch(database, catalog, memory.segments, plan).page()
    elif plan.mode is SearchMode.SEMANTIC:
        page = MeaningSearch(database, catalog, memory, plan, question).page()
        if not any(term.is_strict or term.is_excluded for term in plan.terms):
            # Only quoted and excluded words are looked up in the word index.
            return page
    else:
        page = _by_both(database, catalog, memory, plan, question)
    return page if is_current(database) else replace(page, is_index_building=True)


class _HybridPlace(NamedTuple):
    """Where a page ends.

    Ranks shift when records come and go. Those that came after the first page are left out of the later ones, and
    the next page begins after the last record shown, wherever that is by then.
    """

    #: The change number of the store when the first page was made, enlarged.
    horizon: int
    shown_count: int
    last_rid: int


def _by_both(
    database: Database, catalog: Catalog, memory: SearchMemory, plan: SearchPlan, question: AskedMeaning
) -> SearchPage:
    listed = replace(plan, limit=LISTED_MOST, after=None, sort=SearchSort.RELEVANCE)
    words = LexicalSearch(database, catalog, memory.segments, listed)
    meaning = MeaningSearch(database, catalog, memory, listed, question)
    seen = _read_position(plan.after)
    horizon = seen.horizon if seen else database.value(database.sql["change_number"]) | _ENLARGED
    ranking, similar = words.ranking(), meaning.similar()
    by_words = _born_until(database, ranking.in_order[:LISTED_MOST], horizon)
    by_meaning = _born_until(database, similar.records[:LISTED_MOST], horizon)
    order = _in_order(plan, by_words, by_meaning, question.weight)
    start = 0
    if seen is not None:
        start = order.index(seen.last_rid) + 1 if seen.last_rid in order else seen.shown_count
    page_rids = order[start : start + plan.most_hits]
    end = start + len(page_rids)
    places = {
        rid: SearchPosition((_FORMAT, horizon, start + place, rid)) for place, rid in enumerate(page_rids, 1)
    }
    # With the words around the match where there is one, else with the similar passage.
    hits, damaged = words.show([by_words[rid] for rid in page_rids if rid in by_words], ranking.found)
    others, more_damaged = meaning.show([by_meaning[rid] for rid in page_rids if rid not in by_words])
    return SearchPage(
        tuple(_scored(hits | others, places, by_words, by_meaning)),
        places[page_rids[-1]] if end < len(order) else None,
        None,
        ranked_all=len(ranking.in_order) <= LISTED_MOST and len(similar.records) <= LISTED_MOST,
        ranked_count=len(order),
        understood=words.understood(ranking.found, ranking.word_counts),
        damaged=(*damaged, *more_damaged),
        pending_count=similar.pending_count,
        is_cut=words.is_cut or meaning.is_cut,
    )


def _born_until(database: Database, matches: Sequence[Match], horizon: int) -> dict[int, Match]:
    """Return matches by row number, without those that came after the first page."""
    known = born_until(database, [match.place.rid for match in matches], horizon ^ _ENLARGED)
    return {match.place.rid: match for match in matches if match.place.rid in known}


def _in_order(
    plan: SearchPlan, by_words: Mapping[int, Match], by_meaning: Mapping[int, Match], weight: float
) -> list[int]:
    order = fuse(
        {rid: match.score for rid, match in by_words.items()},
        {rid: match.score for rid, match in by_meaning.items()},
        weight,
    )
    if plan.sort is SearchSort.TIME:
        order.sort(key=lambda rid: (by_words.get(rid) or by_meaning[rid]).place.by_time)
    return order


def _scored(
    hits: Mapping[int, Hit],
    places: Mapping[int, SearchPosition],
    by_words: Mapping[int, Match],
    by_meaning: Mapping[int, Match],
) -> list[Hit]:
    """Return hits in order, each with the scores that it has in either list."""
    lists = {SearchMode.LEXICAL: by_words, SearchMode.SEMANTIC: by_meaning}
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


_Thing = TypeVar("_Thing", bound=Hashable)


def fuse(by_words: Mapping[_Thing, float], by_meaning: Mapping[_Thing, float], weight: float) -> list[_Thing]:
    """Put what either search found in one order, the best first; of equal ones, the first by words.

    A score counts as its part of the best score of the same search, and one by meaning ``weight`` times that. Ranks
    alone would make a far better match by words count hardly more than the next.
    """
    scores: defaultdict[_Thing, float] = defaultdict(float)
    for ranked, factor in ((by_words, 1.0), (by_meaning, weight)):
        best = max(ranked.values(), default=0)
        for thing, score in ranked.items():
            scores[thing] += factor * score / best if best > 0 else 0
    return sorted(scores, key=lambda thing: -scores[thing])
