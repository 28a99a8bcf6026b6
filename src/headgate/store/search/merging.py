"""Put the matches by words and by meaning in one order. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set as AbstractSet
from itertools import takewhile
from typing import TypeVar

#: So many of the best of either list are among so many of the merged ones, whatever their scores.
BEST, FIRST = 3, 10
#: How much more meaning counts where no record holds a word of the query, and how soon that ends.
_WITHOUT_WORDS, _ENDS = 8.0, 6
_Thing = TypeVar("_Thing", bound=Hashable)


def merged(
    by_words: Mapping[_Thing, float], by_meaning: Mapping[_Thing, float], weight: float
) -> list[_Thing]:
    """Put what either search found in one order, the best first; of equal ones, the first by words.

    A score counts as its part of the best score of the same search, and one by meaning ``weight`` times that. Ranks
    alone would make a far better match by words count hardly more than the next.
    """
    scores: defaultdict[_Thing, float] = defaultdict(float)
    for ranked, factor in ((by_words, 1.0), (by_meaning, weight)):
        best = max(ranked.values(), default=0)
        for thing, score in ranked.items():
            scores[thing] += factor * score / best if best > 0 else 0
    order = sorted(scores, key=lambda thing: -scores[thing])
    first = {*order[:FIRST]}
    return _with_best(order, {*_best(by_words, first), *_best(by_meaning, first)})


def by_coverage(coverage: float) -> float:
    """Return how much more meaning counts where the best matches hold only a part of the query."""
    return 1 + _WITHOUT_WORDS * (1 - coverage) ** _ENDS


def _best(ranked: Mapping[_Thing, float], first: AbstractSet[_Thing]) -> list[_Thing]:
    """Return the best of a list; of those that are as good as the last of them, those that are among the first anyway."""
    things = list(ranked)
    least = min(BEST, len(things)) - 1
    as_good = takewhile(lambda thing: ranked[thing] == ranked[things[least]], things[BEST:])
    best = [*things[:BEST], *as_good]
    better = [thing for thing in best if ranked[thing] != ranked[things[least]]]
    equal = sorted((thing for thing in best if thing not in better), key=lambda thing: thing not in first)
    return [*better, *equal][:BEST]


def _with_best(order: Sequence[_Thing], best: set[_Thing]) -> list[_Thing]:
    """Let the best of either list take the last of the first places, in place of those that are the best of none."""
    late = [thing for thing in order[FIRST:] if thing in best]
    others = [thing for thing in order[:FIRST] if thing not in best]
    moved = set(others[len(others) - len(late) :])
    head = [thing for thing in order[:FIRST] if thing not in moved] + late
    return head + [thing for thing in order if thing not in {*head}]
