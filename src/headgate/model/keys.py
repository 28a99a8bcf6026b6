"""Canonical key strings: one text for a record's primary key, however many fields it has."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence

import msgspec

from headgate.errors import InvalidRecord
from headgate.model.ids import RecordId, record_id


def canonical_key(parts: Sequence[object]) -> RecordId:
    """Write a primary key as one text: the part itself, or a JSON array of strings for several."""
    texts = [key_text(part) for part in parts]
    if not texts:
        raise InvalidRecord("A key needs at least one part.")
    if len(texts) == 1:
        return record_id(texts[0])
    return record_id(json.dumps(texts, ensure_ascii=False, separators=(",", ":")))


def key_parts(key: RecordId, width: int) -> tuple[str, ...]:
    """Take a canonical key string apart again into its parts, as text."""
    if width == 1:
        return (key,)
    try:
        parts = tuple(msgspec.json.decode(key, type=list[str]))
    except msgspec.DecodeError:
        parts = ()
    # Only the one spelling that we write is canonical: other white space or escapes are another text.
    if len(parts) == width and canonical_key(parts) == key:
        return parts
    raise InvalidRecord(f"The key must be a minified JSON array of {width} strings.")


def key_text(part: object) -> str:
    """Write one part of a key as text, the way JSON writes it."""
    match part:
        case str():
            return part
        case bool():
            return "true" if part else "false"
        case int():
            return str(part)
        case float() if math.isfinite(part):
            # JSON does not tell 1.0 from 1, so neither may a key.
            return str(int(part)) if part.is_integer() else repr(part)
        case _:
            raise InvalidRecord("A key part must be a string, a number or a boolean.")
