"""Which model makes vectors: chosen by a setting, loaded when it is first needed, once in a process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headgate.store.format.arrays import np
from headgate.store.format.vectors import Bytes, Floats, quantised


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What vectors are stored under: those of another model are not compared with them, but made anew."""

    name: str
    #: Of the weights, and of all else that the vectors depend on.
    digest: str
    dimensions: int


class Embedder(Protocol):
    """A loaded model."""

    @property
    def identity(self) -> ModelIdentity:
        """What its vectors are stored under."""
        ...

    @property
    def batch_size(self) -> int:
        """How many texts it is given at once.

        A model on this machine is given one: in a batch the last bits of a vector depend on the other texts, and
        those may be hidden from the reader of this one.
        """
        ...

    @property
    def least_similarity(self) -> float:
        """Texts that are less similar have nothing to do with each other."""
        ...

    @property
    def weight(self) -> float:
        """How much similarity counts beside a match by words, where both are searched."""
        ...

    def embed(self, texts: Sequence[str]) -> Floats:
        """Make a vector of each text."""
        ...


class MeaningModel:
    """A model that is loaded when it is first used; safe to use from several threads."""

    def __init__(self, load: Callable[[], Embedder]) -> None:
        self._load = load
        self._loading = threading.Lock()
        self._working = threading.Lock()
        self._embedder: Embedder | None = None

    @property
    def embedder(self) -> Embedder:
        """The loaded model."""
        if self._embedder is None:
            with self._loading:
                if self._embedder is None:
                    self._embedder = self._load()
        return self._embedder

    def vectors(self, texts: Sequence[str]) -> Bytes:
        """Make a vector of each text, in batches, so that another thread has its turn between two of them."""
        embedder = self.embedder
        batches: list[Bytes] = [np.empty((0, embedder.identity.dimensions), np.int8)]
        for start in range(0, len(texts), embedder.batch_size):
            with self._working:
                batches.append(quantised(embedder.embed(texts[start : start + embedder.batch_size])))
        return np.concatenate(batches)


PASSAGE_CHARS = 600
OVERLAP_CHARS = 120
#: Of a text that is longer than this many passages, the rest is found by words only.
PASSAGES_MOST = 200
#: A passage ends at white space if there is any within so many characters before its end.
_LOOK_BACK_CHARS = 80


class Passage(NamedTuple):
    """A part of a text, by its characters: from the first up to the end, which is left out."""

    start: int
    end: int


def passages(text: str) -> list[Passage]:
    """Cut a text; a blank one has no passages."""
    cut: list[Passage] = []
    start = 0
    while start < len(text) and len(cut) < PASSAGES_MOST:
        end = _end(text, start)
        if text[start:end].strip():
            cut.append(Passage(start, end))
        if end == len(text):
            break
        start = _word_start(text, end - OVERLAP_CHARS)
    return cut


def _end(text: str, start: int) -> int:
    end = start + PASSAGE_CHARS
    if end >= len(text):
        return len(text)
    for place in range(end, end - _LOOK_BACK_CHARS, -1):
        if text[place].isspace():
            return place
    return end


def _word_start(text: str, near: int) -> int:
    for place in range(near, near - _LOOK_BACK_CHARS, -1):
        if text[place - 1].isspace():
            return place
    return near
