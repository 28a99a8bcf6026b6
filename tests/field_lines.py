"""Read the lines "name: value" of a document back, as strictly as a reader may take them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from headgate.text.writing import json_text

_LINE = re.compile(r'("(?:[^"\\]|\\.)*"|[A-Za-z0-9_.-]+): (.*)', re.DOTALL)


def read_field_lines(text: str) -> dict[str, str] | None:
    """Give what stands behind each name; None for a text that is no such lines."""
    found: dict[str, str] = {}
    for written in re.split(r"\n(?!  )", text):
        parts = _LINE.fullmatch(written)
        if parts is None:
            return None
        path = json.loads(parts[1]) if parts[1].startswith('"') else parts[1]
        assert path not in found, f"two lines of {path}"
        found[path] = parts[2].replace("\n  ", "\n")
    return found


def values_in_lines(text: str) -> dict[str, Any]:
    """Give the values of the lines: texts, numbers and flags as they were, and anything else as it is written."""
    return {path: value_of(written) for path, written in (read_field_lines(text) or {}).items()}


def value_of(written: str) -> Any:
    try:
        value = msgspec.json.decode(written)
    except msgspec.DecodeError:
        return written
    return written if isinstance(value, dict | list) else value


def is_written(value: Any, written: Any) -> bool:
    """Say whether a line shows all that an object or a list holds."""
    if not isinstance(value, dict | list):
        return written == value
    # A list of one number is written like the number.
    line = written if isinstance(written, str) else json.dumps(written)
    return all(
        leaf in line or json_text(leaf) in line if isinstance(leaf, str) else json_text(leaf) in line
        for leaf in _leaves(value)
    )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
