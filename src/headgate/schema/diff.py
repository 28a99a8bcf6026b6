"""Compare two definitions of a tool and grade each change by its effect on callers.

A change that is not understood counts as breaking. *Widened* means more values fit than
before, *narrowed* that fewer do; which of them breaks depends on the side of the call.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Any, cast

from headgate.model.pointers import escape

# ECMAScript writes numbers between these powers of ten without an exponent.
_PLAIN_FROM, _PLAIN_TO = -6, 21
_MAX_JSON_DEPTH = 192


def digest(value: Any) -> str:
    """Return the SHA-256 of a value's canonical spelling, as ``sha256:...``."""
    return f"sha256:{hashlib.sha256(canonical_json(value)).hexdigest()}"


def canonical_json(value: Any) -> bytes:
    """Spell a JSON value the one canonical way."""
    # Half a character cannot be UTF-8; it is kept as it is, because a fingerprint must not fail on it.
    return "".join(_pieces(value, _MAX_JSON_DEPTH)).encode("utf-8", "surrogatepass")


def _pieces(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        raise ValueError("The value is nested too deeply.")
    match value:
        case None | bool() | str():
            yield json.dumps(value, ensure_ascii=False)
        case int():
            yield str(int(value))
        case float():
            yield _number(value)
        case list() | tuple():
            yield from _list(cast("list[Any]", value), depth - 1)
        case dict():
            yield from _object(cast("dict[str, Any]", value), depth - 1)
        case _:
            raise TypeError(f"{type(value).__name__} is not JSON.")


def _list(value: list[Any], depth: int) -> Iterator[str]:
    for index, inner in enumerate(value):
        yield "," if index else "["
        yield from _pieces(inner, depth)
    yield "]" if value else "[]"


def _object(value: dict[str, Any], depth: int) -> Iterator[str]:
    # The RFC sorts by UTF-16 units, which differs from code points beyond the first plane.
    names = sorted(value, key=lambda name: name.encode("utf-16-be", "surrogatepass"))
    for index, name in enumerate(names):
        yield "," if index else "{"
        yield json.dumps(name, ensure_ascii=False)
        yield ":"
        yield from _pieces(value[name], depth)
    yield "}" if value else "{}"


def _number(value: float) -> str:
    if value in {float("inf"), float("-inf")} or value != value:  # noqa: PLR0124 - only NaN differs from itself
        raise ValueError("A number that is not finite is not JSON.")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + cast("int", exponent)
    return ("-" if sign else "") + _spell(text, point)


def _spell(digits: str, point: int) -> str:
    """Write digits with the decimal point after so many of them, as ECMAScript does."""
    if _PLAIN_FROM < point <= 0:
        return f"0.{'0' * -point}{digits}"
    if 0 < point <= _PLAIN_TO:
        whole = digits.ljust(point, "0")
        return whole if len(digits) <= point else f"{digits[:point]}.{digits[point:]}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{fraction}e{point - 1:+d}"


_MISSING: Any = object()
_WORDS = frozenset({"title", "description", "$comment", "examples", "deprecated", "icons"})
#: Nothing that is checked depends on these, but what is sent or shown does.
_HINTS = frozenset({"default", "format", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"})
_UPPER = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_LOWER = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_MAX_DEPTH = 32


class Grade(IntEnum):
    """How much a change matters; the greater, the more."""

    SAME = 0
    #: Only texts for people and models: harmless to programs, and a way to mislead a model.
    WORDING = 1
    WIDENED = 2
    NARROWED = 3
    #: Valid calls or readers break, or the effect is unknown.
    BREAKING = 4
    #: Another tool, whatever it looks like.
    RENAMED = 5


@dataclass(frozen=True, slots=True)
class SchemaChange:
    """One difference: where, and how much it matters."""

    pointer: str
    grade: Grade
    message: str

    def to_dict(self) -> dict[str, str]:
        """Return the wire form."""
        return {"pointer": self.pointer, "grade": self.grade.name.lower(), "message": self.message}


@dataclass(frozen=True, slots=True)
class DefinitionDiff:
    """All differences between two definitions."""

    changes: tuple[SchemaChange, ...]

    @property
    def grade(self) -> Grade:
        """The highest grade of all changes."""
        return max((change.grade for change in self.changes), default=Grade.SAME)

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form."""
        return {"grade": self.grade.name.lower(), "changes": [change.to_dict() for change in self.changes]}


def diff_definitions(before: Mapping[str, Any], after: Mapping[str, Any]) -> DefinitionDiff:
    """Compare two definitions of a tool, as its server gave them."""
    return DefinitionDiff(tuple(_definition(before, after)))


def renames(
    before: Mapping[str, Mapping[str, Any]], after: Mapping[str, Mapping[str, Any]]
) -> dict[str, str]:
    """Find the tools that seem to have got another name: gone here, new there, and otherwise alike."""
    gone = {_unnamed(tool): name for name, tool in before.items() if name not in after}
    new = {name: _unnamed(tool) for name, tool in after.items() if name not in before}
    return {gone[body]: name for name, body in new.items() if body in gone}


def _unnamed(tool: Mapping[str, Any]) -> bytes:
    return canonical_json({key: value for key, value in tool.items() if key != "name"})


def _definition(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SchemaChange]:
    for key in sorted({*before, *after}):
        old, new = before.get(key, _MISSING), after.get(key, _MISSING)
        if _equal(old, new):
            continue
        pointer = f"/{escape(key)}"
        match key:
            case "name":
                yield SchemaChange(pointer, Grade.RENAMED, "the name is another")
            case "inputSchema":
                yield from _Comparison(is_input=True).schemas(pointer, _or_any(old), _or_any(new))
            case "outputSchema":
                yield from _output(pointer, old, new)
            case _ if key in _WORDS:
                yield SchemaChange(pointer, Grade.WORDING, "the text is another")
            case _:
                yield SchemaChange(pointer, Grade.BREAKING, "what the server says about the tool is another")


def _output(pointer: str, old: Any, new: Any) -> Iterator[SchemaChange]:
    if old is _MISSING or new is _MISSING:
        message = "an output is declared now" if old is _MISSING else "the output is no longer declared"
        yield SchemaChange(pointer, Grade.BREAKING, message)
    else:
        yield from _Comparison(is_input=False).schemas(pointer, old, new)


def _equal(first: Any, other: Any) -> bool:
    if first is _MISSING or other is _MISSING:
        return first is other
    return canonical_json(first) == canonical_json(other)


def _or_any(schema: Any) -> Any:
    return True if schema is _MISSING else schema


class _Comparison:
    """Compares schemas of one side of a call; the caller fills an input and reads an output."""

    __slots__ = ("is_input",)

    def __init__(self, *, is_input: bool) -> None:
        self.is_input = is_input

    def schemas(self, pointer: str, old: Any, new: Any) -> Iterator[SchemaChange]:
        if _equal(old, new):
            return
        if not isinstance(old, dict) or not isinstance(new, dict) or pointer.count("/") > _MAX_DEPTH * 2:
            yield SchemaChange(pointer, _boolean_grade(old, new), "the whole schema is another")
            return
        before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
        for keyword in sorted({*before, *after}):
            pair = before.get(keyword, _MISSING), after.get(keyword, _MISSING)
            if not _equal(*pair):
                yield from self.keyword(f"{pointer}/{escape(keyword)}", keyword, pair, after=after)

    def keyword(
        self, pointer: str, keyword: str, pair: tuple[Any, Any], *, after: dict[str, Any]
    ) -> Iterator[SchemaChange]:
        old, new = pair
        match keyword:
            case _ if keyword in _WORDS:
                yield SchemaChange(pointer, Grade.WORDING, "the text is another")
            case _ if keyword in _HINTS:
                yield SchemaChange(pointer, Grade.NARROWED, f"'{keyword}' is another")
            case _ if keyword in _UPPER or keyword in _LOWER:
                yield SchemaChange(
                    pointer, _limit_grade(keyword, old, new), f"the limit '{keyword}' is another"
                )
            case "type" | "enum":
                yield self.set_change(pointer, keyword, (old, new))
            case "required":
                yield from self.required(pointer, _names(old), _names(new))
            case "properties":
                yield from self.properties(pointer, (_fields(old), _fields(new)), after)
            case "additionalProperties":
                yield from self.schemas(pointer, _or_any(old), _or_any(new))
            case "items" if isinstance(old, dict) and isinstance(new, dict):
                yield from self.schemas(pointer, old, new)
            case "$defs" | "definitions":
                yield from self.definitions(pointer, _fields(old), _fields(new))
            case _:
                yield SchemaChange(pointer, Grade.BREAKING, f"'{keyword}' is another")

    @staticmethod
    def set_change(pointer: str, keyword: str, pair: tuple[Any, Any]) -> SchemaChange:
        """Judge a set of allowed types or values; a missing one allows everything."""
        old, new = _set_of(pair[0]), _set_of(pair[1])
        if old is None or (new is not None and new < old):
            return SchemaChange(pointer, Grade.NARROWED, f"'{keyword}' allows less")
        if new is None or old < new:
            return SchemaChange(pointer, Grade.WIDENED, f"'{keyword}' allows more")
        return SchemaChange(pointer, Grade.BREAKING, f"'{keyword}' allows something else")

    def required(self, pointer: str, old: frozenset[str], new: frozenset[str]) -> Iterator[SchemaChange]:
        # A caller breaks on what it must send now, a reader on what it can no longer count on.
        added, dropped = (
            (Grade.BREAKING, Grade.WIDENED) if self.is_input else (Grade.NARROWED, Grade.BREAKING)
        )
        for name in sorted(new - old):
            yield SchemaChange(pointer, added, f"{name!a} is required now")
        for name in sorted(old - new):
            yield SchemaChange(pointer, dropped, f"{name!a} is no longer required")

    def properties(
        self, pointer: str, pair: tuple[dict[str, Any], dict[str, Any]], after: dict[str, Any]
    ) -> Iterator[SchemaChange]:
        old, new = pair
        for name in sorted({*old, *new}):
            place = f"{pointer}/{escape(name)}"
            if name not in new:
                yield SchemaChange(place, Grade.BREAKING, f"the property {name!a} is gone")
            elif name not in old:
                # Where other properties were allowed before, declaring one narrows what it may be.
                grade = Grade.WIDENED if after.get("additionalProperties") is False else Grade.NARROWED
                yield SchemaChange(place, grade if self.is_input else Grade.WIDENED, f"{name!a} is new")
            else:
                yield from self.schemas(place, old[name], new[name])

    def definitions(self, pointer: str, old: dict[str, Any], new: dict[str, Any]) -> Iterator[SchemaChange]:
        for name in sorted({*old, *new}):
            place = f"{pointer}/{escape(name)}"
            if name in old and name in new:
                yield from self.schemas(place, old[name], new[name])
            else:
                # By itself it changes nothing; what refers to it is compared where it does.
                yield SchemaChange(place, Grade.WORDING, f"the definition {name!a} came or went")


def _boolean_grade(old: Any, new: Any) -> Grade:
    if new is True or new == {} or old is False:
        return Grade.WIDENED
    if old is True or old == {}:
        return Grade.NARROWED if new is not False else Grade.BREAKING
    return Grade.BREAKING


def _limit_grade(keyword: str, old: Any, new: Any) -> Grade:
    if old is _MISSING:
        return Grade.NARROWED
    if new is _MISSING:
        return Grade.WIDENED
    if not (isinstance(old, int | float) and isinstance(new, int | float)):
        return Grade.BREAKING
    return Grade.WIDENED if (new > old) is (keyword in _UPPER) else Grade.NARROWED


def _set_of(value: Any) -> frozenset[bytes] | None:
    if value is _MISSING:
        return None
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    if "number" in values:
        # Every integer is a number, so that going from one to the other is no change of kind.
        values = [*values, "integer"]
    return frozenset(canonical_json(allowed) for allowed in values)


def _names(value: Any) -> frozenset[str]:
    return frozenset(map(str, cast("list[Any]", value))) if isinstance(value, list) else frozenset()


def _fields(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
