"""Force a value into its schema, as ``Value.Cast`` of TypeBox does.

Parts that do not fit are replaced by invented values, so that a caller cannot distinguish them from a server's
data. It runs only if ``cast="typebox"`` is chosen; the default is ``normalise``.
"""

from __future__ import annotations

import copy
from typing import Any, cast

from headgate.model.pointers import escape
from headgate.schema.check import CompiledSchema
from headgate.schema.keywords import resolve
from headgate.schema.value import Issue, copy_json

_MAX_STEPS = 100_000
_MAX_DEPTH = 64
_MAX_MADE = 10_000
_UNIONS = ("anyOf", "oneOf")
_PLAIN: dict[str, Any] = {"boolean": False, "null": None}


class _Impossible(Exception):
    """No value can be invented for this schema within the limits."""


def cast_value(compiled: CompiledSchema, value: object) -> tuple[Any, tuple[Issue, ...]]:
    """Return a value forced into the schema and its remaining issues; one that cannot be forced is unchanged."""
    plain, problem = copy_json(value)
    if problem is not None:
        return value, (problem,)
    try:
        result = _Cast(compiled).node(("", compiled.schema), plain, 0)
    except _Impossible:
        result = plain
    return result, compiled.issues(result)


class _Cast:
    """One cast. It works on a copy, so it may give parts of what it was given."""

    __slots__ = ("compiled", "made", "steps")

    def __init__(self, compiled: CompiledSchema) -> None:
        self.compiled = compiled
        self.steps = 0
        self.made = 0

    def node(self, at: tuple[str, Any], value: Any, depth: int) -> Any:
        pointer, schema = self._entered(at, depth)
        if type(schema) is not dict or self.compiled.is_valid_at(pointer, value):
            return value
        fields = cast("dict[str, Any]", schema)
        for keyword in _UNIONS:
            if keyword in fields:
                return self._variant(f"{pointer}/{keyword}", fields, value, depth)
        if isinstance(value, dict) and _describes(fields, "object"):
            return self._object(pointer, fields, cast("dict[str, Any]", value), depth)
        if isinstance(value, list) and _describes(fields, "array"):
            return self._array(pointer, fields, cast("list[Any]", value), depth)
        return self.make((pointer, fields), depth)

    def make(self, at: tuple[str, Any], depth: int) -> Any:
        """Invent a value: the default, or the simplest one of the type."""
        pointer, schema = self._entered(at, depth)
        self._count_made(1)
        if type(schema) is not dict:
            raise _Impossible
        fields = cast("dict[str, Any]", schema)
        for keyword in ("default", "const"):
            if keyword in fields:
                return copy.deepcopy(fields[keyword])
        if fields.get("enum"):
            return copy.deepcopy(fields["enum"][0])
        for keyword in _UNIONS:
            if keyword in fields:
                return self.make((f"{pointer}/{keyword}/0", fields[keyword][0]), depth + 1)
        return self._plainest(pointer, fields, depth)

    def _plainest(self, pointer: str, schema: dict[str, Any], depth: int) -> Any:
        named: Any = schema.get("type")
        kind: Any = cast("list[Any]", named)[0] if isinstance(named, list) else named
        match kind:
            case "string" if "pattern" not in schema and "format" not in schema:
                length = int(schema.get("minLength", 0))
                self._count_made(length)
                return " " * length
            case "number" | "integer":
                return schema.get("minimum", 0)
            case "boolean" | "null":
                return _PLAIN[kind]
            case "array" if not schema.get("uniqueItems") and "contains" not in schema:
                return self._array(pointer, schema, [], depth)
            case "object":
                return self._object(pointer, schema, {}, depth)
            case _:
                raise _Impossible

    def _object(self, pointer: str, schema: dict[str, Any], value: dict[str, Any], depth: int) -> Any:
        declared: dict[str, Any] = schema.get("properties") or {}
        required: list[str] = schema.get("required") or []
        result: dict[str, Any] = {}
        for name, inner in declared.items():
            place = (f"{pointer}/properties/{escape(name)}", inner)
            if name in value:
                result[name] = self.node(place, value[name], depth + 1)
            elif name in required:
                result[name] = self.make(place, depth + 1)
        more = schema.get("additionalProperties")
        if isinstance(more, dict):
            place = (f"{pointer}/additionalProperties", cast("Any", more))
            others = {name: inner for name, inner in value.items() if name not in declared}
            result |= {name: self.node(place, inner, depth + 1) for name, inner in others.items()}
        return result

    def _array(self, pointer: str, schema: dict[str, Any], value: list[Any], depth: int) -> list[Any]:
        least = int(schema.get("minItems", 0))
        self._count_made(max(0, least - len(value)))
        items = value[: int(schema.get("maxItems", len(value)))]
        first: list[Any] = schema.get("prefixItems") or []

        def place(index: int) -> tuple[str, Any]:
            if index < len(first):
                return f"{pointer}/prefixItems/{index}", first[index]
            return f"{pointer}/items", schema.get("items", True)

        result = [self.node(place(index), inner, depth + 1) for index, inner in enumerate(items)]
        return result + [self.make(place(index), depth + 1) for index in range(len(result), least)]

    def _variant(self, pointer: str, schema: dict[str, Any], value: Any, depth: int) -> Any:
        """Take the union's default, or force the value into the variant it is most like."""
        if "default" in schema:
            return copy.deepcopy(schema["default"])
        variants: list[Any] = schema[pointer.rpartition("/")[2]]
        places = [(f"{pointer}/{index}", variant) for index, variant in enumerate(variants)]
        best = max(places, key=lambda place: self._likeness(place, value, depth))
        return self.node(best, value, depth + 1)

    def _likeness(self, at: tuple[str, Any], value: Any, depth: int) -> int:
        pointer, schema = self._entered(at, depth)
        if type(schema) is not dict or not isinstance(value, dict):
            return 0
        fields, members = cast("dict[str, Any]", schema), cast("dict[str, Any]", value)
        declared: dict[str, Any] = fields.get("properties") or {}
        score = 0
        for name, inner in declared.items():
            if name in members:
                fits = self.compiled.is_valid_at(f"{pointer}/properties/{escape(name)}", members[name])
                # A constant that tags a variant outweighs everything else.
                is_tag = isinstance(inner, dict) and "const" in inner
                score += 1 + (fits * (1000 if is_tag else 1))
        return score

    def _entered(self, at: tuple[str, Any], depth: int) -> tuple[str, Any]:
        """Follow references within a budget, so that neither schema nor value can take long."""
        pointer, schema = at
        self.steps += 1
        for _ in range(_MAX_DEPTH):
            reference = cast("dict[str, Any]", schema).get("$ref") if isinstance(schema, dict) else None
            if not isinstance(reference, str):
                break
            target = resolve(self.compiled.schema, reference, self.compiled.anchors)
            if target is None:
                raise _Impossible
            pointer, schema = target
        if depth > _MAX_DEPTH or self.steps > _MAX_STEPS:
            raise _Impossible
        return pointer, cast("Any", schema)

    def _count_made(self, count: int) -> None:
        self.made += count
        if self.made > _MAX_MADE:
            raise _Impossible


def _describes(schema: dict[str, Any], kind: str) -> bool:
    named = schema.get("type")
    return kind in cast("list[Any]", named) if isinstance(named, list) else named == kind
