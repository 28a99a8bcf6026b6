"""The shape of an answer: which members it has and of which types, without what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

#: Under these the names are the owner's, not the protocol's.
_OPEN = {"field_capabilities", "data", "schema"}
_TYPES = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string"}


def shape_of(value: Any) -> set[str]:
    """Give every member with its type, such as ``links.self string``; elements of an array count as one."""
    return set(_members(value, "", is_open=False))


def _members(value: Any, place: str, *, is_open: bool) -> Iterator[str]:
    match value:
        case dict():
            yield f"{place} object"
            for name, inner in value.items():
                opens = not is_open and name in _OPEN and isinstance(inner, dict)
                yield from _members(inner, f"{place}.{'*' if is_open else name}", is_open=opens)
        case list():
            yield f"{place} array"
            for inner in value:
                yield from _members(inner, f"{place}[]", is_open=is_open)
        case _:
            yield f"{place} {_TYPES[type(value)]}"
