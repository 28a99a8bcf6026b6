"""Searchers over the same sections: Headgate's store, and lexical engines beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import apsw
import msgspec
import psycopg

from bench.relevance.manuals import Section
from bench.relevance.stitched import COMPARED, NAME as STITCHED, SEARCHED, StitchedRecord, fill_stitched
from headgate.home import open_home
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName
from headgate.model.plan import Reach, SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchMode
from headgate.model.rows import Batch
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.models.model import MeaningModel

#: From a question to the ids of the sections found, the best first.
Searcher = Callable[[str], Sequence[str]]
_LIMIT = 25
_NOW = 1_790_000_000_000_000
#: PostgreSQL divides a rank by 1 and the logarithm of the text's length.
_BY_LENGTH = 1
_WORD = re.compile(r"\w+")
_STEMMERS = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
}
_DECLARATION: dict[str, Any] = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://bench.example/manual"},
    "declaration_version": "1",
    "publisher": {"id": "https://bench.example"},
    "display": {"name": "Manual"},
    "streams": [
        {
            "name": "sections",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {name: {"type": "string"} for name in ("id", "title", "text")},
                "required": ["id"],
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": True},
            "query": {"search": {"lexical_fields": ["title", "text"]}},
        }
    ],
}


class OwnStore:
    """A home with one connection for each set, and one with the stitched records; searched as a grant for a set sees it."""

    def __init__(
        self,
        directory: Path,
        sets: Mapping[str, Sequence[Section]],
        model: MeaningModel | None,
        *,
        with_stitched: bool,
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = SqliteStore(open_home(directory / "sets"), lambda: _NOW, model)
        self._stitched_store = SqliteStore(open_home(directory / "stitched"), lambda: _NOW, model)
        self._connections: dict[str, ConnectionId] = {}
        #: The fields that the texts of each set have.
        self._fields: dict[str, tuple[FieldName, ...]] = {}
        self._loop.run_until_complete(self._fill(sets))
        self._accounts: dict[ConnectionId, int] = {}
        self.stitched_records: Sequence[StitchedRecord] = ()
        if with_stitched:
            filled = self._loop.run_until_complete(fill_stitched(self._stitched_store))
            self._accounts, self.stitched_records = filled
        for store in (self._store, self._stitched_store):
            while model is not None and not self._loop.run_until_complete(store.wait_for_vectors(60)):
                pass

    async def _fill(self, sets: Mapping[str, Sequence[Section]]) -> None:
        await self._store.declare(ConnectorKey("manual"), _DECLARATION)
        for name, sections in sets.items():
            made = (await self._store.create_connection(ConnectorKey("manual"), name)).id
            lines = [msgspec.json.encode({"data": {"id": one.anchor, **_fields(one)}}) for one in sections]
            await self._store.ingest(Batch(made, StreamName("sections"), lines, _NOW))
            self._connections[name] = made
            self._fields[name] = _names(tuple(_fields(sections[0])))

    def searcher(self, name: str, mode: SearchMode = SearchMode.LEXICAL) -> Searcher:
        """Search one set, or the stitched records, in a mode."""
        if name == STITCHED:
            reach = Reach(StreamName("messages"), tuple(self._accounts), (FieldName("id"),))
            searched = SearchReach(reach, _names(SEARCHED), meaning_fields=_names(COMPARED))
            return self._searcher(self._stitched_store, searched, mode, with_connection=True)
        reach = Reach(StreamName("sections"), (self._connections[name],), (FieldName("id"),))
        searched = SearchReach(reach, self._fields[name], meaning_fields=self._fields[name])
        return self._searcher(self._store, searched, mode, with_connection=False)

    def _searcher(
        self, store: SqliteStore, reach: SearchReach, mode: SearchMode, *, with_connection: bool
    ) -> Searcher:
        def search(question: str) -> list[str]:
            # A question is typed as it is; its quotes and dashes are no operators.
            plain = " ".join(_WORD.findall(question))
            page = self._loop.run_until_complete(
                store.search(SearchPlan((reach,), parse_terms(plain), _LIMIT, preview_chars=None, mode=mode))
            )
            records = [hit.record for hit in page.hits]
            return [
                f"{self._accounts[one.connection_id]}/{one.id}" if with_connection else str(one.id)
                for one in records
            ]

        return search

    def close(self) -> None:
        """Close the stores and their loop."""
        for store in (self._store, self._stitched_store):
            self._loop.run_until_complete(store.close())
        self._loop.close()


def _names(names: Sequence[str]) -> tuple[FieldName, ...]:
    return tuple(map(FieldName, names))


def _fields(section: Section) -> dict[str, str]:
    return {"title": section.heading, "text": section.text} if section.heading else {"text": section.text}


class Searched(Protocol):
    """A text of a set."""

    @property
    def anchor(self) -> str:
        """What it is named by in answers."""
        ...

    @property
    def heading(self) -> str:
        """What is searched as a field before the text; empty: there is none."""
        ...

    @property
    def text(self) -> str:
        """What is searched."""
        ...


def full_text(sections: Sequence[Searched], *, every_word: bool = False) -> Searcher:
    """SQLite's FTS5 with porter stems: any word by bm25, or every word as typed, the last section first."""
    table = apsw.Connection(":memory:")
    tokens = "unicode61" if every_word else "porter unicode61"
    table.execute(f"CREATE VIRTUAL TABLE f USING fts5(id UNINDEXED, title, text, tokenize='{tokens}')")
    with table:
        rows = ((one.anchor, one.heading, one.text) for one in sections)
        table.executemany("INSERT INTO f VALUES(?, ?, ?)", rows)
    order, glue = ("rowid DESC", " AND ") if every_word else ("rank", " OR ")

    def search(question: str) -> list[str]:
        match = glue.join(f'"{word}"' for word in _WORD.findall(question))
        found = table.execute(
            f"SELECT id FROM f WHERE f MATCH ? ORDER BY {order} LIMIT ?",  # noqa: S608 - one of two texts above
            (match, _LIMIT),
        )
        return [str(anchor) for (anchor,) in found]

    return search


