"""Sentence models in ONNX form from a folder, computed by the package onnxruntime (the extra ``headgate[onnx]``).

The folder has ``model.onnx`` and ``vocab.txt``. Read are models whose tokenizer is that of uncased BERT models, with
their weights in the one file.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity
from headgate.store.models.model_files import digest_of_files, pieces, read_files, unreadable

PACKAGE = "onnxruntime"
MODEL = "model.onnx"
FILES = (MODEL, "vocab.txt")
_BEGINNING, _END = "[CLS]", "[SEP]"
#: A passage has fewer; what a longer text has beyond them is not read.
_TOKENS_MOST = 256
_ERRORS_ONLY = 3


class OnnxEmbedder:
    """A loaded model; if it gives a vector for each token, a text has their mean."""

    batch_size = 1
    least_similarity = 0.2
    weight = 1.0

    def __init__(self, folder: Path) -> None:
        content = read_files(folder, FILES)
        words = content["vocab.txt"].decode("utf-8", "replace").splitlines()
        self._tokens = {word: number for number, word in enumerate(words)}
        try:
            self._session: Any = _session(content[MODEL])
            self._inputs: list[str] = [one.name for one in self._session.get_inputs()]
            (probe,) = self.embed(["a"])
        # The errors of the package share nothing but this, and a word may be missing in the vocabulary.
        except Exception as error:
            raise unreadable(folder) from error
        self.identity = ModelIdentity(folder.name, digest_of_files(content), len(probe))

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        inside = pieces(text, self._tokens, _TOKENS_MOST - 2)
        ids = np.array([[self._tokens[_BEGINNING], *inside, self._tokens[_END]]], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (found,) = self._session.run(None, {name: given[name] for name in self._inputs})[0]
        return np.asarray(found, np.float32).reshape(-1, found.shape[-1]).mean(axis=0)


def _session(model: bytes) -> Any:
    # It has no types.
    package: Any = import_module(PACKAGE)
    # On some systems it reports how it is used.
    package.disable_telemetry_events()
    options = package.SessionOptions()
    # More threads take more processor time for one passage than they save.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return package.InferenceSession(model, options, providers=["CPUExecutionProvider"])
