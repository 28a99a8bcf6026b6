"""Recognise files and encoded bytes: they are shown by kind and address, never as bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
#: Texts below this are never taken for encoded bytes.
SHORT_CHARS = 256
_MIN_DISTINCT = 4
_LINE_WIDTHS = (60, 64, 72, 76)
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,")
_TWINS = {
    "mime_type": ("mime_type", "content_type", "mimeType", "contentType"),
    "size_bytes": ("size_bytes", "sizeBytes"),
    "digest": ("sha256", "digest"),
    "fetch_url": ("fetch_url", "fetchUrl"),
}


def binary_facts(value: Any) -> dict[str, Any] | None:
    """Describe a value that is a file or encoded bytes; None for anything else."""
    if isinstance(value, str):
        return _encoded_facts(value)
    if isinstance(value, Mapping):
        return _blob_facts(cast("Mapping[str, Any]", value))
    return None


def has_other_members(value: Mapping[str, Any]) -> bool:
    """Say whether a file's object holds more than what is known about files."""
    known = {"blob_id", "blobId", *(name for names in _TWINS.values() for name in names)}
    return not known.issuperset(value)


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
    found = _DATA_URL.match(value[:SHORT_CHARS])
    if found:
        return {**_about(), "mime_type": found[1], "size_chars": len(value)}
    if "\n" in value[:SHORT_CHARS]:
        return _encoded_facts_of_lines(value)
    # A short look first: almost every long text has a space early on.
    if not _ENCODED.fullmatch(value, 0, SHORT_CHARS):
        return None
    if len(value) % 4 or len(set(value[:SHORT_CHARS])) < _MIN_DISTINCT or not _ENCODED.fullmatch(value):
        return None
    return {**_about(), "mime_type": "application/octet-stream", "size_chars": len(value)}


def _encoded_facts_of_lines(value: str) -> dict[str, Any] | None:
    """Describe encoded bytes in lines of one width, as mail and certificates have them."""
    lines = value.split()
    width = len(lines[0]) if lines else 0
    if width not in _LINE_WIDTHS or any(len(line) != width for line in lines[:-1]):
        return None
    facts = _encoded_facts("".join(lines))
    return facts and {**facts, "size_chars": len(value)}


def _about() -> dict[str, Any]:
    return {"binary_field": True, "text_like": False, "preview_status": "binary-only"}
