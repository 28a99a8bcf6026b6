"""One order out of two: by how well things match by words, and by how similar they are in meaning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping
from typing import TypeVar

_Thing = TypeVar("_Thing", bound=Hashable)


def fuse(by_words: Mapping[_Thing, float], by_meaning: Mapping[_Thing, float], weight: float) -> list[_Thing]:
    """Put what either search found in one order, the best first; of equal ones, the first by words.

    A score counts as its part of the best score of the same search, and one by meaning ``weight`` times that. Ranks
    alone would make a far better match by words count hardly more than the next.
    """
    scores: defaultdict[_Thing, float] = defaultdict(float)
    for found, factor in ((by_words, 1.0), (by_meaning, weight)):
        best = max(found.values(), default=0)
        for thing, score in found.items():
            scores[thing] += factor * score / best if best > 0 else 0
    return sorted(scores, key=lambda thing: -scores[thing])
