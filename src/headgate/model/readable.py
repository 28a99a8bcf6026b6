"""Readable ids: short texts made from what a person wrote, of lower-case ASCII letters, digits and hyphens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import count

from headgate.model.ids import ConnectionId, ConnectorKey
from headgate.words import fold

CONNECTION_CHARS = 40
#: Letters that are no base letter with a mark.
_LETTERS = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "\u0131": "i"}
)
_NAMELESS = "connection"
_APOSTROPHES = re.compile("['`\u00b4\u02bc\u2018\u2019\uff07]")
_OTHERS = re.compile(r"[^a-z0-9]+")
_LETTER = re.compile(r"[a-z]")


def slug(text: str, most_chars: int) -> str:
    """Return the words of a text joined by hyphens: "Nora's Büro" -> "noras-buro"; empty if it has no usable character."""
    plain = fold(unicodedata.normalize("NFKC", text)).translate(_LETTERS)
    return _cut(_OTHERS.sub("-", _APOSTROPHES.sub("", plain)).strip("-"), most_chars)


def connection_ids(display_name: str, connector_key: ConnectorKey) -> Iterator[ConnectionId]:
    """Yield the ids that a connection may get, the best first: "bank", "bank-2", "bank-3"."""
    base = slug(display_name, CONNECTION_CHARS)
    if not _LETTER.search(base):
        base = slug(f"{connector_key}-{base}", CONNECTION_CHARS) or _NAMELESS
    yield ConnectionId(base)
    for number in count(2):
        yield ConnectionId(f"{_cut(base, CONNECTION_CHARS - len(str(number)) - 1)}-{number}")


def _cut(text: str, most_chars: int) -> str:
    """Cut at the end of a word, unless that leaves less than half."""
    if len(text) <= most_chars:
        return text
    whole = text[: most_chars + 1].rpartition("-")[0]
    return whole if 2 * len(whole) >= most_chars else text[:most_chars].rstrip("-")
