"""Turn the vectors of the default model, so that questions come nearer to the texts that answer them.

Usage: python -m bench.relevance.pairs PAIRS.jsonl && python tools/fit_turn.py PAIRS.jsonl src/headgate/store/models/reduction.npz

It begins with the components that `tools/fit_reduction.py vectors` has left, so that is run before it. One matrix is
fitted, for questions and texts alike: a text should be nearer to its own question than to those of the other texts of a
batch, and a question to its text (a contrastive loss; Adam; four rounds, after which it learns the pairs by heart).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from headgate.store.models.model import passages
from headgate.store.models.multilingual import MultilingualEmbedder
from headgate.store.models.sentence_encoder import SentenceEncoder, resources

ROUNDS, BATCH, FEWEST = 4, 256, 32
RATE, WARM_UP, TEMPERATURE = 2e-4, 50, 0.05
#: Of a text the first passages take turns.
PASSAGES = 2


def main(pairs_file: str, target: str) -> None:
    """Fit the matrix, and write it in the place of the components."""
    lines = Path(pairs_file).read_bytes().splitlines()
    pairs = msgspec.json.decode(b"[" + b",".join(lines) + b"]", type=list[tuple[str, str, str]])
    with np.load(target, allow_pickle=False) as file:
        before = {name: file[name] for name in file.files}
    reduction = {name: array.astype(np.float32) for name, array in before.items()}
    turned = fitted(pairs, reduction)
    np.savez_compressed(target, **before | {"components": turned.astype(np.float16)})


def fitted(pairs: Sequence[tuple[str, str, str]], reduction: Mapping[str, Any]) -> Any:
    """Return the components after some rounds over all pairs."""
    cut = [
        (number, text[start:end])
        for number, (_, _, text) in enumerate(pairs)
        for start, end in passages(text)[:PASSAGES]
    ]
    questions = _vectors([question for _, question, _ in pairs], reduction)
    texts = _vectors([text for _, text in cut], reduction)
    components = reduction["components"]
    firsts = np.searchsorted([number for number, _ in cut], np.arange(len(pairs) + 1))
    groups: dict[str, list[int]] = {}
    for number, (group, _, _) in enumerate(pairs):
        groups.setdefault(group, []).append(number)
    chance = np.random.default_rng(1)
    rounds = [_batches(groups, chance) for _ in range(ROUNDS)]
    steps = [batch for batches in rounds for batch in batches]
    moments = np.zeros((2, *components.shape), np.float32)
    for step, batch in enumerate(steps, 1):
        places = chance.integers(firsts[batch], firsts[batch + 1])
        gradient, loss = _gradient(questions[batch], texts[places], components)
        moments[0] += 0.1 * (gradient - moments[0])
        moments[1] += 0.001 * (gradient**2 - moments[1])
        rate = RATE * min(1, step / WARM_UP) * (1 - step / (len(steps) + 1))
        spread = np.sqrt(moments[1] / (1 - 0.999**step)) + 1e-8
        components = components - rate * moments[0] / (1 - 0.9**step) / spread
        if not step % 50:
            print(f"{step} of {len(steps)}: {loss:.3f}")
    return components


def _vectors(texts: Sequence[str], reduction: Mapping[str, Any]) -> Any:
    """Return what the model gives before it is reduced; texts of one length are computed together."""
    model = SentenceEncoder(resources(), reduction)
    order = sorted(range(len(texts)), key=lambda number: len(texts[number]))
    made = [
        model.encode([texts[number] for number in order[at : at + MultilingualEmbedder.batch_size]])
        for at in range(0, len(texts), MultilingualEmbedder.batch_size)
    ]
    return np.concatenate(made)[np.argsort(order)] - reduction["mean"]


def _batches(groups: Mapping[str, Sequence[int]], chance: Any) -> Sequence[Any]:
    """Cut the pairs of each group into batches, and mix these."""

    def cut() -> Iterator[Any]:
        for numbers in groups.values():
            mixed = chance.permutation(numbers)
            yield from (mixed[at : at + BATCH] for at in range(0, len(mixed), BATCH))

    batches = [batch for batch in cut() if len(batch) > FEWEST]
    chance.shuffle(batches)
    return batches


def _gradient(questions: Any, texts: Any, components: Any) -> tuple[Any, float]:
    """Return which way the loss of a batch grows, and the loss."""
    asked, asked_lengths = _normed(questions @ components)
    answers, answer_lengths = _normed(texts @ components)
    alike = asked @ answers.T / TEMPERATURE
    parts = [np.exp(alike - alike.max(axis=axis, keepdims=True)) for axis in (0, 1)]
    parts = [part / part.sum(axis=axis, keepdims=True) for axis, part in enumerate(parts)]
    count = len(asked)
    slope = (sum(parts) / 2 - np.eye(count, dtype=np.float32)) / count / TEMPERATURE
    to_asked = _before_norm(slope @ answers, asked, asked_lengths)
    to_answers = _before_norm(slope.T @ asked, answers, answer_lengths)
    return questions.T @ to_asked + texts.T @ to_answers, float(-np.log(np.diag(parts[1]) + 1e-9).mean())


def _normed(rows: Any) -> tuple[Any, Any]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True) + 1e-9
    return rows / lengths, lengths


def _before_norm(slopes: Any, rows: Any, lengths: Any) -> Any:
    """Return the slopes of vectors before they were made of one length."""
    return (slopes - (slopes * rows).sum(axis=1, keepdims=True) * rows) / lengths


main(*sys.argv[1:])
