"""Searchers over the same sections: Headgate's store, and lexical engines beside it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import apsw
import msgspec

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
                "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
                "required": ["id"],
            },
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": True},
            "query": {"search": {"lexical_fields": ["text"]}},
        }
    ],
}


class OwnStore:
    """A home with one connection for each manual, and one with the stitched records; searched as a grant for a set sees it."""

    def __init__(
        self, directory: Path, manuals: Mapping[str, Sequence[Section]], model: MeaningModel | None = None
    ) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = SqliteStore(open_home(directory / "manuals"), lambda: _NOW, model)
        self._stitched_store = SqliteStore(open_home(directory / "stitched"), lambda: _NOW, model)
        self._connections = self._loop.run_until_complete(self._fill(manuals))
        filled = self._loop.run_until_complete(fill_stitched(self._stitched_store))
        self._accounts: dict[ConnectionId, int] = filled[0]
        self.stitched_records: Sequence[StitchedRecord] = filled[1]
        for store in (self._store, self._stitched_store):
            while not self._loop.run_until_complete(store.wait_for_vectors(60)):
                pass

    async def _fill(self, manuals: Mapping[str, Sequence[Section]]) -> dict[str, ConnectionId]:
        await self._store.declare(ConnectorKey("manual"), _DECLARATION)
        made: dict[str, ConnectionId] = {}
        for name, sections in manuals.items():
            made[name] = (await self._store.create_connection(ConnectorKey("manual"), name)).id
            lines = [msgspec.json.encode({"data": {"id": one.anchor, "text": one.text}}) for one in sections]
            await self._store.ingest(Batch(made[name], StreamName("sections"), lines, _NOW))
        return made

    def searcher(self, name: str, mode: SearchMode = SearchMode.LEXICAL) -> Searcher:
        """Search one manual, or the stitched records, in a mode."""
        if name == STITCHED:
            reach = Reach(StreamName("messages"), tuple(self._accounts), (FieldName("id"),))
            searched = SearchReach(reach, _names(SEARCHED), meaning_fields=_names(COMPARED))
            return self._searcher(self._stitched_store, searched, mode, with_connection=True)
        reach = Reach(StreamName("sections"), (self._connections[name],), (FieldName("id"),))
        searched = SearchReach(reach, _names(("text",)), meaning_fields=_names(("text",)))
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


class Searched(Protocol):
    """A text of a set."""

    @property
    def anchor(self) -> str:
        """What it is named by in answers."""
        ...

    @property
    def text(self) -> str:
        """What is searched."""
        ...


def full_text(sections: Sequence[Searched], *, every_word: bool = False) -> Searcher:
    """SQLite's FTS5 with porter stems: any word by bm25, or every word as typed, the last section first."""
    table = apsw.Connection(":memory:")
    tokens = "unicode61" if every_word else "porter unicode61"
    table.execute(f"CREATE VIRTUAL TABLE f USING fts5(id UNINDEXED, text, tokenize='{tokens}')")
    with table:
        table.executemany("INSERT INTO f VALUES(?, ?)", ((one.anchor, one.text) for one in sections))
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
    schema.add_text_field("text", tokenizer_name="own")
    index = tantivy.Index(schema.build())
    index.register_tokenizer("own", builder.build())
    writer = index.writer(heap_size=15_000_000, num_threads=1)
    for one in sections:
        writer.add_document(tantivy.Document(id=one.anchor, text=one.text))
    writer.commit()
    index.reload()
    searcher = index.searcher()

    def search(question: str) -> list[str]:
        words = _WORD.findall(question)
        if language not in _STEMMERS:
            # It would take the pairs of a word for a phrase.
            words = [word[at : at + 2] for word in words for at in range(max(1, len(word) - 1))]
        query = index.parse_query(" ".join(words), ["text"])
        hits = searcher.search(query, _LIMIT).hits
        return [searcher.doc(address)["id"][0] for _, address in hits]

    return search
