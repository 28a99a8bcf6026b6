"""Aggregates over the records that hold some words: found by the word index, counted and added up like all others."""

from __future__ import annotations

from msgspec.structs import replace

from headgate import memory
from headgate.errors import ResourceLimit
from headgate.model.plan import AggregatePlan, SearchPlan, SearchReach, WordCondition
from headgate.model.rows import Aggregate
from headgate.store.queries.aggregates import aggregate
from headgate.store.search.lexical import LexicalSearch
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import is_current

#: How much memory a row number takes, about: as an object, and written in a list for a statement.
_ROW_BYTES = 64


def aggregate_matches(
    database: Database, catalog: Catalog, segments: SegmentMemory, plan: AggregatePlan, words: WordCondition
) -> Aggregate:
    """Compute what the plan asks for over the records that hold all the words.

    Raises:
        ResourceLimit: the words stand in more places than one search reads, so that no number would be exact.
    """
    reach = SearchReach(plan.reach, words.search_fields)
    search = LexicalSearch(database, catalog, segments, SearchPlan((reach,), words.terms, limit=1))
    matches = search.whole_matches()
    if search.is_cut:
        raise ResourceLimit(
            "These words stand in too many places to be counted exactly.",
            param="q",
            hint="Use rarer words, or name fewer fields in in, or one connection_id.",
        )
    memory.require(len(matches.rids) * _ROW_BYTES)
    numbers = aggregate(database, catalog, plan, matches.rids.tolist())
    return replace(numbers, understood=matches.understood, is_index_building=not is_current(database))
