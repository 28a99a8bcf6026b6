"""The names that are nearest to one that cannot be used, written so that a refusal is the next call.

Every name offered comes from what the caller may see: a hidden name and one that does not exist get the same answer,
made by the same steps.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import msgspec

#: How much of a name is repeated and compared: longer ones are mistakes or attacks.
_NAME_CHARS = 40
#: How many names are compared, so that a refusal takes no time to speak of.
_COMPARED = 1_000
_LEAST_LIKENESS = 0.6
_NEAR = 3
#: What the list of names behind a word may take, in bytes.
_LIST_BYTES = 96
_WORD = re.compile(r"[^\W_]+")


def quoted(name: str) -> str:
    """Write a name that the caller sent, between quotes and cut."""
    short = name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 1]}…"
    return msgspec.json.encode(short).decode()


def nearest(name: str, names: Iterable[str], most: int = _NEAR) -> list[str]:
    """Return the names most like one: alike in spelling, with the same beginning, or with a word in common."""
    wanted = name[:_NAME_CHARS].casefold()
    words = set(_WORD.findall(wanted))
    ranked: list[tuple[float, int, str]] = []
    for place, candidate in enumerate(names):
        if place >= _COMPARED:
            break
        likeness = _likeness(wanted, words, candidate[:_NAME_CHARS].casefold())
        if likeness >= _LEAST_LIKENESS:
            ranked.append((-likeness, place, candidate))
    return [candidate for _, _, candidate in sorted(ranked)[:most]]


def _likeness(wanted: str, words: set[str], candidate: str) -> float:
    matcher = difflib.SequenceMatcher(None, candidate, wanted)
    spelling = matcher.ratio() if matcher.quick_ratio() >= _LEAST_LIKENESS else 0.0
    if words & set(_WORD.findall(candidate)):
        spelling = max(spelling, _LEAST_LIKENESS + 0.1)
    begins = candidate.startswith(wanted) or wanted.startswith(candidate)
    return max(spelling, _LEAST_LIKENESS + 0.2) if begins and wanted and candidate else spelling


def near(name: str, names: Sequence[str]) -> str:
    """Write the nearest names as the sentence of a refusal; empty if none is near."""
    return listed("Near", nearest(name, names))


def listed(label: str, names: Sequence[str]) -> str:
    """Write names behind a label, as many as have room; empty if there are none."""
    chosen: list[str] = []
    space = _LIST_BYTES
    for name in names:
        space -= len(name.encode()) + 2
        if space < 0:
            break
        chosen.append(name)
    if not chosen:
        return ""
    more = ", …" if len(chosen) < len(names) else ""
    return f" {label}: {', '.join(chosen)}{more}."


def near_or_all(name: str, names: Sequence[str], label: str) -> str:
    """Write the nearest names, or the first of all where none is near."""
    return near(name, names) or listed(label, names)
