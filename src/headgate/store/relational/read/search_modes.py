"""Search in the mode that a plan names: by words, by meaning, or by both."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec.structs import replace

from headgate.model.plan import SearchPlan
from headgate.model.query import SearchMode, SearchSort
from headgate.model.rows import SearchPage
from headgate.store.lexical.query import understand
from headgate.store.relational.catalog import Catalog
from headgate.store.relational.database import Database
from headgate.store.relational.read.hybrid import LISTED_MOST, HybridSearch
from headgate.store.relational.read.meaning import AskedMeaning, MeaningSearch
from headgate.store.relational.read.meaning_scope import VectorMemory
from headgate.store.relational.read.search import LexicalSearch, as_far_as_indexed
from headgate.store.relational.read.search_scope import search_scope
from headgate.store.relational.read.visible_text import SegmentMemory


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
