"""Highlights: ``<mark>`` and ``</mark>`` around matches, always in pairs, also where a text was cut."""

from __future__ import annotations

import re

from headgate.text.budget import ELLIPSIS

OPEN, CLOSE = "<mark>", "</mark>"
_TAG = re.compile(f"({OPEN}|{CLOSE})")


def balanced(text: str) -> str:
    """Drop tags that close nothing or open twice, and close what stays open."""
    while True:
        mended = _walk(text, 0, len(text))
        # Dropping a tag can join its neighbours to a new one; every round is shorter.
        if mended == text:
            return text
        text = mended


def cut_marked(text: str, limit_chars: int) -> str:
    """Keep that many visible characters around the first match, tags in pairs.

    The tags are not counted, and an ellipsis stands where something was left out.
    """
    text = balanced(text)
    length = len(_TAG.sub("", text))
    if length <= limit_chars:
        return text
    start = min(max(0, text.find(OPEN) - limit_chars // 3), length - limit_chars)
    inner = balanced(_walk(text, start, start + limit_chars))
    before = ELLIPSIS if start else ""
    return before + inner + (ELLIPSIS if start + limit_chars < length else "")


def _walk(text: str, low: int, high: int) -> str:
    """Keep the visible characters from low to high, and the tags that have something between them."""
    out: list[str] = []
    at, is_open, is_written = 0, False, False
    for piece in _TAG.split(text):
        if piece in {OPEN, CLOSE}:
            is_open = piece == OPEN
            continue
        part = piece[max(0, low - at) : max(0, high - at)]
        at += len(piece)
        if part:
            if is_open != is_written:
                out.append(OPEN if is_open else CLOSE)
                is_written = is_open
            out.append(part)
    return "".join([*out, CLOSE] if is_written else out)
