"""The shape of a source-declaration document, as it comes from outside.

Only the shape: which members there are and what type they have. What the members mean to each other is
checked in headgate.schema.declare.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, cast

import pydantic
from pydantic import BaseModel, ConfigDict, StringConstraints

from headgate.model.declaration import Field, FieldKind
from headgate.model.ids import FieldName
from headgate.model.pointers import escape, unescape

Text = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
Names = Annotated[list[Text], pydantic.Field(min_length=1)]


class _DocumentPart(BaseModel):
    # Built at the first use, so defaults come from factories: most processes read no declaration from outside.
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class SourceDocument(_DocumentPart):
    """Which source is declared."""

    kind: Literal["connector", "provider_native"]
    id: Text


class PublisherDocument(_DocumentPart):
    """Who wrote the declaration."""

    id: Text


class SourceDisplayDocument(_DocumentPart):
    """How people know the source."""

    name: Text


class StreamDisplayDocument(_DocumentPart):
    """What an owner reads about a stream before consenting."""

    label: str = ""
    detail: str = ""


class SelectionDocument(_DocumentPart):
    """How far a request may narrow a stream."""

    fields: bool
    resources: bool


class ViewDocument(_DocumentPart):
    """A named set of fields."""

    id: Text
    label: Text
    fields: Names


class RelationshipDocument(_DocumentPart):
    """A child stream."""

    name: Text
    stream: Text
    foreign_key: Text
    cardinality: Literal["has_many", "has_one"]


class ExpandDocument(_DocumentPart):
    """A relationship that reads may follow."""

    name: Text
    default_limit: int | None = None
    max_limit: int | None = None


class SearchDocument(_DocumentPart):
    """Fields that search looks into."""

    lexical_fields: list[Text] = []
    semantic_fields: list[Text] = []


class AggregationsDocument(_DocumentPart):
    """Fields that may be counted, added up and grouped by."""

    count: Literal[True] | None = None
    sum: list[Text] = []
    min: list[Text] = []
    max: list[Text] = []
    count_distinct: list[Text] = []
    group_by: list[Text] = []
    group_by_time: list[Text] = []


class QueryDocument(_DocumentPart):
    """What may be asked of a stream."""

    range_filters: dict[Text, list[Literal["gte", "gt", "lte", "lt"]]] = {}
    expand: list[ExpandDocument] = []
    search: SearchDocument = pydantic.Field(default_factory=SearchDocument)
    aggregations: AggregationsDocument | None = None


class LineDocument(_DocumentPart):
    """The fields that say in one line what a record is."""

    time: Text | None = None
    who: Annotated[list[Text], pydantic.Field(max_length=2)] = []
    where: Text | None = None
    amount: Text | None = None
    unit: Text | None = None
    title: Text | None = None
    text: Text | None = None
    quoted: Text | None = None


class StreamDocument(_DocumentPart):
    name: Text
    semantics: Literal["append_only", "mutable_state"]
    json_schema: dict[str, Any] = pydantic.Field(alias="schema")
    primary_key: Names
    selection: SelectionDocument
    description: str = ""
    display: StreamDisplayDocument = pydantic.Field(default_factory=StreamDisplayDocument)
    cursor_field: Text | None = None
    consent_time_field: Text | None = None
    views: list[ViewDocument] = []
    relationships: list[RelationshipDocument] = []
    query: QueryDocument = pydantic.Field(default_factory=QueryDocument)
    line: LineDocument = pydantic.Field(default_factory=LineDocument)
    times: Text | None = None
    repeats: Text | None = None


class PresetStreamDocument(_DocumentPart):
    name: Text
    view: Text | None = None
    fields: Names | None = None


class PresetDocument(_DocumentPart):
    """A ready choice of streams."""

    id: Text
    label: str = ""
    streams: Annotated[list[PresetStreamDocument], pydantic.Field(min_length=1)]


class DeclarationDocument(_DocumentPart):
    """The whole document."""

    protocol_version: Literal["0.1.0"]
    source: SourceDocument
    declaration_version: Text
    publisher: PublisherDocument
    display: SourceDisplayDocument
    streams: Annotated[list[StreamDocument], pydantic.Field(min_length=1)]
    selection_presets: list[PresetDocument] = []
    extensions: dict[Text, Any] = {}


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
        target = _at_pointer(root, reference)
        if target is None:
            return {}
        schema = target
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
    node: object = root
    for part in reference[1:].split("/")[1:]:
        key = unescape(part)
        if not isinstance(node, Mapping) or key not in node:
            return None
        node = cast("Mapping[str, object]", node)[key]
    return cast("Mapping[str, Any]", node) if isinstance(node, Mapping) else None
