"""Budgets: how large an answer may be, and which lines are chosen when not all of them fit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

ELLIPSIS = "…"

#: Bytes.
SEARCH_TEXT = 8_000
QUERY_TEXT = 8_000
AGGREGATE_TEXT = 4_000
SCHEMA_INDEX_TEXT = 18_000
#: The names of all streams together, as encoded in JSON; a longer list does not help a model.
SCHEMA_NAMES_TEXT = 34_000
SCHEMA_STREAM_TEXT = 12_000
TOOL_RESULT = 100_000
#: What a result has beside its text, its structure and its links.
ENVELOPE = 1_000
#: A page of this many rows is printed whole; each row has at least its share of the text.
SHARES = 25
#: Characters.
FETCH_CHARS = 16_384
INLINE_CHARS = 4_096
FALLBACK_CHARS = 1_024


_T = TypeVar("_T")


class Line(msgspec.Struct, frozen=True):
    """One line of a text, and its rank: lower ranks get space first, and 0 is never left out."""

    text: str
    rank: int = 0


def size(text: str) -> int:
    """Count the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())


def fitting(texts: Iterable[str], space: int, joint: int = 1) -> list[str]:
    """Return the first texts that fit into a number of bytes, with ``joint`` bytes between them."""
    chosen: list[str] = []
    for text in texts:
        space -= size(text) + joint
        if space < 0:
            break
        chosen.append(text)
    return chosen


def shared_lines(
    entries: Iterable[_T], count: int, space: int, draw: Callable[[int, _T, int], str]
) -> list[str]:
    """Draw as many of the first entries as fit; each may take its share of the space that is left.

    The lines that are drawn are the first ones, so that it is clear which are missing.
    """
    lines: list[str] = []
    for position, entry in enumerate(entries):
        share = space // max(1, min(count, SHARES) - position)
        text = draw(position, entry, share - 1)
        space -= size(text) + 1
        if space < 0:
            break
        lines.append(text)
    return lines


def compose(lines: Sequence[Line], limit_bytes: int) -> str:
    """Join the lines that fit, in their order; lines of lower rank are chosen first."""
    space = limit_bytes + 1
    chosen: list[int] = []
    ranks = [line.rank for line in lines]
    for position in sorted(range(len(lines)), key=ranks.__getitem__):
        needed = size(lines[position].text) + 1
        if needed <= space or ranks[position] == 0:
            chosen.append(position)
            space -= needed
    chosen.sort()
    return "\n".join([lines[position].text for position in chosen])


def cut(text: str, limit_chars: int) -> str:
    """Cut a text to a number of characters, the last of which is then an ellipsis."""
    return text if len(text) <= limit_chars else text[: max(0, limit_chars - 1)] + ELLIPSIS


def smaller_limit(rows: int, limit_bytes: int, written_bytes: int) -> int:
    """Estimate how many rows of a page fit, with a reserve for rows that are larger than others."""
    return max(1, min(rows - 1, rows * limit_bytes * 4 // (written_bytes * 5)))
