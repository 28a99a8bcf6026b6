"""Stores with a model, for tests of search by meaning: the real one, loaded once, or one that is quick to compute."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import psycopg

from headgate.home import open_home
from headgate.model.ids import FieldName
from headgate.model.plan import Reach, SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchMode
from headgate.model.rows import SearchPage
from headgate.store.engines.postgres import PostgresStore
from headgate.store.engines.sqlite import SqliteStore
from headgate.store.engines.store import Store
from headgate.store.models.model import MeaningModel, ModelIdentity
from headgate.store.models.multilingual import MultilingualEmbedder
from headgate.store.postgres.migrate import open_place
from headgate.store.sqlite import FILE
from tests import postgres
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

MODEL = MeaningModel(MultilingualEmbedder)
MODES = (SearchMode.SEMANTIC, SearchMode.HYBRID)
WAIT_SECONDS = 60.0


class WordEmbedder:
    """A model by which texts are similar if they share words: quick, and plain to see through."""

    batch_size = 1
    least_similarity = 0.1
    weight = 1.0

    def __init__(self, name: str = "words") -> None:
        self.identity = ModelIdentity(name, f"digest of {name}", 64)

    def embed(self, texts: Sequence[str]) -> Any:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Any:
        vector = np.zeros(self.identity.dimensions, np.float32)
        for word in text.lower().split():
            digest = hashlib.sha256(f"{self.identity.name} {word}".encode()).digest()
            vector[digest[0] % len(vector)] += 1 if digest[1] % 2 else -1
        return vector


def words_model(name: str = "words") -> MeaningModel:
    return MeaningModel(lambda: WordEmbedder(name))


@dataclass(frozen=True, slots=True)
class MeaningHome:
    """A directory, and the engine that its store is opened with."""

    directory: Path
    engine: str = "sqlite"

    def rows(self, sql: str) -> set[Any]:
        """Give the first column of what a statement finds in the tables of the home."""
        if self.engine == "sqlite":
            with apsw.Connection(str(self.directory / FILE), flags=apsw.SQLITE_OPEN_READONLY) as file:
                return {row[0] for row in file.execute(sql)}
        place = open_place(postgres.database_url(), str(self.directory))
        with psycopg.connect(place.url) as connection:
            return {row[0] for row in connection.execute(f"{sql} WHERE home={place.home}".encode())}


def opened(home: MeaningHome, model: MeaningModel | None) -> Driven:
    """Open a store with a model."""
    clock = itertools.count(NOW).__next__
    if home.engine == "sqlite":
        store: Store = SqliteStore(open_home(home.directory), clock, model)
    else:
        place = open_place(postgres.database_url(), str(home.directory))
        store = PostgresStore(place, clock, model, connections=1)
    return Driven(home.engine, home.directory, store)


@contextmanager
def meaning_ledger(
    home: MeaningHome, model: MeaningModel = MODEL, *, connections: int = 2
) -> Generator[Ledger]:
    """Open an empty store with the declaration and some connections."""
    store = opened(home, model)
    try:
        yield Ledger(store, connections=connections)
    finally:
        store.close()


def find(
    ledger: Ledger,
    q: str,
    *,
    mode: SearchMode = SearchMode.SEMANTIC,
    reach: Reach | None = None,
    fields: Sequence[str] = ("title", "body"),
    limit: int = 10,
    **options: Any,
) -> SearchPage:
    """Search the notes."""
    names = tuple(map(FieldName, fields))
    whole = SearchReach(reach or ledger.reach(), names, shows_time=True, meaning_fields=names)
    return ledger.store.search(SearchPlan((whole,), parse_terms(q), limit, mode=mode, **options))


def keys(page: SearchPage) -> list[str]:
    """Give the keys of hits in order."""
    return [hit.record.id for hit in page.hits]


def made(ledger: Ledger) -> None:
    """Wait until everything has its vectors."""
    assert ledger.store.wait_for_vectors(WAIT_SECONDS)


def stalled(ledger: Ledger) -> None:
    """Let no vectors be made from now on."""
    ledger.store.bare._vectors.close()  # type: ignore[attr-defined]
