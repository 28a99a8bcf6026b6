"""Highlights: ``<mark>`` and ``</mark>`` around matches, always in pairs, also where a text was cut."""

from __future__ import annotations

import re

from headgate.text.budget import ELLIPSIS

OPEN, CLOSE = "<mark>", "</mark>"
_TAGS = frozenset({OPEN, CLOSE})
_TAG = re.compile(f"({OPEN}|{CLOSE})")
#: Pairs with something in them and something between them, and no other sign that could be a part of a tag.
_PAIRED = re.compile(f"[^<]*+(?:{OPEN}[^<]++{CLOSE}[^<]++)*+(?:{OPEN}[^<]++{CLOSE})?+")


def balanced(text: str) -> str:
    """Drop tags that close nothing or open twice, and close what stays open."""
    if _PAIRED.fullmatch(text):
        return text
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
    return cut_balanced(balanced(text), limit_chars)


def cut_balanced(text: str, limit_chars: int) -> str:
    """Do the same with a text whose tags are in pairs already."""
    length = len(text) - text.count(OPEN) * len(OPEN) - text.count(CLOSE) * len(CLOSE)
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
        if at >= high:
            break
        if piece in _TAGS:
            is_open = piece == OPEN
            continue
        part = piece[low - at if low > at else 0 : high - at]
        at += len(piece)
        if part:
            if is_open != is_written:
                out.append(OPEN if is_open else CLOSE)
                is_written = is_open
            out.append(part)
    return "".join([*out, CLOSE] if is_written else out)
