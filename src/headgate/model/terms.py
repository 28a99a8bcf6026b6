"""Search words as people type them: words, "several words in a row", and beginnings*."""

from __future__ import annotations

import re

from headgate.errors import InvalidRequest
from headgate.model.plan import Term

MAX_TERMS = 16
MAX_QUERY_CHARS = 512
_PIECE = re.compile(r'"([^"]*)("?)|([^\s"]+)')


def parse_terms(q: str) -> tuple[Term, ...]:
    """Take a query apart; every character that is not a quote or a final star means itself.

    Raises:
        InvalidRequest: there is no word in it, or too many.
    """
    if len(q) > MAX_QUERY_CHARS:
        raise InvalidRequest(f"q must have at most {MAX_QUERY_CHARS} characters.", param="q")
    terms = tuple(term for piece in _PIECE.finditer(q) if (term := _term(piece)) is not None)
    if not terms:
        raise InvalidRequest("q must hold at least one word.", param="q")
    if len(terms) > MAX_TERMS:
        raise InvalidRequest(f"q must hold at most {MAX_TERMS} words or phrases.", param="q")
    return terms


def _term(piece: re.Match[str]) -> Term | None:
    phrase, word = piece[1], piece[3]
    if phrase is not None:
        words = tuple(phrase.split())
        return Term(words) if _has_word(words) else None
    stem = word.rstrip("*")
    return Term((stem,), is_prefix=stem != word) if _has_word((stem,)) else None


def _has_word(words: tuple[str, ...]) -> bool:
    return any(character.isalnum() for word in words for character in word)
