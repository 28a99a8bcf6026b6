"""Search words as people type them: words, "several words in a row", beginnings*, -without, this OR that."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec.structs import replace

from headgate.errors import InvalidRequest
from headgate.model.plan import Term

MAX_TERMS = 64
MAX_QUERY_CHARS = 512
_PIECE = re.compile(r'(-?)"([^"]*)"?|([^\s"]+)')
_OR = "OR"


def parse_terms(q: str) -> tuple[Term, ...]:
    """Take a query apart; every character that has no meaning in its place means itself."""
    if len(q) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"q must have at most {MAX_QUERY_CHARS} characters.", param="q")
    terms = tuple(_joined(term for piece in _PIECE.finditer(q) if (term := _term(piece)) is not None))
    if all(term.is_excluded for term in terms):
        raise InvalidRequest("q must hold at least one word.", param="q")
    if sum(1 + len(term.alternatives) for term in terms) > MAX_TERMS:
        raise InvalidRequest(f"q must hold at most {MAX_TERMS} words or phrases.", param="q")
    return terms


def _term(piece: re.Match[str]) -> Term | None:
    dash, phrase, word = piece.groups()
    if phrase is not None:
        words = tuple(phrase.split())
        return Term(words, is_strict=True, is_excluded=bool(dash)) if _has_word(words) else None
    is_excluded = word.startswith("-") and word[1:2].isalnum()
    bare = word[1:] if is_excluded else word
    stem = bare.rstrip("*")
    return Term((stem,), is_prefix=stem != bare, is_excluded=is_excluded) if _has_word((stem,)) else None


def _joined(terms: Iterable[Term]) -> Iterable[Term]:
    """Put terms with OR between them together; at the beginning and the end of a query it is a word."""
    found: list[Term] = []
    waiting: Term | None = None
    for term in terms:
        if waiting is not None:
            if term.is_excluded:
                found += [waiting, term]
            else:
                found[-1] = replace(found[-1], alternatives=(*found[-1].alternatives, term))
            waiting = None
        elif term.words == (_OR,) and not term.is_strict and found and not found[-1].is_excluded:
            waiting = term
        else:
            found.append(term)
    return found if waiting is None else [*found, waiting]


def _has_word(words: tuple[str, ...]) -> bool:
    return any(character.isalnum() for word in words for character in word)
