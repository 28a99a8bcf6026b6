"""JSON pointers (RFC 6901): how a key is written as a step of one, and read back."""

from __future__ import annotations


def escape(key: str) -> str:
    """Write a key as a step of a JSON pointer."""
    return key.replace("~", "~0").replace("/", "~1")


def unescape(step: str) -> str:
    """Read the key that a step of a JSON pointer names."""
    return step.replace("~1", "/").replace("~0", "~")
