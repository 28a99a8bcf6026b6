"""Recognise files and encoded bytes: they are shown by kind and address, never as bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
#: Texts below this are never taken for encoded bytes.
SHORT_CHARS = 256
_MIN_DISTINCT = 4
#: The beginning of encoded bytes, in lines or not.
_BEGINS_ENCODED = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
#: Shorter lines are a list of words.
_LEAST_WIDTH = 32
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,")
_TWINS = {
    "mime_type": ("mime_type", "content_type", "mimeType", "contentType"),
    "size_bytes": ("size_bytes", "sizeBytes"),
    "digest": ("sha256", "digest"),
    "fetch_url": ("fetch_url", "fetchUrl"),
}

#: The fact that repeats a member of a file's object.
_FACTS = {
    **dict.fromkeys(("blob_id", "blobId"), "blob_id"),
    **{name: fact for fact, names in _TWINS.items() for name in names},
}


def binary_facts(value: Any) -> dict[str, Any] | None:
    """Describe a value that is a file or encoded bytes; None for anything else."""
    if isinstance(value, str):
        return _encoded_facts(value)
    if isinstance(value, Mapping):
        return _blob_facts(cast("Mapping[str, Any]", value))
    return None


def has_other_members(value: Mapping[str, Any]) -> bool:
    """Return whether a file's object holds more than the facts about it repeat."""
    facts = _blob_facts(value) or {}
    return any(
        (fact := _FACTS.get(name)) not in facts or facts[fact] != member for name, member in value.items()
    )


def _blob_facts(value: Mapping[str, Any]) -> dict[str, Any] | None:
    blob_id = value.get("blob_id") or value.get("blobId")
    if not isinstance(blob_id, str):
        return None
    facts: dict[str, Any] = {**_about(), "blob_id": blob_id}
    for fact, names in _TWINS.items():
        found = next((value[name] for name in names if isinstance(value.get(name), str | int)), None)
        if found is not None:
            facts[fact] = found
    return facts


def _encoded_facts(value: str) -> dict[str, Any] | None:
    if len(value) < SHORT_CHARS:
        return None
    start = value[:SHORT_CHARS]
    found = _DATA_URL.match(start)
    if found:
        return encoded_facts(len(value), found[1])
    # A short look first: almost every long text has a space early on.
    if not _BEGINS_ENCODED.fullmatch(start):
        return None
    encoded = _joined(value) if "\n" in value or "\r" in value else value
    if encoded is None or not _ENCODED.fullmatch(encoded) or not _looks_encoded(encoded):
        return None
    return encoded_facts(len(value))


def _looks_encoded(text: str) -> bool:
    """Distinguish encoded bytes from one long word: they are padded, or have letters of both cases and digits."""
    seen = set(text[:SHORT_CHARS])
    if len(text) % 4 == 0:
        return len(seen) >= _MIN_DISTINCT
    return all(any(map(kind, seen)) for kind in (str.isupper, str.islower, str.isdigit))


def _joined(value: str) -> str | None:
    """Join encoded bytes that are in lines of one width, as mail and certificates have them."""
    first, *others = value.split() or [""]
    width = len(first)
    if width < _LEAST_WIDTH or any(len(line) != width for line in others[:-1]):
        return None
    return None if others and len(others[-1]) > width else "".join([first, *others])


def encoded_facts(size_chars: int, mime_type: str = "application/octet-stream") -> dict[str, Any]:
    """Describe a text that is encoded bytes."""
    return {**_about(), "mime_type": mime_type, "size_chars": size_chars}


def _about() -> dict[str, Any]:
    return {"binary_field": True, "text_like": False, "preview_status": "binary-only"}
