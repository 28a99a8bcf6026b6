"""What a stream's JSON Schema says about its top-level fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from headgate.model.declaration import Field, FieldKind
from headgate.model.ids import FieldName
from headgate.model.pointers import escape, unescape

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCES = ("$ref", "$dynamicRef")
_BY_TYPE = {
    "string": FieldKind.TEXT,
    "integer": FieldKind.INTEGER,
    "number": FieldKind.NUMBER,
    "boolean": FieldKind.BOOLEAN,
}
_BY_FORMAT = {"date": FieldKind.DATE, "date-time": FieldKind.DATE_TIME}
_MAX_HOPS = 16


def read_fields(schema: Mapping[str, Any]) -> dict[FieldName, Field]:
    """List the declared top-level fields with the way their values compare."""
    properties = cast("Mapping[str, Any]", schema.get("properties", {}))
    required = set(cast("list[str]", schema.get("required", [])))
    fields: dict[FieldName, Field] = {}
    for text, declared in properties.items():
        # A property may also be just true or false, which says nothing about its type.
        own = cast("Mapping[str, Any]", declared if isinstance(declared, Mapping) else {})
        name = FieldName(text)
        effective = follow(own, schema)
        fields[name] = Field(name, kind_of(effective), types_of(effective), own, required=text in required)
    return fields


def types_of(schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the JSON types that a schema names, if it names any."""
    declared = schema.get("type", ())
    return (declared,) if isinstance(declared, str) else tuple(cast("list[str]", declared))


def kind_of(schema: Mapping[str, Any]) -> FieldKind:
    """Return how values compare; values of several types are not comparable."""
    types = set(types_of(schema)) - {"null"}
    if types == {"integer", "number"}:
        return FieldKind.NUMBER
    if len(types) != 1:
        return FieldKind.JSON
    kind = _BY_TYPE.get(types.pop(), FieldKind.JSON)
    return _BY_FORMAT.get(str(schema.get("format")), kind) if kind is FieldKind.TEXT else kind


def follow(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Follow a chain of local references to the schema they lead to; a loop leads nowhere."""
    for _ in range(_MAX_HOPS):
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        found = _at_pointer(root, reference)
        if found is None:
            return {}
        schema = found
    return {}


def references(value: object, pointer: str = "") -> Iterator[tuple[str, object]]:
    """Walk a schema and give every reference in it with the place where it stands."""
    for key, child in children(value):
        place = f"{pointer}/{escape(key)}"
        if key in _REFERENCES:
            yield place, child
        else:
            yield from references(child, place)


def children(value: object) -> list[tuple[str, object]]:
    """Return the members of an object or the items of an array, each with its key."""
    if isinstance(value, Mapping):
        return list(cast("Mapping[str, object]", value).items())
    if isinstance(value, list):
        return [(str(index), child) for index, child in enumerate(cast("list[object]", value))]
    return []


def _at_pointer(root: Mapping[str, Any], reference: str) -> Mapping[str, Any] | None:
    if not reference.startswith("#"):
        return None
    found: object = root
    for part in reference[1:].split("/")[1:]:
        key = unescape(part)
        if not isinstance(found, Mapping) or key not in found:
            return None
        found = cast("Mapping[str, object]", found)[key]
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else None
