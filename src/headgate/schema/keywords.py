"""Which parts of a JSON Schema are schemas themselves, and which of them look at the same value.

The table of keywords for all of headgate.schema. A subschema *in place* applies to the same value as its parent;
any other applies to a part of it, so that each step through it consumes input.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import unquote

from headgate.model.pointers import escape, unescape

IN_PLACE_ONE = frozenset({"not", "if", "then", "else"})
IN_PLACE_LIST = frozenset({"allOf", "anyOf", "oneOf"})
IN_PLACE_MAP = frozenset({"dependentSchemas", "dependencies"})
PART_ONE = frozenset(
    {
        "items",
        "additionalItems",
        "additionalProperties",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contains",
        "propertyNames",
        "contentSchema",
    }
)
PART_LIST = frozenset({"items", "prefixItems"})
PART_MAP = frozenset({"properties", "patternProperties"})
DEFINITIONS = frozenset({"$defs", "definitions"})
REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
APPLICATORS = IN_PLACE_ONE | IN_PLACE_LIST | IN_PLACE_MAP | PART_ONE | PART_LIST | PART_MAP | REFERENCES


@dataclass(frozen=True, slots=True)
class Subschema:
    """A schema inside a schema: its pointer, and whether it applies to the same value."""

    keyword: str
    pointer: str
    schema: Any
    in_place: bool = False


def subschemas(schema: Mapping[str, Any], pointer: str) -> Iterator[Subschema]:
    """Walk the direct subschemas of a schema, references excepted."""
    for keyword, value in schema.items():
        here = f"{pointer}/{escape(keyword)}"
        in_place = keyword in IN_PLACE_ONE or keyword in IN_PLACE_LIST or keyword in IN_PLACE_MAP
        if is_schema(value) and (keyword in IN_PLACE_ONE or keyword in PART_ONE):
            yield Subschema(keyword, here, value, in_place)
        elif isinstance(value, list) and (keyword in IN_PLACE_LIST or keyword in PART_LIST):
            for index, inner in enumerate(cast("list[Any]", value)):
                yield Subschema(keyword, f"{here}/{index}", inner, in_place)
        elif isinstance(value, dict) and keyword in IN_PLACE_MAP | PART_MAP | DEFINITIONS:
            for name, inner in cast("dict[str, Any]", value).items():
                if is_schema(inner):
                    yield Subschema(keyword, f"{here}/{escape(name)}", inner, in_place)


def is_schema(value: object) -> bool:
    """Return whether a value can be a schema at all."""
    return isinstance(value, dict | bool)


def resolve(root: Any, reference: str, anchors: Mapping[str, str]) -> tuple[str, Any] | None:
    """Find what a local reference points at, as a pointer and a schema; None when nothing is there."""
    fragment = unquote(reference.removeprefix("#"))
    pointer = fragment if not fragment or fragment.startswith("/") else anchors.get(fragment)
    if pointer is None:
        return None
    node = root
    for step in pointer.split("/")[1:]:
        node = _step(node, unescape(step))
    return (pointer, node) if is_schema(node) else None


def _step(container: Any, step: str) -> Any:
    if isinstance(container, dict):
        return cast("dict[str, Any]", container).get(step)
    if isinstance(container, list) and step.isdecimal():
        items = cast("list[Any]", container)
        return items[int(step)] if int(step) < len(items) else None
    return None


def anchors_of(schema: Any) -> dict[str, str]:
    """Collect the named places of a schema."""
    anchors: dict[str, str] = {}
    for pointer, node in _nodes(schema):
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(node.get(keyword), str):
                anchors.setdefault(node[keyword], pointer)
    return anchors


def nodes_of(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Walk a schema and every schema inside it."""
    return (node for _, node in _nodes(schema))


def _nodes(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    queue: list[tuple[str, Any]] = [("", schema)]
    while queue:
        pointer, node = queue.pop()
        if isinstance(node, dict):
            fields = cast("dict[str, Any]", node)
            yield pointer, fields
            queue.extend((sub.pointer, sub.schema) for sub in subschemas(fields, pointer))
