"""Patterns that foreign schemas bring, run only by an engine whose time grows with the text and no faster.

Look-around and back-references need another kind of engine and are not run at all.
"""

from __future__ import annotations

from functools import lru_cache

import jsonschema_rs

#: The compiled size of one pattern is bounded too: ``(a{1000}){1000}`` is short to write.
LINEAR = jsonschema_rs.RegexOptions(size_limit=1 << 20, dfa_size_limit=1 << 20)


def is_linear(pattern: str) -> bool:
    """Tell whether the linear engine can run a pattern."""
    return _matcher(pattern) is not None


def matches(pattern: str, text: str) -> bool:
    """Search a text for a linear pattern."""
    matcher = _matcher(pattern)
    return matcher is not None and matcher.is_valid(text)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=LINEAR, offline=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return None
