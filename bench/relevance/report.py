"""What a run prints: the means of each searcher, and how search by words compares with the other engines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.relevance.scoring import RIGHT, Question, Scores, difference, mean

OWN = "Headgate"


@dataclass(frozen=True, slots=True)
class Measured:
    """The questions of a set, and what each searcher scored in each of them; None: it was not asked."""

    questions: Sequence[Question]
    scores: Mapping[str, Sequence[Scores] | None]

    def best(self, peers: Sequence[str]) -> str:
        """Name the one of the other engines with the best mean."""
        means = {name: mean(found).ndcg_10 for name in peers if (found := self.scores[name])}
        return max(means, key=means.__getitem__)


def print_means(measured: Mapping[str, Measured], *, each: bool) -> None:
    """Print the mean of all sets, and with ``each`` those of every set."""
    names = list(next(iter(measured.values())).scores)
    print(f"\n{'nDCG@10 / recall@25 / in the first three':28} " + " ".join(f"{name:>22}" for name in names))
    means = {
        set_name: {name: None if found is None else mean(found) for name, found in one.scores.items()}
        for set_name, one in measured.items()
    }
    for set_name, scores in means.items() if each else ():
        count = len(measured[set_name].questions)
        print(f"{set_name:24} {count:3} " + " ".join(f"{_text(scores[name]):>22}" for name in names))
    total = {name: [found for one in means.values() if (found := one[name])] for name in names}
    count = sum(len(one.questions) for one in measured.values())
    print(
        f"{'all sets':24} {count:3} "
        + " ".join(f"{_text(mean(total[name]) if total[name] else None):>22}" for name in names)
    )


def print_differences(measured: Mapping[str, Measured], peers: Sequence[str], own: str = OWN) -> None:
    """Print how far a search is from the best of the other engines, over the questions drawn again."""
    print(f"\nnDCG@10 of {own} less that of the best other engine (paired bootstrap, 95 %)")
    ours: list[float] = []
    theirs: list[float] = []
    for set_name, one in measured.items():
        peer = one.best(peers)
        own_scores = [scores.ndcg_10 for scores in one.scores[own] or ()]
        peer_scores = [scores.ndcg_10 for scores in one.scores[peer] or ()]
        ours += own_scores
        theirs += peer_scores
        print(f"{set_name:24} {_apart(own_scores, peer_scores)} {peer}")
    print(f"{'all questions':24} {_apart(ours, theirs)} the best of each set")


def _apart(ours: Sequence[float], theirs: Sequence[float]) -> str:
    apart, least, most = difference(ours, theirs)
    return f"{apart:+.3f} ({least:+.3f} to {most:+.3f})"


def print_misses(measured: Mapping[str, Measured], peers: Sequence[str], most: int) -> None:
    """Print what search by words has not in its first three and another engine has, the widest apart first."""
    missed: list[tuple[float, str]] = []
    for set_name, one in measured.items():
        for at, question in enumerate(one.questions):
            own = (one.scores[OWN] or ())[at]
            better = {
                name: found[at].ndcg_10 - own.ndcg_10
                for name in peers
                if (found := one.scores[name]) and found[at].first_three > own.first_three
            }
            if better:
                right = next(name for name, grade in question.grades.items() if grade == RIGHT)
                line = f"{set_name}: {question.text} [{right}] {', '.join(better)}"
                missed.append((max(better.values()), line))
    for apart, line in sorted(missed, reverse=True)[:most]:
        print(f"{apart:.3f} {line}")


def _text(scores: Scores | None) -> str:
    return "-" if scores is None else f"{scores.ndcg_10:.3f} {scores.recall_25:.3f} {scores.first_three:.3f}"
