"""The properties that stand before a Markdown note, in YAML or TOML."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any, cast

import yaml

from headgate.sources.texts import clean

_MAX_CHARS = 64 * 1024
_MAX_DEPTH = 16
_MAX_EVENTS = 20_000
_MAX_MEMBERS = 200
#: What begins a level inside a line. Ordinary properties have few, and need not be parsed twice.
_NESTING = ("[", "{", "- ", "-\t", "? ", "?\t")
_MANY_SIGNS = 100
_MAX_INTEGER = 2**63 - 1
_FENCED = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class FrontMatterRefused(ValueError):
    """What stands before a note is not what it looks like."""


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Give the properties and the text after them.

    Raises:
        FrontMatterRefused: the properties cannot be read.
    """
    if not text.startswith(("---", "+++")):
        return {}, text
    found = _FENCED.match(text[:_MAX_CHARS])
    if found is None:
        return {}, text
    loaded = _toml(found[2]) if found[1] == "+++" else _yaml(found[2])
    if not isinstance(loaded, Mapping):
        # A line of dashes is also a rule, and the text after it is prose.
        return {}, text
    plain = cast("dict[str, Any]", _plain(loaded, _MAX_DEPTH))
    return plain, text[found.end() :]


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        raise FrontMatterRefused("Its properties are not TOML.") from None


def _yaml(text: str) -> Any:
    try:
        if "*" in text or sum(text.count(sign) for sign in _NESTING) > _MANY_SIGNS:
            _refuse_bombs(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError, AttributeError, KeyError):
        raise FrontMatterRefused("Its properties are not YAML that can be read.") from None


def _refuse_bombs(text: str) -> None:
    """Refuse aliases, by which a few lines become any number of values, and depth."""
    depth = 0
    for count, event in enumerate(cast("Any", yaml).parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > _MAX_DEPTH or count > _MAX_EVENTS:
            raise FrontMatterRefused


def _plain(value: Any, left: int) -> Any:
    """Write a value of YAML or TOML as one of JSON that can be stored; None if there is none."""
    if left > 0 and isinstance(value, Mapping):
        members = list(cast("Mapping[Any, Any]", value).items())[:_MAX_MEMBERS]
        return {clean(str(key), 200) or "": _plain(one, left - 1) for key, one in members}
    if left > 0 and isinstance(value, list | set | tuple):
        return [_plain(one, left - 1) for one in list(cast("list[Any]", value))[:_MAX_MEMBERS]]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, _MAX_CHARS)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _MAX_INTEGER
    return value if is_number else None
