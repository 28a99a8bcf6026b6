"""Sentence models from a folder, as they are published: of the BERT family, of model2vec, and in ONNX form.

A BERT model has ``config.json``, ``vocab.txt`` and ``model.safetensors``. One in ONNX form has ``model.onnx``, with its weights, and
``vocab.txt``; the package onnxruntime computes it (the extra ``headgate[onnx]``). One of model2vec has ``tokenizer.json`` and
``model.safetensors``; it is hundreds of times quicker than the others and less exact. All have the tokenizer of uncased BERT models.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.errors import ConfigInvalid
from headgate.store.format.vectors import Floats
from headgate.store.models.model import ModelIdentity

WEIGHTS, ONNX = "model.safetensors", "model.onnx"
BERT_FILES = ("config.json", "vocab.txt", WEIGHTS)
ONNX_FILES = (ONNX, "vocab.txt")
STATIC_FILES = ("tokenizer.json", WEIGHTS)
ONNX_PACKAGE = "onnxruntime"
#: A passage has fewer; what a longer text has beyond them is not read.
_TOKENS_MOST = 256
_STATIC_PIECES_MOST = 512
_ERRORS_ONLY = 3
_KINDS = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "I8": np.dtype("i1"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}


def _read_files(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    try:
        return {name: (folder / name).read_bytes() for name in names}
    except OSError as error:
        raise ConfigInvalid(
            f"{folder} has no {Path(error.filename or folder).name} that can be read.",
            hint=f"A folder with a model has {', '.join(names)}.",
            param="semantic_model",
        ) from error


def _digest_of_files(content: Mapping[str, bytes]) -> str:
    """Return the digest of the files that a model was read from, in their order."""
    digest = hashlib.sha256()
    for part in content.values():
        digest.update(part)
    return digest.hexdigest()


def _unreadable(folder: Path) -> ConfigInvalid:
    """Make the error for files that do not hold what they should."""
    return ConfigInvalid(f"The model in {folder} cannot be read.", param="semantic_model")


def _tensors(content: bytes) -> Iterator[tuple[str, Floats]]:
    """Read the arrays of a safetensors file: the length of its directory, the directory as JSON, and the values."""
    length = int.from_bytes(content[:8], "little")
    directory: dict[str, Any] = msgspec.json.decode(content[8 : 8 + length])
    for name, entry in directory.items():
        if name != "__metadata__" and entry["dtype"] in _KINDS:
            first, last = entry["data_offsets"]
            values = np.frombuffer(content[8 + length + first : 8 + length + last], _KINDS[entry["dtype"]])
            kind = np.int64 if entry["dtype"] in {"I32", "I64"} else np.float32
            yield name.removeprefix("bert."), values.reshape(entry["shape"]).astype(kind)


_WORD_CHARS_MOST = 100
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
_UNKNOWN = "[UNK]"


def _pieces(text: str, vocabulary: Mapping[str, int], most: int) -> list[int]:
    """Return the numbers of a text's pieces, so many at most."""
    numbers: list[int] = []
    for word in _words(text):
        numbers += _pieces_of(word, vocabulary)
        if len(numbers) >= most:
            break
    return numbers[:most]


