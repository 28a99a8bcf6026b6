"""Cut text into words, folded: one way for the owner's rules and for search, so that a rule finds what a search finds. Pure.

Case and accents are folded, and characters that a reader does not see are left out. Scripts that write no spaces
between words (Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese) are cut into overlapping pairs: a run ABCD becomes
"AB BC CD D". A query of two or more such characters is then the phrase of its pairs, and a single one is the beginning
of a pair.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

#: Only the beginning of longer words counts: nothing that long is typed, and the vocabulary must stay small.
WORD_CHARS = 64
#: What has no place on a screen: soft hyphens, joiners, marks of direction, selectors of a variant. The fillers of
#: Korean, which are as wide as a letter, are not among them.
UNSEEN = (
    "\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3031-\u3035\u3040-\u30ff"
    "\u3105-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff66-\uffdc"
    "\U00020000-\U0003ffff"
)
#: Vowel signs and the like, which are part of a word and fold to nothing else.
SIGNS = (
    "\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u0670\u06d6-\u06ed\u0730-\u074a\u0900-\u0903"
    "\u093a-\u094f\u0951-\u0957\u0962-\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a51"
    "\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b57\u0b82\u0bbe-\u0bcd\u0c00-\u0c04"
    "\u0c3e-\u0c56\u0c81-\u0c83\u0cbc-\u0cd6\u0d00-\u0d03\u0d3b-\u0d4d\u0d57\u0d82-\u0d83"
    "\u0dca-\u0ddf\u0f71-\u0f84"
)
RUN = re.compile(f"[{UNSPACED}]+")
#: The names of each month, in the languages in which dates are read.
MONTHS = (
    "january januar janvier enero gennaio janeiro januari jan",
    "february februar fevrier février febrero febbraio fevereiro februari feb",
    "march marz märz mars marzo março marco maart mar",
    "april avril abril aprile apr",
    "may mai mayo maggio maio mei",
    "june juni juin junio giugno junho jun",
    "july juli juillet julio luglio julho jul",
    "august aout août agosto augustus aug",
    "september septembre septiembre settembre setembro sept sep",
    "october oktober octobre octubre ottobre outubro oct okt",
    "november novembre noviembre novembro nov",
    "december dezember decembre décembre diciembre dicembre dezembro dec dez",
)
_UNSEEN = re.compile(f"[{UNSEEN}]+")
_MARKS_AND_UNSEEN = re.compile(f"[\u0300-\u036f{UNSEEN}]+")
#: ASCII letters in lower case and digits; a space for everything else of ASCII, and the bytes of others as they are.
_PLAIN = bytes(
    code if not chr(code).isascii() else ord(chr(code).lower()) if chr(code).isalnum() else ord(" ")
    for code in range(256)
)
_WORD = re.compile(rf"(?:[^\W_]|[{SIGNS}{UNSPACED}])+")
#: Where more than one byte in so many is not ASCII, a text is folded whole and not word by word.
_ONE_IN = 8
_FOLDED_MOST = 65_536
_PAIR_CHARS = 2
_SYLLABLES = re.compile("[\uac00-\ud7a3]+")
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]")


def fold(text: str) -> str:
    """Fold case and accents, and leave out what is not seen: "Größe" -> "grosse"."""
    if text.isascii():
        return text.lower()
    plain = _MARKS_AND_UNSEEN.sub("", unicodedata.normalize("NFD", text.casefold()))
    return unicodedata.normalize("NFC", plain)


def without_unseen(text: str) -> str:
    """Leave out the characters that a reader does not see."""
    return text if text.isascii() else _UNSEEN.sub("", text)


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded and in order."""
    return [word.decode() for word in index_words(text)]


def index_words(text: str) -> list[bytes]:
    """Return the words of a text, folded and in order, in UTF-8 as the index holds them."""
    raw = text.encode("utf-8", "replace")
    if text.isascii():
        return _cut(raw.translate(_PLAIN).split())
    if (len(raw) - len(text)) * _ONE_IN > len(raw):
        return [word[:WORD_CHARS].encode() for word in _WORD.findall(_in_pairs(fold(text)))]
    words: list[bytes] = []
    for word in raw.translate(_PLAIN).split():
        if word.isascii():
            words.append(word[:WORD_CHARS])
        else:
            words.extend(_folded(word))
    return words


def _cut(words: list[bytes]) -> list[bytes]:
    """Cut long words of ASCII text, of which there are few."""
    return [word[:WORD_CHARS] for word in words] if max(map(len, words), default=0) > WORD_CHARS else words


@lru_cache(maxsize=_FOLDED_MOST)
def _folded(word: bytes) -> tuple[bytes, ...]:
    """Fold what stands between two spaces; a dash or quote that is not ASCII may part it into words."""
    return tuple(part[:WORD_CHARS].encode() for part in _WORD.findall(_in_pairs(fold(word.decode()))))


def without_punctuation(text: str) -> str:
    """Leave out what stands before the first word and after the last: "(bridge?)" -> "bridge"."""
    composed = unicodedata.normalize("NFC", text)
    spans = [match.span() for match in _WORD.finditer(composed)]
    return composed[spans[0][0] : spans[-1][1]] if spans else ""


def is_pair(word: str) -> bool:
    """Return whether a word of the index is two characters of a script without spaces; Korean has spaces."""
    return len(word) == _PAIR_CHARS and RUN.fullmatch(word) is not None and not _HANGUL.search(word)


def is_korean(word: str) -> bool:
    """Return whether a word consists of Korean syllables."""
    return _SYLLABLES.fullmatch(word) is not None


def query_words(text: str, *, is_prefix: bool) -> tuple[tuple[str, ...], bool]:
    """Cut a query as texts are cut; its last unspaced character has no partner that must follow.

    Gives the words, and whether the last is only the beginning of one.
    """
    folded = fold(text)
    if not RUN.search(folded):
        return tuple(word[:WORD_CHARS] for word in words_of(folded)), is_prefix
    folded = RUN.sub(_composed, folded)
    parts: list[str] = []
    at = 0
    for run in RUN.finditer(folded):
        parts.append(folded[at : run.start()])
        at = run.end()
        is_last = not _WORD.search(folded, at)
        if len(run.group()) == 1 and is_last:
            parts.append(run.group())
            is_prefix = True
        else:
            pairs = list(_pairs(run.group()))
            parts.extend(pairs[:-1] if is_last else pairs)
    parts.append(folded[at:])
    return tuple(word[:WORD_CHARS] for word in _WORD.findall(" ".join(parts))), is_prefix


def _in_pairs(folded: str) -> str:
    if not RUN.search(folded):
        return folded
    return RUN.sub(lambda run: f" {' '.join(_pairs(_composed(run)))} ", folded)


def _composed(run: re.Match[str]) -> str:
    """Write a run in full width: "ｶﾅ" -> "カナ". Other characters are left alone, whatever stands beside them."""
    return unicodedata.normalize("NFKC", run.group())


def _pairs(run: str) -> Iterator[str]:
    return (run[at : at + 2] for at in range(len(run)))
