"""Aggregates over the records that hold some words, and of values in texts: found by the word index, computed like all others."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from headgate import memory
from headgate.errors import ResourceLimit
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, SearchPlan, SearchReach, Term
from headgate.model.query import Metric
from headgate.model.rows import Aggregate
from headgate.store.format.arrays import np
from headgate.store.queries.aggregates import ReadableTexts, aggregate
from headgate.store.search.extracting import RECORDS_MOST, ValueReader
from headgate.store.search.lexical import LexicalSearch, WholeMatches
from headgate.store.search.visible_text import SegmentMemory
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database
from headgate.store.sql.word_segments import is_current

#: How much memory a row number takes, about: as an object, and written in a list for a statement.
_ROW_BYTES = 64


def aggregate_texts(
    database: Database, catalog: Catalog, segments: SegmentMemory, plan: AggregatePlan
) -> Aggregate:
    """Compute what a plan asks for that is about words.

    Raises:
        ResourceLimit: the words stand in more places than one search reads, or there are too many texts to read
            values from, so that no number would be exact.
    """

    def matches(
        terms: Sequence[Term],
        fields: Sequence[FieldName],
        param: str,
        quoted_fields: Sequence[FieldName] = (),
    ) -> WholeMatches:
        reach = SearchReach(plan.reach, tuple(fields), quoted_fields=tuple(quoted_fields))
        search = LexicalSearch(database, catalog, segments, SearchPlan((reach,), tuple(terms), limit=1))
        whole = search.whole_matches()
        if search.is_cut:
            raise ResourceLimit(
                "These words stand in too many places to be counted exactly.",
                param=param,
                hint="Use rarer words, or name fewer fields in in, or one connection_id.",
            )
        memory.require((len(whole.rids) + len(whole.quoted_rids)) * _ROW_BYTES)
        return whole

    words, extract = plan.words, plan.extract
    holding = None
    if words is not None:
        holding = matches(words.terms, words.search_fields, "q", words.quoted_fields)
    among = None if holding is None else holding.rids.tolist()
    texts = reader = None
    if extract is not None:
        rids = matches([extract.phrase], extract.search_fields, "extract").rids
        if holding is not None:
            rids = np.intersect1d(rids, holding.rids)
        reader = ValueReader(database, catalog, extract)
        texts = ReadableTexts(rids.tolist(), reader.read, RECORDS_MOST)
    quoted_count = None
    if holding is not None and words is not None and words.quoted_fields:
        counted = AggregatePlan(plan.reach, Metric.COUNT, filters=plan.filters)
        quoted = aggregate(database, catalog, counted, holding.quoted_rids.tolist())
        quoted_count = quoted.filtered_record_count
    return replace(
        aggregate(database, catalog, plan, among, texts),
        understood=None if holding is None else holding.understood,
        quoted_count=quoted_count,
        is_index_building=not is_current(database),
        damaged=() if reader is None else tuple(reader.damaged),
    )
