"""Find text whatever its case, by full Unicode folding, in pieces that never have to be put together."""

from __future__ import annotations

from collections.abc import Iterable


def find_folded(pieces: Iterable[str], sought: str) -> tuple[int, int] | None:
    """Give where the first match starts and ends, in characters of the text as it stands.

    A letter may fold to several ('ß' to 'ss') and a match may begin in one piece and end in the next.
    """
    folded = sought.casefold()
    if not folded:
        return None
    # No character folds to nothing, so a match that starts before these has ended before the next piece.
    keep = len(folded) - 1
    at, tail = 0, ""
    for piece in pieces:
        text = tail + piece
        found = _find(text, folded)
        if found is not None:
            return at + found[0], at + found[1]
        tail = text[max(0, len(text) - keep) :] if keep else ""
        at += len(text) - len(tail)
    return None


def _find(text: str, folded: str) -> tuple[int, int] | None:
    whole = text.casefold()
    if len(whole) == len(text):
        start = whole.find(folded)
        return None if start < 0 else (start, start + len(folded))
    return _find_uneven(text, whole, folded)


def _find_uneven(text: str, whole: str, folded: str) -> tuple[int, int] | None:
    """Find in a text that grew by folding; a match counts only from the start of a character to the end of one."""
    places: dict[int, int] = {}
    at = 0
    for index, character in enumerate(text):
        places[at] = index
        at += len(character.casefold())
    places[at] = len(text)
    start = whole.find(folded)
    while start >= 0:
        if start in places and start + len(folded) in places:
            return places[start], places[start + len(folded)]
        start = whole.find(folded, start + 1)
    return None
