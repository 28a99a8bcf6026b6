"""Models of model2vec from a folder: each piece of a word has a fixed vector, and a text has their mean.

The folder has ``tokenizer.json`` and ``model.safetensors``, as such models are published. They are hundreds of times
quicker than the others and less exact. Read are those whose tokenizer is that of BERT, which the English ones have.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid
from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity
from headgate.store.models.model_files import (
    UNKNOWN,
    WEIGHTS,
    digest_of_files,
    pieces,
    read_files,
    tensors,
    unreadable,
)

FILES = ("tokenizer.json", WEIGHTS)
_PIECES_MOST = 512


class TokenizerModel(msgspec.Struct):
    """How a tokenizer cuts words."""

    type: str
    #: A mapping from pieces to numbers; other kinds of tokenizers have a list.
    vocab: dict[str, int] | list[msgspec.Raw]


class Tokenizer(msgspec.Struct):
    """What is read of ``tokenizer.json``."""

    model: TokenizerModel


class StaticEmbedder:
    """A loaded model."""

    batch_size = 1
    least_similarity = 0.2
    weight = 0.5

    def __init__(self, folder: Path) -> None:
        content = read_files(folder, FILES)
        try:
            cutting = msgspec.json.decode(content["tokenizer.json"], type=Tokenizer).model
            arrays = dict(tensors(content[WEIGHTS]))
            self._vectors: Floats = arrays["embeddings"]
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise unreadable(folder) from error
        if cutting.type != "WordPiece" or not isinstance(cutting.vocab, dict):
            raise ConfigInvalid(
                f"The tokenizer in {folder} is of the kind {cutting.type}, which is not read.",
                hint="Choose a model with a WordPiece tokenizer, as potion-base-8M has.",
                param="semantic_model",
            )
        self._vocabulary = cutting.vocab
        # Some models have fewer vectors than pieces, and a factor for each piece.
        self._rows: Floats = arrays.get("mapping", np.arange(len(self._vectors)))
        self._factors: Floats = arrays.get("weights", np.ones(len(self._rows), np.float32))
        if max(self._vocabulary.values(), default=0) >= min(len(self._rows), len(self._factors)):
            raise unreadable(folder)
        self.identity = ModelIdentity(folder.name, digest_of_files(content), self._vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text; one without any known piece has no direction."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        found = pieces(text, self._vocabulary, _PIECES_MOST)
        known = [number for number in found if number != self._vocabulary[UNKNOWN]]
        if not known:
            return np.zeros(self.identity.dimensions, np.float32)
        return (self._vectors[self._rows[known]] * self._factors[known, None]).mean(axis=0)