def _pieces_of(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Cut a word into the longest beginnings that the vocabulary has; a word that has none is unknown."""
    numbers: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None or len(word) > _WORD_CHARS_MOST:
            return [vocabulary[_UNKNOWN]]
        numbers.append(vocabulary[prefix + word[start:end]])
        start = end
    return numbers


def _words(text: str) -> Iterator[str]:
    """Cut a text as the uncased models do: lower case, no accents, marks and Chinese characters by themselves."""
    folded = unicodedata.normalize("NFD", text.lower())
    plain = "".join(character for character in folded if unicodedata.category(character) != "Mn")
    for run in _CJK.sub(r" \1 ", plain).split():
        word = ""
        for character in run:
            if unicodedata.category(character)[0] in "PS":
                yield from (part for part in (word, character) if part)
                word = ""
            else:
                word += character
        if word:
            yield word


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
        content = _read_files(folder, BERT_FILES)
        try:
            self._config = msgspec.json.decode(content["config.json"], type=BertConfig)
            if self._config.model_type != "bert":
                raise ConfigInvalid(f"{folder} holds no model of the BERT family.", param="semantic_model")
            self._tensors = dict(_tensors(content[WEIGHTS]))
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise _unreadable(folder) from error
        self._tokens = {word: number for number, word in enumerate(content["vocab.txt"].decode().split("\n"))}
        self.identity = ModelIdentity(folder.name, _digest_of_files(content), self._config.hidden_size)

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text, in one thread: more take more processor time than they save."""
        with self._limit_threads(1, "blas"):
            return np.stack([self._vector(text) for text in texts])

    def tokens(self, text: str) -> list[int]:
        """Cut a text into the numbers of its tokens, with those for its beginning and end."""
        inside = _pieces(text, self._tokens, _TOKENS_MOST - 2)
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


class OnnxEmbedder:
    """A loaded model; if it gives a vector for each token, a text has their mean."""

    batch_size = 1
    least_similarity = 0.2
    weight = 1.0

    def __init__(self, folder: Path) -> None:
        content = _read_files(folder, ONNX_FILES)
        words = content["vocab.txt"].decode("utf-8", "replace").splitlines()
        self._tokens = {word: number for number, word in enumerate(words)}
        try:
            self._session: Any = _session(content[ONNX])
            self._inputs: list[str] = [declared.name for declared in self._session.get_inputs()]
            (probe,) = self.embed(["a"])
        # The errors of the package share nothing but this, and a word may be missing in the vocabulary.
        except Exception as error:
            raise _unreadable(folder) from error
        self.identity = ModelIdentity(folder.name, _digest_of_files(content), len(probe))

    def embed(self, texts: Sequence[str]) -> Floats:
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        inside = _pieces(text, self._tokens, _TOKENS_MOST - 2)
        ids = np.array([[self._tokens["[CLS]"], *inside, self._tokens["[SEP]"]]], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        (output,) = self._session.run(None, {name: inputs[name] for name in self._inputs})[0]
        return np.asarray(output, np.float32).reshape(-1, output.shape[-1]).mean(axis=0)


def _session(model: bytes) -> Any:
    # It has no types.
    package: Any = import_module(ONNX_PACKAGE)
    # On some systems it reports how it is used.
    package.disable_telemetry_events()
    options = package.SessionOptions()
    # More threads take more processor time for one passage than they save.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = _ERRORS_ONLY
    return package.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class TokenizerModel(msgspec.Struct):
    """How a tokenizer cuts words."""

    type: str
    #: A mapping from pieces to numbers; other kinds of tokenizers have a list.
    vocab: dict[str, int] | list[msgspec.Raw]


class Tokenizer(msgspec.Struct):
    """What is read of ``tokenizer.json``."""

    model: TokenizerModel


class StaticEmbedder:
    """A loaded model2vec model: each piece of a word has a fixed vector, and a text has their mean."""

    batch_size = 1
    least_similarity = 0.2
    weight = 0.5

    def __init__(self, folder: Path) -> None:
        content = _read_files(folder, STATIC_FILES)
        try:
            cutting = msgspec.json.decode(content["tokenizer.json"], type=Tokenizer).model
            arrays = dict(_tensors(content[WEIGHTS]))
            self._vectors: Floats = arrays["embeddings"]
        except (msgspec.MsgspecError, KeyError, ValueError) as error:
            raise _unreadable(folder) from error
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
            raise _unreadable(folder)
        self.identity = ModelIdentity(folder.name, _digest_of_files(content), self._vectors.shape[1])

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text; one without any known piece has no direction."""
        return np.stack([self._vector(text) for text in texts])

    def _vector(self, text: str) -> Floats:
        numbers = _pieces(text, self._vocabulary, _STATIC_PIECES_MOST)
        known = [number for number in numbers if number != self._vocabulary[_UNKNOWN]]
        if not known:
            return np.zeros(self.identity.dimensions, np.float32)
        return (self._vectors[self._rows[known]] * self._factors[known, None]).mean(axis=0)
