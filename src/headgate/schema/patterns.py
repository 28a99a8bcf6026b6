"""Patterns in schemas, run in bounded time for any text.

A foreign pattern is run only by an engine whose time grows with the text and no faster; look-around and
back-references need another kind of engine. Our own may use that one, with a bound on how often it tries.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

import jsonschema_rs

# The compiled size of one pattern is bounded too: ``(a{1000}){1000}`` is short to write.
_SIZE = 1 << 19
#: Of a foreign one: compiling a pattern of this size takes about a millisecond.
_FOREIGN_SIZE = 1 << 17


class Engine(Enum):
    """What runs patterns."""

    LINEAR = "linear"
    BACKTRACKING = "backtracking"

    @property
    def options(self) -> jsonschema_rs.RegexOptions | jsonschema_rs.FancyRegexOptions:
        """The options of the validator for this engine."""
        return _LINEAR if self is Engine.LINEAR else _BACKTRACKING


_LINEAR = jsonschema_rs.RegexOptions(size_limit=_FOREIGN_SIZE, dfa_size_limit=_FOREIGN_SIZE)
_BACKTRACKING = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=100_000, size_limit=_SIZE, dfa_size_limit=_SIZE
)


def is_linear(pattern: str) -> bool:
    """Return whether the linear engine can run a pattern."""
    return _matcher(pattern, Engine.LINEAR) is not None


def matches(pattern: str, text: str, engine: Engine = Engine.LINEAR) -> bool:
    """Search a text for a pattern; one that the engine cannot run is in no text."""
    matcher = _matcher(pattern, engine)
    return matcher is not None and matcher.is_valid(text)


# Few, because a hostile one may be as large as is allowed.
@lru_cache(maxsize=64)
def _matcher(pattern: str, engine: Engine) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=engine.options, offline=True)
    except (ValueError, jsonschema_rs.ValidationError):
        return None
