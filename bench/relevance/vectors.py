"""Models whose vectors are stored in the bench's cache: to make them all takes minutes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import apsw
import numpy as np

from headgate.store.format.vectors import Floats
from headgate.store.models.choice import chosen_model
from headgate.store.models.model import Embedder, MeaningModel


class CachedEmbedder:
    """A model that computes the vector of a text once."""

    def __init__(self, model: Embedder, file: Path) -> None:
        self._model = model
        self._stored = apsw.Connection(str(file))
        # Two runs may share the cache, and what a crash takes of it is computed again.
        self._stored.set_busy_timeout(60_000)
        self._stored.execute("PRAGMA synchronous=OFF")
        self._stored.execute("CREATE TABLE IF NOT EXISTS v(key BLOB PRIMARY KEY, vector BLOB)")
        self.identity = model.identity
        self.batch_size = model.batch_size
        self.least_similarity = model.least_similarity
        self.weight = model.weight

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        key = hashlib.sha256(f"{self.identity.digest} {text}".encode()).digest()
        known = self._stored.execute("SELECT vector FROM v WHERE key=?", (key,)).fetchone()
        if known is not None:
            return np.frombuffer(known[0], np.float32)
        (made,) = self._model.embed([text])
        self._stored.execute("INSERT INTO v VALUES(?, ?)", (key, made.astype(np.float32).tobytes()))
        return made


def cached_model(choice: str, directory: Path) -> MeaningModel:
    """Give the model that a setting names."""
    model = chosen_model(choice)
    assert model is not None
    directory.mkdir(parents=True, exist_ok=True)
    return MeaningModel(lambda: CachedEmbedder(model.embedder, directory / f"{choice}.db"))
