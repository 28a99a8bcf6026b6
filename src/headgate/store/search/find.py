"""Search: by words, by meaning, or by both; of both, the best of either list in one order."""

from __future__ import annotations

from msgspec.structs import replace

from headgate.model.plan import SearchPlan
from headgate.model.query import SearchMode
from headgate.model.rows import SearchPage
from headgate.store.search.both import SearchByBoth
from headgate.store.search.lexical import LexicalSearch
from headgate.store.search.meaning import AskedMeaning, MeaningSearch, SearchMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import is_current


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
        page = SearchByBoth(database, catalog, memory, plan, question).page()
    return page if is_current(database) else replace(page, is_index_building=True)
