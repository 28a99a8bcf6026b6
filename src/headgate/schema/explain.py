"""Find where a value breaks its schema and which rule, in bounded time and without quoting it.

The validator's own list of errors grows without bound: a nested union multiplies it, and a million wrong items
make a million entries. This walk asks only yes-or-no questions and stops after a few answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, cast

import jsonschema_rs

from headgate.model.pointers import escape
from headgate.schema.guard import Engine, matches
from headgate.schema.keywords import APPLICATORS, resolve
from headgate.schema.value import Issue, child_path

MAX_ISSUES = 20
_LIMITS = {
    "minimum": "is less than {}",
    "maximum": "is greater than {}",
    "exclusiveMinimum": "is not greater than {}",
    "exclusiveMaximum": "is not less than {}",
    "minLength": "is shorter than {} characters",
    "maxLength": "is longer than {} characters",
    "minItems": "has fewer than {} items",
    "maxItems": "has more than {} items",
    "minProperties": "has fewer than {} properties",
    "maxProperties": "has more than {} properties",
    "multipleOf": "is not a multiple of {}",
}
_SENTENCES = {
    "enum": "is not one of the allowed values",
    "const": "is not the one allowed value",
    "pattern": "does not match the pattern",
    "uniqueItems": "has two equal items",
    "anyOf": "fits none of the alternatives",
    "oneOf": "does not fit exactly one of the alternatives",
    "not": "is of a kind that is not allowed",
    "false": "is not allowed here",
    "additionalProperties": "has a property that is not allowed",
    "items": "has more items than are allowed",
}


class ExplainableSchema(Protocol):
    """A compiled schema, as far as this walk needs it."""

    schema: Any
    anchors: dict[str, str]
    engine: Engine

    def is_valid_at(self, pointer: str, value: Any) -> bool:
        """Return whether a value fits the subschema at a JSON pointer."""
        ...


class _ValuePlace(NamedTuple):
    """A place in a value: the path that people read, and its JSON pointer."""

    path: str = "$"
    pointer: str = ""

    def child(self, step: str | int) -> _ValuePlace:
        return _ValuePlace(child_path(self.path, step), f"{self.pointer}/{escape(str(step))}")

    def issue(self, keyword: str, message: str | None = None) -> Issue:
        return Issue(
            self.path, keyword, message or _SENTENCES.get(keyword, f"breaks '{keyword}'"), self.pointer
        )


class _Enough(Exception):
    """The maximum number of issues is reached."""


class _IssueSearch:
    """One search for issues; no place is searched twice under the same subschema."""

    __slots__ = ("compiled", "found", "seen")

    def __init__(self, compiled: ExplainableSchema) -> None:
        self.compiled = compiled
        self.found: dict[Issue, None] = {}
        self.seen: set[tuple[str, str]] = set()

    def add(self, issue: Issue) -> None:
        self.found[issue] = None
        if len(self.found) == MAX_ISSUES:
            raise _Enough

    def node(self, at: tuple[str, Any], value: Any, place: _ValuePlace) -> bool:
        """Search a subschema; return whether the value breaks it."""
        pointer, schema = at
        if self.compiled.is_valid_at(pointer, value):
            return False
        if (pointer, place.pointer) in self.seen:
            return True
        self.seen.add((pointer, place.pointer))
        if not isinstance(schema, dict):
            self.add(place.issue("false"))
        elif not self.inside(pointer, cast("dict[str, Any]", schema), value=value, place=place):
            self.add(place.issue(_unexplained(cast("dict[str, Any]", schema))))
        return True

    def inside(self, pointer: str, node: dict[str, Any], *, value: Any, place: _ValuePlace) -> bool:
        is_explained = False
        for issue in _own_issues(node, value, place, engine=self.compiled.engine):
            self.add(issue)
            is_explained = True
        for step, inner, inner_value in _parts(self.compiled, pointer, node, value=value):
            is_explained |= self.node(inner, inner_value, place if step is None else place.child(step))
        for keyword in _broken_combinations(self.compiled, pointer, node, value=value):
            self.add(place.issue(keyword))
            is_explained = True
        return is_explained


def explain(compiled: ExplainableSchema, value: Any) -> tuple[Issue, ...]:
    """List the first issues of a value that does not fit."""
    walk = _IssueSearch(compiled)
    with suppress(_Enough):
        walk.node(("", compiled.schema), value, _ValuePlace())
    return tuple(walk.found)


def _own_issues(
    node: Mapping[str, Any], value: Any, place: _ValuePlace, *, engine: Engine
) -> Iterator[Issue]:
    """Ask the validator about the keywords that hold no schema."""
    own = {keyword: inner for keyword, inner in node.items() if keyword not in APPLICATORS}
    for name in ("$id", "$defs", "definitions", "$anchor", "$dynamicAnchor"):
        own.pop(name, None)
    validator = jsonschema_rs.validator_for(own, offline=True, pattern_options=engine.options)
    if validator.is_valid(value):
        return
    for error in validator.iter_errors(value):
        keyword = str(error.schema_path[-1]) if error.schema_path else error.kind.name
        issue = place.issue(keyword, _sentence(keyword, node, error))
        if keyword == "required":
            issue = replace(issue, pointer=place.child(str(error.kind.value)).pointer)
        yield issue


def _sentence(keyword: str, node: Mapping[str, Any], error: jsonschema_rs.ValidationError) -> str:
    if keyword == "type":
        kinds: str | list[str] = node["type"]
        return f"is not of type {kinds if isinstance(kinds, str) else ' or '.join(kinds)}"
    if keyword == "required":
        return f"lacks the property {ascii(str(error.kind.value))[:82]}"
    if keyword in _LIMITS:
        return _LIMITS[keyword].format(node.get(keyword))
    return _SENTENCES.get(keyword, f"breaks '{keyword}'")


def _parts(
    compiled: ExplainableSchema, pointer: str, node: dict[str, Any], *, value: Any
) -> Iterator[tuple[str | int | None, tuple[str, Any], Any]]:
    """List the subschemas that must hold, each with the part of the value it judges."""
    if isinstance(node.get("$ref"), str):
        target = resolve(compiled.schema, node["$ref"], compiled.anchors)
        if target is not None:
            yield None, target, value
    for index, inner in enumerate(node.get("allOf", ())):
        yield None, (f"{pointer}/allOf/{index}", inner), value
    if "if" in node:
        branch = "then" if compiled.is_valid_at(f"{pointer}/if", value) else "else"
        if branch in node:
            yield None, (f"{pointer}/{branch}", node[branch]), value
    if isinstance(value, dict):
        yield from _properties(pointer, node, cast("dict[str, Any]", value), engine=compiled.engine)
    elif isinstance(value, list):
        yield from _items(pointer, node, cast("list[Any]", value))


def _properties(
    pointer: str, node: dict[str, Any], value: dict[str, Any], *, engine: Engine
) -> Iterator[tuple[str | None, tuple[str, Any], Any]]:
    declared: dict[str, Any] = node.get("properties", {})
    patterns: dict[str, Any] = node.get("patternProperties", {})
    more = node.get("additionalProperties", True)
    for name, inner in value.items():
        matching = [pattern for pattern in patterns if matches(pattern, name, engine)]
        if name in declared:
            yield name, (f"{pointer}/properties/{escape(name)}", declared[name]), inner
        for pattern in matching:
            yield name, (f"{pointer}/patternProperties/{escape(pattern)}", patterns[pattern]), inner
        if name not in declared and not matching and isinstance(more, dict):
            yield name, (f"{pointer}/additionalProperties", more), inner
    for name, inner in node.get("dependentSchemas", {}).items():
        if name in value:
            yield None, (f"{pointer}/dependentSchemas/{escape(name)}", inner), value


def _items(
    pointer: str, node: dict[str, Any], value: list[Any]
) -> Iterator[tuple[int, tuple[str, Any], Any]]:
    names = ("items", "additionalItems") if isinstance(node.get("items"), list) else ("prefixItems", "items")
    # Before 2020-12 a list of items was what prefixItems is now.
    first: list[Any] = node.get(names[0], [])
    rest: Any = node.get(names[1], True)
    for index, inner in enumerate(value):
        if index < len(first):
            yield index, (f"{pointer}/{names[0]}/{index}", first[index]), inner
        elif isinstance(rest, dict):
            yield index, (f"{pointer}/{names[1]}", rest), inner


def _broken_combinations(
    compiled: ExplainableSchema, pointer: str, node: dict[str, Any], *, value: Any
) -> Iterator[str]:
    for keyword in ("anyOf", "oneOf"):
        if keyword in node:
            fitting = sum(
                compiled.is_valid_at(f"{pointer}/{keyword}/{index}", value)
                for index in range(len(node[keyword]))
            )
            if fitting == 0 or (keyword == "oneOf" and fitting > 1):
                yield keyword
    if "not" in node and compiled.is_valid_at(f"{pointer}/not", value):
        yield "not"
    if isinstance(value, dict) and node.get("additionalProperties") is False:
        patterns: dict[str, Any] = node.get("patternProperties", {})
        extra = cast("dict[str, Any]", value).keys() - node.get("properties", {}).keys()
        if any(not any(matches(pattern, name, compiled.engine) for pattern in patterns) for name in extra):
            yield "additionalProperties"


def _unexplained(node: Mapping[str, Any]) -> str:
    """Name the likeliest rule, when none of those asked one by one is broken."""
    rare = (
        "unevaluatedProperties",
        "unevaluatedItems",
        "contains",
        "propertyNames",
        "items",
        "additionalItems",
    )
    return next((keyword for keyword in rare if keyword in node), "schema")
