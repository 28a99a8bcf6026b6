"""Budgets: how much an answer may hold, and how lines are chosen when not all of them fit."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

ELLIPSIS = "…"

#: Bytes.
SEARCH_TEXT = 1800
QUERY_TEXT = 1800
AGGREGATE_TEXT = 1800
SCHEMA_INDEX_TEXT = 18_000
#: What the names of all streams may take, as they travel; more than this is no help to anybody.
SCHEMA_NAMES_TEXT = 34_000
SCHEMA_STREAM_TEXT = 6_000
TOOL_RESULT = 100_000
#: Characters.
FETCH_CHARS = 16_384
INLINE_CHARS = 4_096
FALLBACK_CHARS = 1_024


class Line(msgspec.Struct, frozen=True):
    """One line of a text, and its place in the queue for room: 0 always goes in."""

    text: str
    rank: int = 0


def size(text: str) -> int:
    """Count bytes as they travel."""
    return len(text) if text.isascii() else len(text.encode())


def compose(lines: Sequence[Line], limit_bytes: int) -> str:
    """Join the lines that fit, in their order; those of a low rank are let in first."""
    room = limit_bytes + 1
    chosen: list[int] = []
    ranks = [line.rank for line in lines]
    for position in sorted(range(len(lines)), key=ranks.__getitem__):
        needed = size(lines[position].text) + 1
        if needed <= room or ranks[position] == 0:
            chosen.append(position)
            room -= needed
    chosen.sort()
    return "\n".join([lines[position].text for position in chosen])


def cut(text: str, limit_chars: int) -> str:
    """Keep a text within a number of characters, with an ellipsis where it was cut."""
    return text if len(text) <= limit_chars else text[: max(0, limit_chars - 1)] + ELLIPSIS
