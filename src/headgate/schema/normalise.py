"""Bring a value into the form its schema declares, without inventing anything.

Declared properties are kept, forbidden ones dropped, declared defaults filled in. Nothing is converted and
nothing made up: what is missing or wrong stays so and is reported. The given value is never changed.
"""

from __future__ import annotations

import copy
from enum import StrEnum
from typing import Any, cast

from headgate.model.pointers import escape
from headgate.schema.check import CompiledSchema, compile_schema
from headgate.schema.guard import matches
from headgate.schema.keywords import resolve
from headgate.schema.value import Issue, copy_json

_MAX_REFERENCES = 64
#: JSON nodes in all defaults that are filled in. A default may hold places for further defaults, and every
#: item of a long list may lack a large one; a schema that multiplies them is stopped here.
_MAX_DEFAULTS = 300_000
#: The weight of a default inside a default, for each level; ordinary schemas hardly have them.
_NESTED_DEFAULT = 50
#: Keywords beside which an undeclared property may be declared after all.
_COMPOSING = frozenset(
    {
        "allOf",
        "anyOf",
        "oneOf",
        "$ref",
        "if",
        "dependentSchemas",
        "unevaluatedProperties",
        "patternProperties",
    }
)


_CONTAINERS = frozenset({dict, list})


class Extras(StrEnum):
    """What becomes of properties that the schema does not declare."""

    #: Dropped only where the schema forbids them.
    KEEP = "keep"
    #: Dropped too where the schema says nothing about them.
    DROP = "drop"
    #: Never dropped.
    ALL = "all"


class _TooMany(Exception):
    """The schema fills in more defaults than are allowed."""


def normalise(
    compiled: CompiledSchema, value: object, *, extras: Extras = Extras.KEEP
) -> tuple[Any, tuple[Issue, ...]]:
    """Return the normalised value and what is still wrong with it."""
    plain, problem = copy_json(value)
    if problem is not None:
        return value, (problem,)
    if not compiled.shapes and extras is not Extras.DROP:
        return plain, compiled.issues(plain)
    try:
        result = _Normalisation(compiled, extras).node(("", compiled.schema), plain)
    except _TooMany:
        return plain, (Issue("$", "default", "has too many places for a default"),)
    return result, compiled.issues(result)


def fill_defaults(compiled: CompiledSchema, value: Any) -> Any:
    """Fill the declared defaults into a valid value from ``copy_json``; nothing is dropped."""
    if not compiled.has_defaults:
        return value
    try:
        return _Normalisation(compiled, Extras.ALL).node(("", compiled.schema), value)
    except _TooMany:
        return value


def normalise_output(
    schema: Any, value: object, *, extras: Extras = Extras.KEEP
) -> tuple[Any, tuple[Issue, ...]]:
    """Normalise one value to one schema; to normalise many values, compile the schema."""
    return normalise(compile_schema(schema), value, extras=extras)


def _size(value: Any) -> int:
    """Count the nodes of a JSON value."""
    match value:
        case dict():
            return 1 + sum(map(_size, cast("dict[str, Any]", value).values()))
        case list():
            return 1 + sum(map(_size, cast("list[Any]", value)))
        case _:
            return 1


def _has_default(schema: Any) -> bool:
    return type(schema) is dict and "default" in schema


