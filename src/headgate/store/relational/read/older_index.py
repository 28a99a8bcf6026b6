"""The full-text table of version 0.1, which answers for the records that are not in the word index yet.

It only names candidates: of each reach the newest records that hold all words as they were typed. The visible texts
of these are put into segments in memory, where a search finds words as in every other segment. The table goes when
the word index is filled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from headgate.model.plan import SearchPlan, SearchReach
from headgate.store.lexical import analyser
from headgate.store.lexical.analyser import index_tokens
from headgate.store.lexical.query import Need, SearchQuestion, WordChoice
from headgate.store.lexical.segments import Text, build
from headgate.store.relational.catalog import Catalog, Shelf
from headgate.store.relational.database import Database
from headgate.store.relational.read.search_scope import SearchScope
from headgate.store.relational.read.visible_text import SegmentMemory, VisibleText
from headgate.store.relational.row_numbers import RID_SHIFT
from headgate.store.relational.write.derive import search_texts
from headgate.store.relational.write.long_texts import values_of

#: So many records of each reach are candidates: as many as version 0.1 ranked.
CANDIDATES_MOST = 300


def is_filled(database: Database) -> bool:
    """Say whether every record is in the word index, by the rules of this version."""
    return database.value(database.sql["words_version"]) == analyser.VERSION


def searched_text(
    database: Database,
    catalog: Catalog,
    memory: SegmentMemory,
    plan: SearchPlan,
    scope: SearchScope,
    question: SearchQuestion,
) -> VisibleText:
    """Give the text that a search looks at: what the word index holds, and what the older one finds beside it."""
    text = memory.visible_text(database, plan.reaches, scope)
    if is_filled(database) or not database.value(database.sql["has_older_index"]):
        return text
    texts: defaultdict[tuple[int, int], list[Text]] = defaultdict(list)
    for rid in _candidates(database, catalog, scope, question):
        shelf = catalog.by_sid[rid >> RID_SHIFT]
        for fid, time, words in _texts(database, shelf, rid):
            if (shelf.sid, fid) in scope.fields:
                texts[shelf.sid, fid].append(Text(rid & ((1 << RID_SHIFT) - 1), time, words))
    found = [
        (scope.fields[key], segment)
        for key, every in sorted(texts.items())
        if (missing := _without(every, text.numbers_of(*key)))
        for segment in build(missing)
    ]
    return text.with_segments(found)


def _without(texts: Sequence[Text], known: Collection[int]) -> list[Text]:
    """Leave out the texts that are in the word index: they were written since it was begun."""
    return [text for text in texts if text.number not in known]


def _texts(database: Database, shelf: Shelf, rid: int) -> Iterator[tuple[int, int | None, list[bytes]]]:
    row = database.one(database.sql["record_texts"], (rid,))
    if row is not None:
        ts, long, body = row
        values = values_of(database, shelf.stream, rid, long, body)
        texts = search_texts(shelf.stream, values or {})
        yield from ((fid, ts, index_tokens(text)) for fid, text in texts)


def _candidates(
    database: Database, catalog: Catalog, scope: SearchScope, question: SearchQuestion
) -> Iterator[int]:
    """Find the newest records that hold all words, for each stream of each reach."""
    after = database.value(database.sql["words_filled"])
    shelves: defaultdict[tuple[int, SearchReach], list[Shelf]] = defaultdict(list)
    for sid, reach in scope.reaches.items():
        shelf = catalog.by_sid[sid]
        shelves[shelf.stream.stid, reach].append(shelf)
    for (stid, one), those in shelves.items():
        slots = dict(database.all(database.sql["older_columns"], (stid,)))
        columns = [f"c{slots[name]}" for name in one.search_fields if name in slots]
        if not columns:
            continue
        time, resources = one.reach.time, one.reach.resources
        bounds = (None, None) if time is None else (time.since, time.until)
        keys = None if resources is None else msgspec.json.encode(sorted(resources)).decode()
        match = _expression(columns, those, question.needs)
        values = (match, after, time is not None, *bounds, keys, CANDIDATES_MOST)
        yield from (rid for (rid,) in database.all(database.sql["older_matches"], values))


def _expression(columns: Iterable[str], shelves: Iterable[Shelf], needs: Iterable[Need]) -> str:
    """Write what is looked for in the language of the table; words have no quotes in them."""
    words = " AND ".join(
        f"({' OR '.join(_phrase(choice) for choice in need.choices if not choice.is_normal_form)})"
        for need in needs
        if not need.is_part
    )
    return f"{{{' '.join(columns)}}} : ({words}) AND sh : ({' OR '.join(f's{one.sid}' for one in shelves)})"


def _phrase(choice: WordChoice) -> str:
    text = " ".join(word.decode() for word in choice.words)
    return f'"{text}" *' if choice.is_prefix else f'"{text}"'
