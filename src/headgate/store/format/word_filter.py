"""Filters: a few bits for each word of a segment, which show that most other words are not in it. Pure.

A word that was mistyped has about a hundred words near it, and nearly none of them is in a segment: the filter tells so
without reading a leaf.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from zlib import crc32

from headgate.store.format.arrays import np
from headgate.store.format.segments import Numbers

_BITS_A_WORD = 16
_MIX = 0x9E3779B97F4A7C15
_HALF = 32


def word_filter(words: Collection[bytes]) -> bytes:
    """Make the filter of some words: two bits are set for each."""
    size = np.uint64(_BITS_A_WORD * max(1, len(words)))
    bits = np.zeros(int(size), np.bool_)
    for hashes in _hashes(words):
        bits[hashes % size] = True
    return np.packbits(bits, bitorder="little").tobytes()


class FilterTable:
    """The filters of many segments, for asking all of them at once."""

    __slots__ = ("_bits", "_is_missing", "_sizes", "_starts")

    def __init__(self, filters: Sequence[bytes | None]) -> None:
        # A segment without a filter may hold any word.
        self._is_missing = np.array([bits is None for bits in filters], np.bool_)
        filled = [bits or b"\xff" for bits in filters]
        self._bits = np.frombuffer(b"".join(filled), np.uint8)
        self._sizes = np.array([8 * len(bits) for bits in filled], np.uint64)[:, None]
        self._starts = np.cumsum(self._sizes, axis=0) - self._sizes

    def may_hold(self, words: Collection[bytes]) -> Numbers:
        """Return for each segment, and in it for each word, whether it may hold it."""
        may_be = np.ones((len(self._sizes), len(words)), np.bool_)
        for hashes in _hashes(words):
            places = hashes[None, :] % self._sizes + self._starts
            bits = self._bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)
            may_be &= (bits & 1).astype(np.bool_)
        return may_be | self._is_missing[:, None]


def _hashes(words: Collection[bytes]) -> tuple[Numbers, Numbers]:
    first = np.fromiter(map(crc32, words), np.uint64, len(words))
    return first, first * np.uint64(_MIX) >> np.uint64(_HALF)


_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def is_one_error_away(word: str, other: str) -> bool:
    """Return whether one word becomes the other by exactly one typing error."""
    if word == other or abs(len(word) - len(other)) > 1:
        return False
    at = next((at for at, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), None)
    if at is None:
        return True
    if len(word) == len(other):
        is_replaced = word[at + 1 :] == other[at + 1 :]
        is_swapped = word[at : at + 2] == other[at : at + 2][::-1] and word[at + 2 :] == other[at + 2 :]
        return is_replaced or is_swapped
    longer, shorter = (word, other) if len(word) > len(other) else (other, word)
    return longer[at + 1 :] == shorter[at:]


def near_words(word: str) -> Iterator[str]:
    """Yield the words that differ by an error in the first two letters; those after share their beginning.

    Replaced and inserted letters are of the Latin alphabet; in other scripts only swapped and surplus ones are tried.
    """
    tried = {
        word[1] + word[0] + word[2:],
        word[1:],
        word[0] + word[2:],
        word[0] + word[2] + word[1] + word[3:],
    }
    if word.isascii():
        for letter in _LETTERS:
            tried |= {
                letter + word[1:],
                letter + word,
                word[0] + letter + word[2:],
                word[0] + letter + word[1:],
            }
    yield from sorted(tried - {word})
