"""Sentence models of the BERT family, such as all-MiniLM-L6-v2, from a folder, computed with numpy alone.

The folder has ``config.json``, ``vocab.txt`` and ``model.safetensors``, as such models are published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid
from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity
from headgate.store.models.model_files import (
    WEIGHTS,
    digest_of_files,
    pieces,
    read_files,
    tensors,
    unreadable,
)

FILES = ("config.json", "vocab.txt", WEIGHTS)
#: A passage has fewer; what a longer text has beyond them is not read.
_TOKENS_MOST = 256


class BertConfig(msgspec.Struct):
    """The numbers of ``config.json`` that the computation depends on."""

    num_hidden_layers: int
    num_attention_heads: int
    hidden_size: int
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"
    model_type: str = "bert"


class BertEmbedder:
    """A loaded model; a text's vector is the mean of those of its tokens."""

    batch_size = 1
    least_similarity = 0.2
    weight = 1.0

    def __init__(self, folder: Path) -> None:
        # It has no types.
        self._limit_threads: Any = import_module("threadpoolctl").threadpool_limits
        content = read_files(folder, FILES)
        try:
            self._config = msgspec.json.decode(content["config.json"], type=BertConfig)
            if self._config.model_type != "bert":
                raise ConfigInvalid(f"{folder} holds no model of the BERT family.", param="semantic_model")
            self._tensors = dict(tensors(content[WEIGHTS]))
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise unreadable(folder) from error
        self._tokens = {word: number for number, word in enumerate(content["vocab.txt"].decode().split("\n"))}
        self.identity = ModelIdentity(folder.name, digest_of_files(content), self._config.hidden_size)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text, in one thread: more take more processor time than they save."""
        with self._limit_threads(1, "blas"):
            return np.stack([self._vector(text) for text in texts])

    def tokens(self, text: str) -> list[int]:
        """Cut a text into the numbers of its tokens, with those for its beginning and end."""
        inside = pieces(text, self._tokens, _TOKENS_MOST - 2)
        return [self._tokens["[CLS]"], *inside, self._tokens["[SEP]"]]

    def _vector(self, text: str) -> Floats:
        ids = np.array(self.tokens(text))
        arrays = self._tensors
        values = arrays["embeddings.word_embeddings.weight"][ids]
        values = values + arrays["embeddings.position_embeddings.weight"][: len(ids)]
        values = self._normed(values + arrays["embeddings.token_type_embeddings.weight"][0], "embeddings")
        for number in range(self._config.num_hidden_layers):
            values = self._layer(values, f"encoder.layer.{number}")
        return values.mean(axis=0)

    def _layer(self, values: Floats, name: str) -> Floats:
        attended = self._dense(
            self._attention(values, f"{name}.attention.self"), f"{name}.attention.output.dense"
        )
        values = self._normed(values + attended, f"{name}.attention.output")
        wide = _gelu(self._dense(values, f"{name}.intermediate.dense"))
        return self._normed(values + self._dense(wide, f"{name}.output.dense"), f"{name}.output")

    def _attention(self, values: Floats, name: str) -> Floats:
        heads, count = self._config.num_attention_heads, len(values)
        query, key, value = (
            self._dense(values, f"{name}.{part}").reshape(count, heads, -1).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        return (scores @ value).transpose(1, 0, 2).reshape(count, -1)

    def _dense(self, values: Floats, name: str) -> Floats:
        return values @ self._tensors[f"{name}.weight"].T + self._tensors[f"{name}.bias"]

    def _normed(self, values: Floats, name: str) -> Floats:
        centred = values - values.mean(axis=-1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + self._config.layer_norm_eps)
        return (
            centred / spread * self._tensors[f"{name}.LayerNorm.weight"]
            + self._tensors[f"{name}.LayerNorm.bias"]
        )


def _gelu(values: Floats) -> Floats:
    """Compute the error-function form through its close approximation by tanh, which numpy has."""
    return 0.5 * values * (1 + np.tanh(math.sqrt(2 / math.pi) * (values + 0.044715 * values**3)))
