"""Make hits ready to show: the record's granted fields, which fields match, and the words around the matches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headgate.errors import IntegrityBroken
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import Reach, SearchPlan, SearchReach, Term
from headgate.model.record import Record
from headgate.model.rows import Hit, Snippet
from headgate.store.format.long_texts import CHUNK_CHARS, long_notes
from headgate.store.format.projection import searched_text_in
from headgate.store.format.segments import POSITION_BITS
from headgate.store.format.streams import Shelf
from headgate.store.queries.rows import FoundRow, RecordMaker, read_chunks, readable_rows
from headgate.store.search.query import Need, SearchQuestion
from headgate.store.search.snippets import Highlighter
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

if TYPE_CHECKING:
    from headgate.store.search.lexical import Place
    from headgate.store.search.matching import FoundNeed
    from headgate.store.search.scope import SearchScope
    from headgate.store.search.visible_text import VisibleText

SNIPPETS_MOST = 3
_OVERLAP_CHARS = 512
#: So many forms of a word are marked; more would make the pattern slow.
_MARKED_FORMS = 24


class RankedHit(NamedTuple):
    """A match with its place in the order, its number among the visible records, and the needs it holds, as bits."""

    place: Place
    record: int
    bits: int


def show(
    database: Database,
    catalog: Catalog,
    plan: SearchPlan,
    scope: SearchScope,
    text: VisibleText,
    shown: Sequence[RankedHit],
    found: Sequence[FoundNeed],
    question: SearchQuestion,
) -> tuple[tuple[Hit, ...], tuple[RecordId, ...]]:
    """Make hits of the matches that are shown; returns them, and the damaged records that are left out."""
    rows = readable_rows(database, [hit.place.rid for hit in shown])
    matched = _matched_fields(text, shown, found)
    highlighter = _highlighter(question, found)
    makers: dict[Reach, RecordMaker] = {}
    hits: list[Hit] = []
    damaged = [RecordId(one.place.record_id) for one in shown if one.place.rid not in rows]
    for one in (hit for hit in shown if hit.place.rid in rows):
        row = FoundRow._make(rows[one.place.rid])
        reach = scope.reaches[row.sid]
        if reach.reach not in makers:
            makers[reach.reach] = RecordMaker(
                database, catalog, reach.reach, preview_chars=plan.preview_chars
            )
        missing = tuple(
            need.name
            for place, need in enumerate(question.needs)
            if not need.is_part and not one.bits >> place & 1
        )
        names = tuple(name for name in reach.search_fields if name in matched[one.record])
        try:
            record = makers[reach.reach].make(row)
            shelf = catalog.by_sid[row.sid]
            hits.append(_hit(database, reach, shelf, row, record, highlighter, names, missing))
        except IntegrityBroken:
            damaged.append(row.record_id)
    return tuple(hits), tuple(damaged)


def _matched_fields(
    text: VisibleText, shown: Sequence[RankedHit], found: Sequence[FoundNeed]
) -> dict[int, set[FieldName]]:
    records = np.array([hit.record for hit in shown], np.int64)
    matched: dict[int, set[FieldName]] = {hit.record: set() for hit in shown}
    for one in found:
        of_records = text.columns.records_of(one.occurrences)
        stays = np.isin(of_records, records)
        names = text.field_names(one.occurrences.keys[stays] >> POSITION_BITS)
        for record, name in zip(of_records[stays].tolist(), names, strict=True):
            matched[record].add(name)
    return matched


def _highlighter(question: SearchQuestion, found: Sequence[FoundNeed]) -> Highlighter:
    terms: list[Term] = []
    forms: set[str] = set()
    for need, one in zip(question.needs, found, strict=True):
        terms += _marked_terms(need, one)
        forms |= {choice.words[0].decode() for choice in need.choices if choice.is_normal_form}
    return Highlighter(terms, forms)


def _marked_terms(need: Need, found: FoundNeed) -> list[Term]:
    plain = [choice for choice in need.choices if not choice.is_normal_form]
    terms = [choice.term for choice in plain if choice.term is not None]
    words = sorted(found.words, key=lambda word: (-found.words[word], word))[:_MARKED_FORMS]
    is_open = any(choice.is_prefix and len(choice.words) == 1 for choice in plain)
    typed = {choice.words for choice in plain}
    if not is_open:
        terms += [
            Term((word.decode(),)) for word in words if (word,) not in typed and word[:1] not in {b"@", b"#"}
        ]
    return terms


def _hit(
    database: Database,
    reach: SearchReach,
    shelf: Shelf,
    row: FoundRow,
    record: Record,
    highlighter: Highlighter,
    matched: tuple[FieldName, ...],
    missing: tuple[str, ...],
) -> Hit:
    snippets = [
        snippet
        for name in matched[:SNIPPETS_MOST]
        if (snippet := _snippet(database, shelf, row, name, highlighter)) is not None
    ]
    is_shown = shelf.stream.time_field in reach.reach.fields
    return Hit(record, matched, tuple(snippets), row.ts if is_shown else None, missing)


def _snippet(
    database: Database, shelf: Shelf, row: FoundRow, name: FieldName, highlighter: Highlighter
) -> Snippet | None:
    note = long_notes(row.long).get(name)
    if note is not None:
        return _snippet_of_long(database, row.rid, shelf.stream.fids[name], name, note[0], highlighter)
    assert row.body is not None
    return highlighter.snippet(name, searched_text_in(row.body, name))


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
