"""The default model: the multilingual Universal Sentence Encoder, from a package that brings its weights along.

Its vectors have a common part, which says nothing, and more components than they need: they are centred and reduced
by a matrix that was fitted to sentences in its languages (principal components; `tools/fit_reduction.py`), and then turned
so that questions come nearer to the texts that answer them (`tools/fit_turn.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from importlib.resources import files
from typing import Any

import numpy as np

from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity
from headgate.store.models.sentence_encoder import Matrix, SentenceEncoder, resources

_REDUCTION = "reduction.npz"


class MultilingualEmbedder:
    """The Universal Sentence Encoder, reduced to 256 components."""

    batch_size = 16
    least_similarity = 0.15
    weight = 0.6

    def __init__(self) -> None:
        reduction = files("headgate.store.models").joinpath(_REDUCTION)
        with reduction.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            reduced = {name: np.asarray(arrays[name], np.float32) for name in arrays.files}
        self._mean: Floats = reduced["mean"]
        self._reduction = Matrix(reduced["components"])
        weights = resources()
        self._reduced, self._weights = reduced, weights
        # It has no types.
        self._limit_threads: Any = import_module("threadpoolctl").ThreadpoolController().limit
        digest = hashlib.sha256(reduction.read_bytes())
        for name in ("weights.npz", "sp.model"):
            digest.update((weights / name).read_bytes())
        self.identity = ModelIdentity(
            "universal-sentence-encoder-multilingual-3", digest.hexdigest(), reduced["components"].shape[1]
        )

    @cached_property
    def _encoder(self) -> SentenceEncoder:
        """The weights, read when the first text comes: most processes of a home embed none."""
        return SentenceEncoder(self._weights, self._reduced)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text, in one thread: more take more processor time than they save."""
        with self._limit_threads(limits=1, user_api="blas"):
            return self._reduction.times(self._encoder.encode(texts) - self._mean)
