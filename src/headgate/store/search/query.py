"""What a query needs: each of its words with the ways in which a text can hold it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from headgate.model.plan import MAX_TERMS, Term
from headgate.store.format.analyser import normal_forms
from headgate.store.format.languages import at_particles, has_forms, question_words
from headgate.words import is_korean, is_pair, query_words, without_punctuation

#: Of shorter Korean words one syllable would be left.
_KOREAN_FROM_CHARS = 3


@dataclass(frozen=True, slots=True)
class WordChoice:
    """Words in a row that a text may hold; the last one may be only the beginning of a word."""

    words: tuple[bytes, ...]
    is_prefix: bool = False
    #: Whether inflected forms of the word match as well; only a single word has them.
    has_forms: bool = False
    #: As it was typed, for marking it in a text; None for a date or number in normal form.
    term: Term | None = None

    @property
    def is_normal_form(self) -> bool:
        """The word is the normal form of a date or a number."""
        return self.term is None


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that a record should hold, in any of its searched fields."""

    #: As it was typed.
    name: str
    choices: tuple[WordChoice, ...]
    #: A record without it is no match, whatever else it holds.
    is_strict: bool = False
    #: Of ``a OR b``: the names of the alternatives; empty where there is one.
    alternatives: tuple[str, ...] = ()
    #: Two characters of the need before it, by which a text without all of that is found; answers do not name it.
    is_part: bool = False

    @property
    def single(self) -> bytes | None:
        """The plain word that it consists of; None for a phrase, a beginning or a choice."""
        choice = self.choices[0]
        is_plain = len(self.choices) == 1 and len(choice.words) == 1 and not choice.is_prefix
        return choice.words[0] if is_plain and not self.is_strict else None


@dataclass(frozen=True, slots=True)
class SearchQuestion:
    """A query as it is understood."""

    needs: tuple[Need, ...]
    #: What no hit may hold.
    excluded: tuple[Need, ...]
    #: Function words, which are not required.
    left_out: tuple[str, ...]


def understand(terms: Sequence[Term]) -> SearchQuestion:
    """Return what a query needs."""
    excluded = [need for term in terms if term.is_excluded and (need := _need(term)) is not None]
    wanted, particles = _without_particles([term for term in terms if not term.is_excluded])
    needs = _few_enough(list(_needs(wanted)))
    plain = {single.decode(): need for need in needs if (single := need.single) is not None}
    without_subject = question_words(plain.keys())
    rest = [need for need in needs if need.single is None or need.single.decode() not in without_subject]
    if not rest:
        # "The Who": where nothing else was asked for, these words decide.
        return SearchQuestion(tuple(needs), tuple(excluded), particles)
    left_out = tuple(need.name for need in needs if need not in rest)
    return SearchQuestion(tuple(rest), tuple(excluded), (*left_out, *particles))


def _without_particles(terms: Sequence[Term]) -> tuple[list[Term], tuple[str, ...]]:
    """Cut Japanese into words at its particles; returns the terms, and the particles.

    It stays as it is where there is nothing else, or where there would be too many terms.
    """
    cut: list[Term] = []
    left_out: list[str] = []
    for term in terms:
        words, particles = at_particles(term.words[0]) if _is_plain(term) else ([], [])
        named = [word for word in words if without_punctuation(word)]
        cut += [Term((word,)) for word in named] if particles else [term]
        left_out += particles
    is_useful = 0 < len(cut) <= MAX_TERMS and bool(left_out)
    return (cut, tuple(dict.fromkeys(left_out))) if is_useful else (list(terms), ())


def _few_enough(needs: list[Need]) -> list[Need]:
    """Leave out parts where there are too many of them; a query has no more other needs than terms."""
    parts = [need for need in needs if need.is_part]
    left_out = parts[MAX_TERMS - (len(needs) - len(parts)) :]
    return [need for need in needs if need not in left_out]


def _needs(terms: Sequence[Term]) -> Iterator[Need]:
    """Yield the need of each term; several that make up a date or a number are one."""
    at = 0
    while at < len(terms):
        taken, forms = _normal_form_at(terms, at)
        need = _need(terms[at]) if taken <= 1 else _phrase_need(terms[at : at + taken])
        if need is not None:
            yield _with_forms(need, forms)
            yield from () if forms else _parts(need)
        at += max(1, taken)


def _parts(need: Need) -> Iterator[Need]:
    """Yield the pairs of characters of a word that is written without spaces: such a run is often several words."""
    choice = need.choices[0]
    is_run = len(choice.words) > 1 and any(is_pair(word.decode()) for word in choice.words)
    if need.is_strict or choice.is_prefix or len(need.choices) > 1 or not is_run:
        return
    for word in dict.fromkeys(choice.words):
        if is_pair(word.decode()) or word.isascii():
            text = word.decode()
            yield Need(text, (WordChoice((word,), term=Term((text,))),), is_part=True)


def _normal_form_at(terms: Sequence[Term], at: int) -> tuple[int, list[str]]:
    """Find a date or number that begins with a term: how many terms it takes, and its forms."""
    best: tuple[int, list[str]] = (0, [])
    text = ""
    for taken, term in enumerate(_plain_run(terms[at:]), 1):
        text = f"{text} {term.words[0]}".strip()
        whole = text.rstrip(".,;:!?")
        forms = [form for start, end, form in normal_forms(whole) if start == 0 and end == len(whole)]
        if forms:
            best = (taken, forms)
    return best


def _plain_run(terms: Iterable[Term]) -> Iterator[Term]:
    return takewhile(_is_plain, terms)


def _is_plain(term: Term) -> bool:
    """Return whether a term is one word, without operators."""
    return len(term.words) == 1 and not (term.is_strict or term.is_prefix or term.alternatives)


def _phrase_need(terms: Sequence[Term]) -> Need | None:
    return _need(Term(tuple(word for term in terms for word in term.words)))


def _with_forms(need: Need, forms: Iterable[str]) -> Need:
    added = tuple(WordChoice((form.encode(),)) for form in dict.fromkeys(forms))
    return Need(need.name, (*need.choices, *added), need.is_strict) if added else need


def _need(term: Term) -> Need | None:
    every = (term, *term.alternatives)
    written = [form for form_of in every for form in (form_of, *_without_particle(form_of))]
    choices = [choice for form_of in written if (choice := _choice(form_of)) is not None]
    if not choices:
        return None
    names = tuple(map(name_of, every))
    is_strict = all(form_of.is_strict for form_of in every)
    return Need(" OR ".join(names), tuple(choices), is_strict, names if len(names) > 1 else ())


def _without_particle(term: Term) -> Iterator[Term]:
    """Leave out the last syllable of a Korean word: it is often a particle, and a text may have another one."""
    is_plain = not (term.is_strict or term.is_prefix or term.is_excluded) and len(term.words) == 1
    if is_plain and is_korean(word := without_punctuation(term.words[0])) and len(word) >= _KOREAN_FROM_CHARS:
        yield Term((word[:-1],))


def _choice(term: Term) -> WordChoice | None:
    words, is_prefix = query_words(" ".join(term.words), is_prefix=term.is_prefix)
    if not words:
        return None
    inflected = len(words) == 1 and not is_prefix and not term.is_strict and has_forms(words[0])
    return WordChoice(tuple(word.encode() for word in words), is_prefix, inflected, term)


def name_of(term: Term) -> str:
    """Return a term as it was typed, without punctuation."""
    text = " ".join(filter(None, map(without_punctuation, term.words)))
    return f'"{text}"' if term.is_strict else f"{text}*" if term.is_prefix else text