class _Normalisation:
    """One normalisation. It works on a copy, so it may give parts of what it was given."""

    __slots__ = ("compiled", "defaults", "extras", "inside_defaults", "seen", "sizes")

    def __init__(self, compiled: CompiledSchema, extras: Extras) -> None:
        self.compiled = compiled
        self.extras = extras
        self.defaults = 0
        self.sizes: dict[str, int] = {}
        self.inside_defaults: list[str] = []
        # A recursive union would ask for the same place again and again, doubling with each level. The
        # values are kept beside the results, so that an id stands for one value as long as it is asked for.
        self.seen: dict[tuple[str, int], tuple[Any, Any]] = {}

    def node(self, at: tuple[str, Any], value: Any, *, references: int = 0) -> Any:
        pointer, schema = at
        if type(schema) is not dict or type(value) not in _CONTAINERS or references > _MAX_REFERENCES:
            return value
        known = self.seen.get((pointer, id(value)))
        if known is not None:
            return known[1]
        result = self._node(pointer, cast("dict[str, Any]", schema), value, references=references)
        self.seen[pointer, id(value)] = (value, result)
        return result

    def _node(self, pointer: str, schema: dict[str, Any], value: Any, *, references: int) -> Any:
        result = value
        if isinstance(schema.get("$ref"), str):
            target = resolve(self.compiled.schema, schema["$ref"], self.compiled.anchors)
            if target is not None:
                result = self.node(target, result, references=references + 1)
        if isinstance(result, dict):
            result = self.properties(pointer, schema, cast("dict[str, Any]", result))
        elif isinstance(result, list):
            result = self.items(pointer, schema, cast("list[Any]", result))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                result = self.branch(f"{pointer}/{keyword}", schema[keyword], result, references=references)
        return result

    def properties(self, pointer: str, schema: dict[str, Any], value: dict[str, Any]) -> dict[str, Any]:
        declared: dict[str, Any] = schema.get("properties") or {}
        result: dict[str, Any] = {}
        for name, inner in value.items():
            if name in declared and type(inner) not in _CONTAINERS:
                result[name] = inner
            elif name in declared:
                place = f"{pointer}/properties/{escape(name)}"
                result[name] = self.node((place, declared[name]), inner)
            elif self.is_kept(schema, name):
                more = (f"{pointer}/additionalProperties", schema.get("additionalProperties"))
                result[name] = inner if self.has_pattern(schema, name) else self.node(more, inner)
        for name, inner in declared.items():
            if name not in value and _has_default(inner):
                self.fill(result, name, (f"{pointer}/properties/{escape(name)}", inner))
        return result

    def fill(self, result: dict[str, Any], name: str, at: tuple[str, Any]) -> None:
        """Put in a declared default, unless it stands inside itself."""
        pointer, schema = at
        if pointer in self.inside_defaults:
            return
        if pointer not in self.sizes:
            self.sizes[pointer] = _size(schema["default"])
        self.defaults += self.sizes[pointer] + _NESTED_DEFAULT * len(self.inside_defaults)
        if self.defaults > _MAX_DEFAULTS:
            raise _TooMany
        self.inside_defaults.append(pointer)
        result[name] = self.node(at, copy.deepcopy(schema["default"]))
        self.inside_defaults.pop()

    def is_kept(self, schema: dict[str, Any], name: str) -> bool:
        if self.extras is Extras.ALL or self.has_pattern(schema, name):
            return True
        more = schema.get("additionalProperties")
        if more is None and self.extras is Extras.DROP and "properties" in schema:
            return not _COMPOSING.isdisjoint(schema)
        return more is not False

    def has_pattern(self, schema: dict[str, Any], name: str) -> bool:
        engine = self.compiled.engine
        return any(matches(pattern, name, engine) for pattern in schema.get("patternProperties", ()))

    def items(self, pointer: str, schema: dict[str, Any], value: list[Any]) -> list[Any]:
        names = (
            ("items", "additionalItems")
            if isinstance(schema.get("items"), list)
            else ("prefixItems", "items")
        )
        first: list[Any] = schema.get(names[0], [])
        rest = (f"{pointer}/{names[1]}", schema.get(names[1]))
        head = [
            self.node((f"{pointer}/{names[0]}/{index}", inner_schema), inner)
            for index, (inner_schema, inner) in enumerate(zip(first, value, strict=False))
        ]
        return head + [self.node(rest, inner) for inner in value[len(head) :]]

    def branch(self, pointer: str, branches: list[Any], value: Any, *, references: int) -> Any:
        """Take the first alternative that the normalised value fits; none leaves the value as it is."""
        for index, schema in enumerate(branches):
            place = f"{pointer}/{index}"
            candidate = self.node((place, schema), value, references=references + 1)
            if self.compiled.is_valid_at(place, candidate):
                return candidate
        return value