def tantivy_index(sections: Sequence[Searched], language: str) -> Searcher | None:
    """Tantivy with the stems of the language, any word by bm25; None if it is not installed."""
    try:
        import tantivy  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        return None
    filters = tantivy.Filter
    builder = tantivy.TextAnalyzerBuilder(
        tantivy.Tokenizer.simple() if language in _STEMMERS else tantivy.Tokenizer.ngram(2, 2)
    ).filter(filters.lowercase())
    if language in _STEMMERS:
        builder = builder.filter(filters.ascii_fold()).filter(filters.stemmer(_STEMMERS[language]))
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("id", stored=True, tokenizer_name="raw")
    for name in ("title", "text"):
        schema.add_text_field(name, tokenizer_name="own")
    index = tantivy.Index(schema.build())
    index.register_tokenizer("own", builder.build())
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    for one in sections:
        writer.add_document(tantivy.Document(id=one.anchor, title=one.heading, text=one.text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> list[str]:
        words = _WORD.findall(question)
        if language not in _STEMMERS:
            # It would take the pairs of a word for a phrase.
            words = [word[at : at + 2] for word in words for at in range(max(1, len(word) - 1))]
        query = index.parse_query(" ".join(words), ["title", "text"])
        hits = searcher.search(query, _LIMIT).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return search


def postgres_index(sections: Sequence[Searched], language: str, url: str | None) -> Searcher | None:
    """PostgreSQL's full text with the stems of the language, any word, by how often it occurs; None without a server.

    With a weight for titles, or by cover density (``ts_rank_cd``), it finds less in most sets of questions `unseen`.
    """
    if url is None:
        return None
    stems = _STEMMERS.get(language, "simple")
    table = psycopg.connect(url, autocommit=True)
    table.execute("CREATE TEMP TABLE f(id text, words tsvector)")
    with table.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO f VALUES(%s, to_tsvector(%s::regconfig, %s))",
            [(one.anchor, stems, f"{one.heading}\n{one.text}") for one in sections],
        )

    def search(question: str) -> list[str]:
        found = table.execute(
            """WITH q AS (
                SELECT string_agg(nullif(plainto_tsquery(%s::regconfig, word)::text, ''), ' | ')::tsquery AS asked
                FROM unnest(%s::text[]) AS word
            )
            SELECT id FROM f, q WHERE words @@ asked ORDER BY ts_rank(words, asked, %s) DESC, id LIMIT %s""",
            (stems, _WORD.findall(question), _BY_LENGTH, _LIMIT),
        )
        return [str(anchor) for (anchor,) in found]

    return search
