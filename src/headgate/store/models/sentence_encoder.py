"""The Universal Sentence Encoder for many texts at once: the weights of its package, computed in a third of the time.

What the package does for every token of a text is done here once for each different token of a batch, as far as that
does not depend on the tokens around it; and the rest, which adds up windows of two, three and five tokens in two layers, in
the few directions in which nearly all of it lies (``reduction.npz``, fitted by ``tools/fit_reduction.py``).
Matrices are multiplied in whole numbers, so that the bits of a vector depend on its own text alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from sentencepiece import SentencePieceProcessor

from headgate.store.format.vectors import Floats
from headgate.store.quick import MULTILINGUAL_PACKAGE

#: The windows: of how many tokens, and how many of these stand before the one that they are for.
WINDOWS = ((2, 0), (3, 1), (5, 2))
_WIDTH = 256
_EMBEDDED = 512
#: Whole numbers below this are exact as floats.
_WHOLE = (1 << 24) - 1
#: What a row of zeros is divided by.
_LEAST = np.float32(1e-30)
#: The matrices of the package that are used as they are.
_PRODUCTS = ("proj_W", "cnn_W", "d0", "d1", "d2", "d3", "p1", "p3")
#: Texts of so many tokens, as most questions are, are computed in all directions.
_SHORT = 24
#: The layers of so many tokens are computed at a time, or of one text: that fits in the processor's cache.
_TOKENS_AT_ONCE = 384


def resources() -> Path:
    """Return where the package has its weights, ``weights.npz``, and its tokens, ``sp.model``."""
    package: Any = import_module(MULTILINGUAL_PACKAGE)
    return Path(package.__file__).with_name("resources")


class SentenceEncoder:
    """The weights of the package's model, and the directions of its second layer."""

    def __init__(self, place: Path, reduction: Mapping[str, Floats]) -> None:
        # The package's tokenizer gives the same tokens, and takes ten times as long.
        self._tokenizer: Any = SentencePieceProcessor(model_file=str(place / "sp.model"))
        # It has no types.
        backends: Any = import_module(f"{MULTILINGUAL_PACKAGE}.backends")
        self._weights: Any = backends.NumpyBackend(str(place / "weights.npz"), None, threads=1)
        self._first = [Matrix(_side_by_side(weights)) for weights in self._weights.w1]
        self._rest = {name: Matrix(getattr(self._weights, name)) for name in _PRODUCTS}
        second = list(zip(self._weights.w2, self._weights.b2, strict=True))
        self._whole = [Layer(Matrix(_side_by_side(weights)), None, bias) for weights, bias in second]
        found = zip(second, reduction["second_mean"], reduction["second_directions"], strict=True)
        self._reduced = [Layer.of(layer, mean, directions) for layer, mean, directions in found]

    def encode(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text."""
        ids = self._tokenizer.encode(list(texts), add_bos=True, add_eos=True, num_threads=1)
        sizes = np.array([len(of_text) for of_text in ids])
        known, places = np.unique(np.fromiter(chain.from_iterable(ids), np.int64), return_inverse=True)
        tokens = self._tokens(known)
        sums = np.empty((len(texts), _EMBEDDED + len(WINDOWS) * _WIDTH), np.float32)
        is_short = sizes <= _SHORT
        for chosen, layers in ((is_short, self._whole), (~is_short, self._reduced)):
            of_chosen, chosen_sizes = places[np.repeat(chosen, sizes)], sizes[chosen]
            starts = np.cumsum(chosen_sizes) - chosen_sizes
            parts = [
                self._sums(tokens, of_chosen[starts[first] :], chosen_sizes[first:last], layers)
                for first, last in _groups(chosen_sizes.tolist())
            ]
            sums[chosen] = np.concatenate(parts) if parts else 0
        return self._vectors(sums, sizes)

    def _tokens(self, known: Any) -> _Tokens:
        """Compute what tokens give wherever they stand."""
        weights = self._weights
        chunk = known % len(weights.scale)
        embedded = weights.table[known].astype(np.float32)
        embedded = embedded * weights.scale[chunk, None] + weights.lo[chunk, None]
        projected = _normed(
            self._rest["proj_W"].times(embedded) + weights.proj_b,
            weights.ln_g_all,
            weights.ln_b_all,
            weights.eps,
        )
        parts = [
            np.ascontiguousarray(projected[:, number * _WIDTH : (number + 1) * _WIDTH])
            for number in range(len(WINDOWS))
        ]
        given = [into.times(part) for part, into in zip(parts, self._first, strict=True)]
        return _Tokens(embedded, parts, given)

    def _sums(self, tokens: _Tokens, places: Any, sizes: Any, layers: Sequence[Layer]) -> Floats:
        """Add up, for each text, what its tokens come to among their neighbours."""
        weights = self._weights
        starts = np.cumsum(sizes) - sizes
        places = places[: int(sizes.sum())]
        inside = Neighbours.of(starts, sizes)
        features = np.empty((len(places), _EMBEDDED + len(WINDOWS) * _WIDTH), np.float32)
        features[:, :_EMBEDDED] = tokens.embedded[places]
        for number, window in enumerate(WINDOWS):
            values = tokens.parts[number][places]
            added = inside.added(tokens.given[number][places], *window) + weights.b1[number]
            values += np.maximum(added, 0, out=added)
            values += np.maximum(self.second_layer(layers[number], values, inside, window), 0)
            features[:, _EMBEDDED + number * _WIDTH : _EMBEDDED + (number + 1) * _WIDTH] = values
        features = _normed(features, weights.ln_g, weights.ln_b, weights.eps)
        return np.add.reduceat(features, starts, axis=0)

    def second_layer(
        self, layer: Layer, values: Floats, inside: Neighbours, window: tuple[int, int]
    ) -> Floats:
        """Return what the second layer of a window gives to each token."""
        added = inside.added(layer.into.times(values), *window)
        return (added if layer.back is None else layer.back.times(added)) + layer.bias

    def _vectors(self, sums: Floats, sizes: Any) -> Floats:
        """Compute the rest, which is of each text as a whole."""
        weights, times = self._weights, self._rest
        lengths = sizes.astype(np.float32)[:, None]
        mean = (times["cnn_W"].times(sums) + lengths * weights.cnn_b) / np.sqrt(lengths)
        wide = np.maximum(times["d0"].times(mean), 0)
        inner = np.maximum(times["p1"].times(mean) + times["d1"].times(wide), 0)
        wide = np.maximum(times["d2"].times(inner), 0)
        vectors = np.tanh(times["p3"].times(inner) + times["d3"].times(wide))
        return vectors / np.sqrt(np.maximum(np.square(vectors).sum(axis=1, keepdims=True), weights.eps))


@dataclass(frozen=True, slots=True)
class _Tokens:
    """What tokens give wherever they stand: their vectors, and for each window its part and its first layer."""

    embedded: Floats
    parts: Sequence[Floats]
    given: Sequence[Floats]


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Where the texts of some tokens in a row begin and end."""

    #: How many tokens of its text stand before and after each.
    before: Any
    after: Any

    @classmethod
    def of(cls, starts: Any, sizes: Any) -> Neighbours:
        before = np.arange(int(sizes.sum())) - np.repeat(starts, sizes)
        return cls(before, np.repeat(sizes, sizes) - 1 - before)

    def added(self, given: Floats, count: int, left: int) -> Floats:
        """Add up what the tokens of a window give to the one that it is for: each gives a part for every place."""
        width = given.shape[1] // count
        sums = given[:, left * width : (left + 1) * width].copy()
        for place in range(count):
            gap = place - left
            part = given[:, place * width : (place + 1) * width]
            if gap < 0:
                sums[-gap:] += part[:gap] * (self.before[-gap:] >= -gap)[:, None]
            elif gap > 0:
                sums[:-gap] += part[gap:] * (self.after[:-gap] >= gap)[:, None]
        return sums


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer of one window: what each token gives, and if that is in few directions, the way back from these."""

    into: Matrix
    back: Matrix | None
    bias: Floats

    @classmethod
    def of(cls, layer: tuple[Floats, Floats], mean: Floats, directions: Floats) -> Layer:
        """Add what the mean of the output has in no direction to the bias."""
        weights, bias = layer
        rest = mean - mean @ directions @ directions.T
        reduced = (weights.reshape(-1, _WIDTH, _WIDTH) @ directions).reshape(-1, directions.shape[1])
        return cls(Matrix(_side_by_side(reduced)), Matrix(directions.T), bias + rest)


def _side_by_side(weights: Floats) -> Floats:
    """Put the matrices of the places of a window beside each other, which are below each other."""
    places = weights.reshape(-1, _WIDTH, weights.shape[1])
    return np.ascontiguousarray(places.transpose(1, 0, 2).reshape(_WIDTH, -1))


def _groups(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Cut texts into groups by their numbers of tokens; returns the first of each, and the first of the next."""
    groups: list[tuple[int, int]] = []
    first = count = 0
    for number, size in enumerate(sizes):
        if number > first and count + size > _TOKENS_AT_ONCE:
            groups.append((first, number))
            first, count = number, 0
        count += size
    return [*groups, (first, len(sizes))] if sizes else []


class Matrix:
    """A matrix that rows are multiplied with, in whole numbers of which every sum fits in a float.

    So the product of a row is the same bits whatever else is in the batch, on every machine and in any order.
    """

    def __init__(self, weights: Floats) -> None:
        self._most: float = math.isqrt(_WHOLE // weights.shape[0])
        self._steps: Floats = np.abs(weights).max(axis=0) / self._most
        self._whole: Floats = np.rint(weights / self._steps)

    def times(self, rows: Floats) -> Floats:
        """Multiply rows, each in separate steps."""
        steps = np.maximum(np.abs(rows).max(axis=1, keepdims=True), _LEAST) / self._most
        product = np.rint(rows / steps) @ self._whole
        product *= steps
        product *= self._steps
        return product


def _normed(rows: Floats, factors: Floats, offset: Floats, least: float) -> Floats:
    """Give every row the mean 0 and the spread 1, then the factors of the model; changes the rows."""
    rows -= rows.mean(axis=1, keepdims=True)
    rows *= (1 / np.sqrt(np.einsum("ij,ij->i", rows, rows) / rows.shape[1] + least))[:, None]
    rows *= factors
    rows += offset
    return rows
