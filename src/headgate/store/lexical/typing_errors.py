"""Words that differ by one typing error: a letter left out, put in, replaced, or two letters swapped. Pure."""

from __future__ import annotations

from collections.abc import Iterator

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def is_one_error_away(word: str, other: str) -> bool:
    """Say whether one word becomes the other by exactly one typing error."""
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
    """Give the words that differ by an error in the first two letters; those after share their beginning.

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
