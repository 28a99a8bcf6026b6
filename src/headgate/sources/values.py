"""Text of files as text that can be stored: Unicode without NUL, whatever the program that wrote it did."""

from __future__ import annotations

import math
from typing import Any

from headgate.model.ids import is_unicode
from headgate.model.instants import instant, iso
from headgate.sources.identity import digest_of

#: Longer ids are replaced by their digest: a key has at most 1024 characters, and may have several parts.
_MAX_ID_CHARS = 400
_MAX_DIGITS = 18
_INSTEAD = "\N{REPLACEMENT CHARACTER}"


def clean(text: str) -> str:
    """Replace what cannot be stored: NUL, and halves of surrogate pairs."""
    if "\0" in text:
        text = text.replace("\0", _INSTEAD)
    if is_unicode(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def decoded(content: bytes, charset: str = "utf-8") -> str:
    """Read bytes as text; those that are not of the charset are read as Windows-1252, which older programs write."""
    for name in (charset, "cp1252"):
        try:
            return clean(content.decode(name))
        except (LookupError, ValueError):
            continue
    return clean(content.decode("latin-1"))


def text_of(value: Any) -> str | None:
    """Return a value of a JSON document if it is text with anything in it."""
    return clean(value) if isinstance(value, str) and value.strip() else None


def integer_of(value: Any) -> int | None:
    """Return a value of a JSON document if it is an integer of 64 bits, also one that was written as text."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if abs(value) < 2**63 else None
    is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= _MAX_DIGITS
    return int(value) if is_number else None


def id_of(text: str) -> str:
    """Return an id of a file as part of a key: the text itself, or its digest if it is empty or very long."""
    found = clean(text.strip())
    return found if 0 < len(found) <= _MAX_ID_CHARS else digest_of(found)


def without_empty(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields without a value."""
    return {name: value for name, value in data.items() if value not in (None, "", [])}


#: The year 9999, in seconds.
_LAST = 253_402_300_800


def time_of_seconds(value: Any) -> str | None:
    """Write seconds since 1970, a number or its text, as a time; None if they are none."""
    try:
        seconds = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        return None
    # A float of today's seconds is exact to less than a microsecond.
    return iso(round(seconds * 1_000_000)) if 0 <= seconds < _LAST else None


def time_of_text(value: Any) -> str | None:
    """Return a text if it is an ISO 8601 time."""
    return value if isinstance(value, str) and instant(value) is not None else None
