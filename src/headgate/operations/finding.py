"""Find operations by a plain question: BM25 over names, titles, descriptions and parameters, weighted by field. Pure.

Only what the caller may see is counted, so that rarity, and with it the order, tells nothing about other operations.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from headgate.operations.signatures import parameter_names
from headgate.operations.spec import OperationKey, OperationSpec
from headgate.store.format.languages import DEFAULT_LANGUAGE, STOP_WORDS, stemmer
from headgate.words import words_of

#: How much a word counts in each field.
_NAME, _TITLE, _NAMESPACE, _LEAD, _REST, _PARAMETERS, _TAGS = 4.0, 3.0, 2.0, 2.0, 0.7, 0.8, 1.5
_SATURATION, _LENGTH_SHARE = 1.4, 0.3
#: A word that is only the beginning of one of the text, or the other way round.
_BEGINNING = 0.6
_BEGINNING_CHARS = 3
_REST_CHARS = 4000
_LEAD_CHARS = 200
_PARTS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
#: Words of tasks that say nothing about what is looked for. English alone: "door" and "die" are stop words elsewhere.
_EMPTY_WORDS = STOP_WORDS[DEFAULT_LANGUAGE] | {
    "get", "let", "like", "make", "need", "our", "please", "some", "tool", "use", "using", "want"
}  # fmt: skip
_STEM_CHARS = 3
#: A task has few words; each is compared with every word of every operation.
_MOST_TERMS = 16


@dataclass(frozen=True, slots=True)
class _Document:
    spec: OperationSpec
    weights: Mapping[str, float]
    length: float


@dataclass(slots=True)
class OperationFinder:
    """Ranks operations; remembers the words of each."""

    _documents: dict[OperationKey, _Document] = field(default_factory=dict[OperationKey, _Document])

    def rank(self, specs: Sequence[OperationSpec], query: str) -> list[OperationSpec]:
        """Return the operations that have any word of a query, best first; all of them, by id, for none."""
        if not query.split():
            return sorted(specs, key=lambda spec: spec.id)
        documents = [self._document(spec) for spec in specs]
        terms = _terms(query)
        scores = _scores(documents, terms)
        exact = query.strip().strip("/").casefold()
        ranked = [
            (
                score
                + (
                    100.0
                    if exact in {document.spec.id.casefold(), document.spec.local_name.casefold()}
                    else 0.0
                ),
                document,
            )
            for score, document in zip(scores, documents, strict=True)
        ]
        ranked = [(score, document) for score, document in ranked if score > 0]
        return [document.spec for _, document in sorted(ranked, key=lambda pair: (-pair[0], pair[1].spec.id))]

    def _document(self, spec: OperationSpec) -> _Document:
        document = self._documents.get(spec.key)
        if document is None or document.spec is not spec:
            document = self._documents[spec.key] = _made(spec)
        return document


def _made(spec: OperationSpec) -> _Document:
    lead, rest = spec.description[:_LEAD_CHARS], spec.description[_LEAD_CHARS:_REST_CHARS]
    fields = (
        (_NAME, spec.local_name),
        (_TITLE, spec.title or ""),
        (_NAMESPACE, spec.namespace),
        (_LEAD, lead),
        (_REST, rest),
        (_PARAMETERS, " ".join(_parameter_texts(spec))),
        (_TAGS, " ".join(spec.tags)),
    )
    weights: defaultdict[str, float] = defaultdict(float)
    length = 0.0
    for weight, text in fields:
        stems = [stem(word) for word in _words(text)]
        length += len(stems) * min(weight, 1.0)
        for word, count in Counter(stems).items():
            # The first occurrence in a field says most of what it is about.
            weights[word] += weight * (1 + math.log(count))
    return _Document(spec, weights, length)


def _parameter_texts(spec: OperationSpec) -> Iterable[str]:
    schema = cast("Mapping[str, Any]", spec.input_schema)
    for name in parameter_names(spec):
        yield name
        described: Any = schema["properties"][name]
        if isinstance(described, Mapping):
            text: Any = cast("Mapping[str, Any]", described).get("description")
            yield text[:_LEAD_CHARS] if isinstance(text, str) else ""


def _words(text: str) -> list[str]:
    return words_of(_PARTS.sub(" ", text).replace("_", " "))


def _terms(query: str) -> list[str]:
    words = _words(query)
    telling = [word for word in words if word not in _EMPTY_WORDS] or words
    return list(dict.fromkeys(map(stem, telling)))[:_MOST_TERMS]


def stem(word: str) -> str:
    """Return the stem of an English word, so that "files", "filing" and "filed" are one."""
    return stemmer(DEFAULT_LANGUAGE).stemWord(word) if len(word) > _STEM_CHARS else word


def _scores(documents: Sequence[_Document], terms: Sequence[str]) -> list[float]:
    if not documents:
        return []
    usual = sum(document.length for document in documents) / len(documents) or 1.0
    scores = [0.0] * len(documents)
    for term in terms:
        frequencies = [_frequency(document, term) for document in documents]
        holding = sum(1 for frequency in frequencies if frequency)
        if not holding:
            continue
        rarity = math.log(1 + (len(documents) - holding + 0.5) / (holding + 0.5))
        for place, (document, frequency) in enumerate(zip(documents, frequencies, strict=True)):
            if frequency:
                norm = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * document.length / usual)
                scores[place] += rarity * frequency * (_SATURATION + 1) / (frequency + norm)
    return scores


def _frequency(document: _Document, term: str) -> float:
    exact = document.weights.get(term)
    if exact is not None:
        return exact
    if len(term) < _BEGINNING_CHARS:
        return 0.0
    alike = (weight for word, weight in document.weights.items() if _is_beginning(term, word))
    return _BEGINNING * max(alike, default=0.0)


def _is_beginning(term: str, word: str) -> bool:
    if len(word) < _BEGINNING_CHARS:
        return False
    return word.startswith(term) or (len(word) > _BEGINNING_CHARS and term.startswith(word))
