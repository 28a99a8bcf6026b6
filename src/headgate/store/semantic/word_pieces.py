"""Cut a text into the pieces of words that the vocabulary of an uncased BERT model has."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

_WORD_CHARS_MOST = 100
_CJK = re.compile("([\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff])")
UNKNOWN = "[UNK]"


def pieces(text: str, vocabulary: Mapping[str, int], most: int) -> list[int]:
    """Give the numbers of a text's pieces, so many at most."""
    found: list[int] = []
    for word in _words(text):
        found += _pieces_of(word, vocabulary)
        if len(found) >= most:
            break
    return found[:most]


def _pieces_of(word: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Cut a word into the longest beginnings that the vocabulary has; a word that has none is unknown."""
    found: list[int] = []
    start = 0
    while start < len(word):
        prefix = "##" if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocabulary), None)
        if end is None or len(word) > _WORD_CHARS_MOST:
            return [vocabulary[UNKNOWN]]
        found.append(vocabulary[prefix + word[start:end]])
        start = end
    return found


def _words(text: str) -> Iterator[str]:
    """Cut a text as the uncased models do: lower case, no accents, marks and Chinese characters by themselves."""
    folded = unicodedata.normalize("NFD", text.lower())
    plain = "".join(character for character in folded if unicodedata.category(character) != "Mn")
    for run in _CJK.sub(r" \1 ", plain).split():
        word = ""
        for character in run:
            if unicodedata.category(character)[0] in "PS":
                yield from (part for part in (word, character) if part)
                word = ""
            else:
                word += character
        if word:
            yield word
