"""Matches, whatever found them, and the hits that are made of those that are shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from headgate.errors import IntegrityBroken
from headgate.model.ids import FieldName, RecordId
from headgate.model.plan import Reach, SearchPlan, SearchReach, Term
from headgate.model.record import Record
from headgate.model.rows import Hit, Snippet
from headgate.store.format.arrays import np
from headgate.store.format.records import CHUNK_CHARS, long_notes, searched_text_in
from headgate.store.format.segments import POSITION_BITS
from headgate.store.queries.rows import FoundRow, RecordMaker, read_chunks, readable_rows
from headgate.store.search.matching import FoundNeed
from headgate.store.search.query import Need, SearchQuestion
from headgate.store.search.snippets import Highlighter
from headgate.store.search.visible_text import VisibleText
from headgate.store.sql.catalog import Catalog
from headgate.store.sql.database import Database

SNIPPETS_MOST = 3
_OVERLAP_CHARS = 512
#: So many forms of a word are marked; more would make the pattern slow.
_MARKED_FORMS = 24


class Place(NamedTuple):
    """A place in the order of hits: all words first, then the better, then the newer, then by key."""

    #: 0 if the record holds all words, 1 if some of them stand only in what it quotes, 2 if it lacks only words that
    #: no record holds, 3 if it lacks others.
    tier: int
    #: The score, negated; 0 where hits are ordered by time.
    by_score: int
    #: The time, negated; the largest number for none.
    by_time: int
    record_id: str
    rid: int


class Match(NamedTuple):
    """A record that was found by words or by meaning."""

    place: Place
    score: float
    #: By words: its number among the visible records, and the needs it holds, as bits.
    record: int = 0
    bits: int = 0
    #: Whether it would hold fewer of the needs without what it quotes.
    is_quoted: bool = False
    #: By meaning: the field, the start and the end of the passage that is most similar.
    passage: tuple[int, int, int] = (0, 0, 0)


#: Makes the hit of a match: what is shown of it, besides the record and its time.
MakeHit = Callable[[Match, FoundRow, Record, int | None], Hit]
#: Hits by row number, and the damaged records that are left out.
ShownHits = tuple[dict[int, Hit], tuple[RecordId, ...]]


def show(
    database: Database,
    catalog: Catalog,
    plan: SearchPlan,
    reaches: Mapping[int, SearchReach],
    matches: Sequence[Match],
    make: MakeHit,
) -> ShownHits:
    """Make hits of matches, with the fields that the reach of each allows."""
    rows = readable_rows(database, [match.place.rid for match in matches])
    damaged = [RecordId(match.place.record_id) for match in matches if match.place.rid not in rows]
    makers: dict[Reach, RecordMaker] = {}
    hits: dict[int, Hit] = {}
    for match in (match for match in matches if match.place.rid in rows):
        row = FoundRow._make(rows[match.place.rid])
        reach = reaches[row.sid].reach
        if reach not in makers:
            makers[reach] = RecordMaker(database, catalog, reach, preview_chars=plan.preview_chars)
        shows_time = catalog.by_sid[row.sid].stream.time_field in reach.fields
        try:
            hits[row.rid] = make(match, row, makers[reach].make(row), row.ts if shows_time else None)
        except IntegrityBroken:
            damaged.append(row.record_id)
    return hits, tuple(damaged)


class WordHits:
    """Makes hits of matches by words: which fields hold them, which words are missing, and the words around them."""

    def __init__(
        self,
        database: Database,
        catalog: Catalog,
        reaches: Mapping[int, SearchReach],
        question: SearchQuestion,
        words: Sequence[FoundNeed],
        matched: Mapping[int, set[FieldName]],
        snippet_chars: int,
    ) -> None:
        self._database = database
        self._catalog = catalog
        self._reaches = reaches
        self._needs = question.needs
        self._matched = matched
        self._highlighter = _highlighter(question, words)
        self._chars = snippet_chars

    def make(self, match: Match, row: FoundRow, record: Record, time: int | None) -> Hit:
        names = tuple(
            name for name in self._reaches[row.sid].search_fields if name in self._matched[match.record]
        )
        snippets = [self._snippet(row, name) for name in names[:SNIPPETS_MOST]]
        missing = tuple(
            need.name
            for place, need in enumerate(self._needs)
            if not need.is_part and not match.bits >> place & 1
        )
        return Hit(record, names, tuple(filter(None, snippets)), time, missing, is_quoted=match.is_quoted)

    def _snippet(self, row: FoundRow, name: FieldName) -> Snippet | None:
        """Cut out the first match; of a long text chunk by chunk, each with a little of the one before it."""
        note = long_notes(row.long).get(name)
        if note is None:
            assert row.body is not None
            return self._highlighter.snippet(name, searched_text_in(row.body, name), self._chars)
        fid = self._catalog.by_sid[row.sid].stream.fids[name]
        for start in range(0, note[0], CHUNK_CHARS):
            begin = max(0, start - _OVERLAP_CHARS)
            text = read_chunks(self._database, row.rid, fid, begin, min(start + CHUNK_CHARS, note[0]))
            snippet = self._highlighter.snippet(name, text, self._chars, whole=False, at=begin)
            if snippet is not None:
                return replace(snippet, size_chars=note[0])
        return None


def matched_fields(
    text: VisibleText, matches: Sequence[Match], words: Sequence[FoundNeed]
) -> dict[int, set[FieldName]]:
    """Return the fields of each matching record, by its number, that hold any of the needs."""
    records = np.array([match.record for match in matches], np.int64)
    matched: dict[int, set[FieldName]] = {match.record: set() for match in matches}
    for need in words:
        of_records = text.columns.records_of(need.occurrences)
        stays = np.isin(of_records, records)
        names = text.field_names(need.occurrences.keys[stays] >> POSITION_BITS)
        for record, name in zip(of_records[stays].tolist(), names, strict=True):
            matched[record].add(name)
    return matched


def _highlighter(question: SearchQuestion, needs_found: Sequence[FoundNeed]) -> Highlighter:
    terms: list[Term] = []
    forms: set[str] = set()
    counts: dict[str, int] = {}
    for need, words in zip(question.needs, needs_found, strict=True):
        terms += _marked_terms(need, words)
        forms |= {choice.words[0].decode() for choice in need.choices if choice.is_normal_form}
        counts |= {word.decode(): count for word, count in words.words.items()}
    return Highlighter(terms, forms, counts)


def _marked_terms(need: Need, need_found: FoundNeed) -> list[Term]:
    plain = [choice for choice in need.choices if not choice.is_normal_form]
    terms = [choice.term for choice in plain if choice.term is not None]
    if any(choice.is_prefix and len(choice.words) == 1 for choice in plain):
        return terms
    words = sorted(need_found.words, key=lambda word: (-need_found.words[word], word))[:_MARKED_FORMS]
    typed = {choice.words for choice in plain}
    return terms + [
        Term((word.decode(),)) for word in words if (word,) not in typed and word[:1] not in {b"@", b"#"}
    ]
