"""Grades and measures of ranked answers."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

NEAR, RIGHT = 1, 2
_FIRST, _DEEP, _WIDE = 3, 10, 25
_DRAWS = 4_000


@dataclass(frozen=True, slots=True)
class Scores:
    """The measures of one searcher over many questions, each between 0 and 1."""

    ndcg_10: float
    recall_25: float
    first_three: float


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how good each section is as an answer; a section that is not named is none."""

    text: str
    grades: Mapping[str, int]


def grades_of(right: Iterable[str], near: Iterable[str]) -> dict[str, int]:
    """Grade the section whose title is asked, others that say the same, and those right around it."""
    return {**dict.fromkeys(near, NEAR), **dict.fromkeys(right, RIGHT)}


def score(question: Question, answer: Sequence[str]) -> Scores:
    """Measure one answer."""
    right = {name for name, grade in question.grades.items() if grade == RIGHT}
    return Scores(
        _gain(question.grades.get(name, 0) for name in answer[:_DEEP])
        / _gain(sorted(question.grades.values(), reverse=True)[:_DEEP]),
        len(right.intersection(answer[:_WIDE])) / min(len(right), _WIDE),
        float(not right.isdisjoint(answer[:_FIRST])),
    )


def mean(scores: Sequence[Scores]) -> Scores:
    """Average the measures of many answers."""
    count = len(scores)
    return Scores(
        sum(one.ndcg_10 for one in scores) / count,
        sum(one.recall_25 for one in scores) / count,
        sum(one.first_three for one in scores) / count,
    )


def difference(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float, float]:
    """Return the mean difference over the same questions, and between what it lies (95 %) if they are drawn again."""
    apart = [our - their for our, their in zip(ours, theirs, strict=True)]
    chance, count = random.Random(7), len(apart)
    drawn = sorted(sum(chance.choices(apart, k=count)) / count for _ in range(_DRAWS))
    return sum(apart) / count, drawn[_DRAWS * 25 // 1000], drawn[_DRAWS * 975 // 1000 - 1]


def _gain(grades: Iterable[int]) -> float:
    return sum((2**grade - 1) / math.log2(place + 2) for place, grade in enumerate(grades))
