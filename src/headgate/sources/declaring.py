"""Write declarations alike: what a field's type allows to be asked follows from the type and from a few words."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from headgate.model.declaration import ZONE_UNKNOWN
from headgate.model.kinds import PUBLISHER

TEXT: dict[str, Any] = {"type": ["string", "null"]}
INTEGER: dict[str, Any] = {"type": ["integer", "null"]}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
BOOLEAN: dict[str, Any] = {"type": ["boolean", "null"]}
TIME: dict[str, Any] = {"type": ["string", "null"], "format": "date-time"}
DATE: dict[str, Any] = {"type": ["string", "null"], "format": "date"}
LIST: dict[str, Any] = {"type": ["array", "null"], "items": {"type": "string"}}
OBJECT: dict[str, Any] = {"type": ["object", "null"]}
#: The types that an owner can name.
TYPES: Mapping[str, Mapping[str, Any]] = {
    "text": TEXT,
    "integer": INTEGER,
    "number": NUMBER,
    "boolean": BOOLEAN,
    "date": DATE,
    "date-time": TIME,
    "list": LIST,
    "object": OBJECT,
}
#: A field of type ``file`` refers to a stored file.
_FIELD_TYPES = {**TYPES, "time": TIME, "file": OBJECT}

_RANGE = ["gte", "gt", "lte", "lt"]


def fields(names: str, **descriptions: str) -> dict[str, Mapping[str, Any]]:
    """Make the schemas of fields from their names, in order: ``"id title sent_at:time"``; one without a type is text."""
    schemas: dict[str, Mapping[str, Any]] = {}
    for text in names.split():
        name, _, kind = text.partition(":")
        described = {"description": descriptions[name]} if name in descriptions else {}
        schemas[name] = {**_FIELD_TYPES[kind or "text"], **described}
    return schemas


def all_but(schemas: Mapping[str, Any], *names: str) -> tuple[str, ...]:
    """Return the names of fields without some, for a view."""
    return tuple(name for name in schemas if name not in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSpec:
    """One stream of a source, as its author thinks of it."""

    name: str
    #: For people: "Messages", and one sentence on what a record is.
    label: str
    detail: str
    #: The schemas by field; the key's come first.
    fields: Mapping[str, Mapping[str, Any]]
    key: Sequence[str] = ("id",)
    #: The field that orders records and bounds grants in time.
    time: str | None = None
    title: str | None = None
    #: Whose clock its times are of.
    times: str = ZONE_UNKNOWN
    #: Fields that search looks into.
    words: Sequence[str] = ()
    #: Fields that records are grouped by.
    groups: Sequence[str] = ()
    #: Named sets of fields for grants: id, label, fields.
    views: Sequence[tuple[str, str, Sequence[str]]] = ()
    #: Child streams: name of the relationship and the stream, and the child's field with this stream's key.
    children: Sequence[tuple[str, str]] = ()
    is_append_only: bool = False
    #: The stream that has all its searched words as well, in fields of the same names.
    repeats: str | None = None


def declaration(source: str, title: str, streams: Sequence[StreamSpec]) -> dict[str, Any]:
    """Make the document of a source; its version follows from its content."""
    body: dict[str, Any] = {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"{PUBLISHER}/{source}"},
        "publisher": {"id": PUBLISHER},
        "display": {"name": title},
        "streams": [_stream(spec) for spec in streams],
    }
    digest = hashlib.sha256(msgspec.json.encode(body, order="sorted")).hexdigest()
    return {**body, "declaration_version": digest[:12]}


def _stream(spec: StreamSpec) -> dict[str, Any]:
    times = (
        {"cursor_field": spec.time, "consent_time_field": spec.time, "times": spec.times} if spec.time else {}
    )
    expand = [{"name": stream, "default_limit": 10, "max_limit": 50} for stream, _ in spec.children]
    return {
        "name": spec.name,
        "semantics": "append_only" if spec.is_append_only else "mutable_state",
        "schema": _schema(spec),
        "primary_key": list(spec.key),
        "selection": {"fields": True, "resources": True},
        "display": {"label": spec.label, "detail": spec.detail},
        "views": [{"id": view, "label": label, "fields": list(fields)} for view, label, fields in spec.views],
        "relationships": [
            {"name": stream, "stream": stream, "foreign_key": field, "cardinality": "has_many"}
            for stream, field in spec.children
        ],
        "query": {
            "range_filters": {name: list(_RANGE) for name in _of(spec, _is_ordered)},
            "search": {"lexical_fields": list(spec.words)},
            "aggregations": _aggregations(spec),
            "expand": expand,
        },
        **times,
        **({"repeats": spec.repeats} if spec.repeats else {}),
    }


def _schema(spec: StreamSpec) -> dict[str, Any]:
    properties = {name: dict(schema) for name, schema in spec.fields.items()}
    if spec.title:
        properties[spec.title] = {**properties[spec.title], "x_pdpp_role": "primary-title"}
    for name in spec.key:
        properties[name] = {**properties[name], "type": _types(properties[name])[0]}
    return {"type": "object", "properties": properties, "required": list(spec.key)}


def _aggregations(spec: StreamSpec) -> dict[str, Any]:
    numbers, ordered = _of(spec, _is_number), _of(spec, _is_ordered)
    return {
        "count": True,
        "sum": numbers,
        "min": ordered,
        "max": ordered,
        "count_distinct": list(spec.groups),
        "group_by": list(spec.groups),
        "group_by_time": _of(spec, _is_time),
    }


def _of(spec: StreamSpec, test: Any) -> list[str]:
    return [name for name, schema in spec.fields.items() if test(schema)]


def _types(schema: Mapping[str, Any]) -> list[str]:
    types = schema.get("type", [])
    return [types] if isinstance(types, str) else list(types)


def _is_number(schema: Mapping[str, Any]) -> bool:
    return not {"integer", "number"}.isdisjoint(_types(schema))


def _is_time(schema: Mapping[str, Any]) -> bool:
    return schema.get("format") in {"date", "date-time"}


def _is_ordered(schema: Mapping[str, Any]) -> bool:
    return _is_number(schema) or _is_time(schema)
