"""Cut a text into overlapping passages: a vector of a long text would stand for none of its subjects."""

from __future__ import annotations

from typing import NamedTuple

PASSAGE_CHARS = 600
OVERLAP_CHARS = 120
#: Of a text that is longer than this many passages, the rest is found by words only.
PASSAGES_MOST = 200
#: A passage ends at white space if there is any within so many characters before its end.
_LOOK_BACK_CHARS = 80


class Passage(NamedTuple):
    """A part of a text, by its characters: from the first up to the end, which is left out."""

    start: int
    end: int


def passages(text: str) -> list[Passage]:
    """Cut a text; a blank one has no passages."""
    found: list[Passage] = []
    start = 0
    while start < len(text) and len(found) < PASSAGES_MOST:
        end = _end(text, start)
        if text[start:end].strip():
            found.append(Passage(start, end))
        if end == len(text):
            break
        start = _word_start(text, end - OVERLAP_CHARS)
    return found


def _end(text: str, start: int) -> int:
    end = start + PASSAGE_CHARS
    if end >= len(text):
        return len(text)
    for place in range(end, end - _LOOK_BACK_CHARS, -1):
        if text[place].isspace():
            return place
    return end


def _word_start(text: str, near: int) -> int:
    for place in range(near, near - _LOOK_BACK_CHARS, -1):
        if text[place - 1].isspace():
            return place
    return near
