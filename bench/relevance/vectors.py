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
        keys = [hashlib.sha256(f"{self.identity.digest} {text}".encode()).digest() for text in texts]
        vectors = {key: self._known(key) for key in keys}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if vectors[key] is None}
        if missing:
            made = self._model.embed(list(missing.values())).astype(np.float32)
            vectors |= dict(zip(missing, made, strict=True))
            rows = [(key, vector.tobytes()) for key, vector in zip(missing, made, strict=True)]
            self._stored.executemany("INSERT OR IGNORE INTO v VALUES(?, ?)", rows)
        return np.stack([vectors[key] for key in keys])  # pyright: ignore[reportArgumentType] - none is missing

    def _known(self, key: bytes) -> Floats | None:
        row = self._stored.execute("SELECT vector FROM v WHERE key=?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)


def cached_model(choice: str, directory: Path) -> MeaningModel:
    """Give the model that a setting names."""
    model = chosen_model(choice)
    assert model is not None
    directory.mkdir(parents=True, exist_ok=True)
    return MeaningModel(lambda: CachedEmbedder(model.embedder, directory / f"{choice}.db"))
