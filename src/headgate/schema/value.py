"""JSON values: a copy of one, or the place where something is not JSON.

Every value passes here before it is checked or stored. The depth limit is needed: the compiled validator walks
values on the machine stack, and a value with a hundred thousand levels would end the process.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Issue:
    """One place where a value breaks its schema."""

    #: Where, from the root ``$``: ``$.items[0].name``.
    path: str
    #: The rule that is broken: a JSON Schema keyword, or a code of the adapter.
    keyword: str
    message: str
    #: The same place as a JSON pointer from the root; of a missing property, where it would be.
    pointer: str = field(default="", compare=False)

    def to_dict(self) -> dict[str, str]:
        """Return the wire form."""
        return {"path": self.path, "keyword": self.keyword, "message": self.message}

    @classmethod
    def from_dict(cls, wire: Mapping[str, Any]) -> Issue:
        """Read the wire form."""
        return cls(str(wire["path"]), str(wire["keyword"]), str(wire["message"]))


MAX_VALUE_DEPTH = 128
_KEY_CHARS = 80
#: Nothing can be wrong with these.
_PLAIN = frozenset({bool, int, type(None)})
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class _NotJson(Exception):
    """The value holds something that JSON cannot represent."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def copy_json(value: object) -> tuple[Any, Issue | None]:
    """Return a deep copy made of plain JSON types, or what is not JSON about the value."""
    try:
        return _copy(value, MAX_VALUE_DEPTH), None
    except _NotJson as found:
        return None, Issue("$", "json", found.problem)


def is_deeper_than(value: Any, levels: int) -> bool:
    """Return whether a JSON value is nested deeper; written without recursion, because the depth is foreign."""
    level: list[Any] = [value]
    for _ in range(levels + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def is_larger_than(value: Any, nodes: int) -> bool:
    """Return whether a JSON value holds more values; stops counting there."""
    waiting, count = [value], 1
    while waiting:
        inside = _inside(waiting.pop())
        count += len(inside)
        if count > nodes:
            return True
        waiting += inside
    return False


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return cast("list[Any]", value) if isinstance(value, list) else []


def child_path(path: str, step: str | int) -> str:
    """Name a place one step further in; a long or odd key is quoted and cut."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    if _PLAIN_KEY.fullmatch(step) and len(step) <= _KEY_CHARS:
        return f"{path}.{step}"
    return f"{path}[{step[:_KEY_CHARS]!a}]"


def _copy(value: object, depth: int) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is str:
        return value if cast("str", value).isascii() else _text(cast("str", value))
    if kind is float:
        return _number(cast("float", value))
    if depth == 0:
        raise _NotJson(f"is nested more than {MAX_VALUE_DEPTH} levels deep")
    if kind is dict:
        return _copy_object(cast("dict[Any, Any]", value), depth - 1)
    if kind is list:
        return [_copy(inner, depth - 1) for inner in cast("list[Any]", value)]
    return _copy_kindred(value, depth)


def _copy_object(value: dict[Any, Any], depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, inner in value.items():
        key = name if type(name) is str and name.isascii() else _key(name)
        # Repeated from _copy, because it saves a call for most values.
        result[key] = inner if type(inner) in _PLAIN else _copy(inner, depth)
    return result


def _copy_kindred(value: object, depth: int) -> Any:
    """Copy what behaves like JSON without being of its very types: enums, tuples, mappings."""
    match value:
        case str():
            return _text(str.__str__(value))
        case int():
            return int(value)
        case float():
            return _number(float(value))
        case Mapping():
            return _copy(dict(cast("Mapping[Any, Any]", value)), depth)
        case list() | tuple():
            return _copy(list(cast("list[Any]", value)), depth)
        case _:
            raise _NotJson(f"holds a {type(value).__name__}, which is not JSON")


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise _NotJson("has a key that is not a string")
    return _text(str.__str__(name))


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _NotJson("holds half a character (a lone surrogate)") from None
    return value


def _number(value: float) -> float:
    if not math.isfinite(value):
        raise _NotJson("holds a number that is not finite")
    return value
