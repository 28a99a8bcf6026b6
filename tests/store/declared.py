"""What the stores under test hold: one connector whose streams have fields of every kind and every order."""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from headgate.model.declaration import SourceDeclaration
from headgate.model.ids import ConnectorKey, FieldName, StreamName
from headgate.schema.declare import read_declaration

DESK = ConnectorKey("desk")
NOTES, MARKS, PAGES, GAUGES, LOOSE = map(StreamName, ("notes", "marks", "pages", "gauges", "loose"))
#: A name that means itself, whatever a path, a quote or an escape would make of it.
ODD = FieldName('we"ird\\u0041 na.me~/(0)')
NOTE_FIELDS = tuple(
    FieldName(name)
    for name in (
        "id",
        "title",
        "body",
        "label",
        "code",
        "size",
        "weight",
        "done",
        "day",
        "at",
        "seen_at",
        "extra",
        "file",
        ODD,
    )
)
_TEXT = {"type": ["string", "null"]}
_TIME = {"type": ["string", "null"], "format": "date-time"}
_RANGE = ["gte", "gt", "lte", "lt"]
_SCALARS = ["title", "label", "size", "weight", "done", "day", "at", "seen_at", ODD]

_DOCUMENT: dict[str, Any] = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://registry.example/connectors/desk"},
    "declaration_version": "1",
    "publisher": {"id": "https://registry.example"},
    "display": {"name": "Desk"},
    "streams": [
        {
            "name": "notes",
            "semantics": "mutable_state",
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string"},
                    "title": _TEXT,
                    "body": _TEXT,
                    "label": _TEXT,
                    "code": _TEXT,
                    "size": {"type": ["integer", "null"]},
                    "weight": {"type": ["number", "null"]},
                    "done": {"type": ["boolean", "null"]},
                    "day": {"type": ["string", "null"], "format": "date"},
                    "at": _TIME,
                    "seen_at": _TIME,
                    "extra": {},
                    "file": {"type": "object"},
                    ODD: _TEXT,
                },
            },
            "primary_key": ["id"],
            "cursor_field": "at",
            "consent_time_field": "at",
            "selection": {"fields": True, "resources": True},
            "relationships": [
                {"name": "marks", "stream": "marks", "foreign_key": "note", "cardinality": "has_many"},
                {"name": "gauge", "stream": "gauges", "foreign_key": "number", "cardinality": "has_one"},
            ],
            "query": {
                "range_filters": dict.fromkeys(["size", "weight", "day", "at", "seen_at"], _RANGE),
                "expand": [{"name": "marks"}, {"name": "gauge"}],
                "search": {"lexical_fields": ["title", "body"]},
                "aggregations": {
                    "count": True,
                    "sum": ["size", "weight"],
                    "min": ["size", "weight", "day", "at"],
                    "max": ["size", "weight", "day", "at"],
                    "count_distinct": _SCALARS,
                    "group_by": _SCALARS,
                    "group_by_time": ["day", "at", "seen_at"],
                },
            },
        },
        {
            "name": "marks",
            "semantics": "append_only",
            "schema": {
                "properties": {
                    "note": {"type": "string"},
                    "n": {"type": "integer"},
                    "text": _TEXT,
                    "hidden": _TEXT,
                }
            },
            "primary_key": ["note", "n"],
            "cursor_field": "n",
            "selection": {"fields": True, "resources": True},
            "query": {"search": {"lexical_fields": ["text", "hidden"]}},
        },
        {
            "name": "pages",
            "semantics": "mutable_state",
            "schema": {
                "properties": {
                    "id": {"type": "integer"},
                    "slug": _TEXT,
                    "size": {"type": ["integer", "null"]},
                    "text": _TEXT,
                }
            },
            "primary_key": ["id"],
            "cursor_field": "slug",
            "selection": {"fields": True, "resources": True},
            "query": {"range_filters": {"size": _RANGE}, "search": {"lexical_fields": ["text"]}},
        },
        {
            "name": "gauges",
            "semantics": "mutable_state",
            "schema": {
                "properties": {
                    "id": {"type": "string"},
                    "level": {"type": ["number", "null"]},
                    "number": {"type": ["integer", "null"]},
                    "seen_at": _TIME,
                }
            },
            "primary_key": ["id"],
            "cursor_field": "level",
            "consent_time_field": "seen_at",
            "selection": {"fields": True, "resources": True},
            "query": {"range_filters": {"level": _RANGE}},
        },
        {
            "name": "loose",
            "semantics": "mutable_state",
            "schema": {"properties": {"id": {"type": "string"}, "text": _TEXT}},
            "primary_key": ["id"],
            "selection": {"fields": True, "resources": True},
        },
    ],
}


def document(version: str = "1") -> dict[str, Any]:
    """Give a fresh copy of the declaration, as some version."""
    fresh = copy.deepcopy(_DOCUMENT)
    fresh["declaration_version"] = version
    return fresh


def stream_of(source: dict[str, Any], name: str) -> dict[str, Any]:
    """Find a stream in a declaration document."""
    return next(stream for stream in source["streams"] if stream["name"] == name)


@cache
def declared() -> SourceDeclaration:
    """Give the declaration as a value."""
    return read_declaration(_DOCUMENT)
