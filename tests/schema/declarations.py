"""A declaration that uses every member, for tests to break in one place at a time."""

from __future__ import annotations

import copy
from typing import Any

_DOCUMENT: dict[str, Any] = {
    "protocol_version": "0.1.0",
    "source": {"kind": "connector", "id": "https://registry.example/connectors/mail"},
    "declaration_version": "2026-08-11",
    "publisher": {"id": "https://registry.example"},
    "display": {"name": "Mail"},
    "selection_presets": [
        {
            "id": "light",
            "label": "Just the subjects",
            "streams": [{"name": "messages", "view": "subjects"}, {"name": "attachments", "fields": ["id"]}],
        }
    ],
    "streams": [
        {
            "name": "messages",
            "description": "Mail, sent and received.",
            "display": {"label": "Messages", "detail": "What you wrote and were written."},
            "semantics": "mutable_state",
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "$defs": {"address": {"type": "string"}},
                "properties": {
                    "id": {"type": "string"},
                    "sender": {"$ref": "#/$defs/address"},
                    "subject": {"type": ["string", "null"], "x_pdpp_role": "primary-title"},
                    "body": {"type": "string"},
                    "sent_at": {"type": "string", "format": "date-time"},
                    "day": {"type": "string", "format": "date"},
                    "size": {"type": "integer"},
                    "weight": {"type": "number"},
                    "is_read": {"type": "boolean"},
                    "headers": {"type": "object"},
                    "anything": True,
                },
                "required": ["id", "sent_at"],
            },
            "primary_key": ["id"],
            "cursor_field": "sent_at",
            "consent_time_field": "sent_at",
            "selection": {"fields": True, "resources": True},
            "views": [{"id": "subjects", "label": "Subjects", "fields": ["id", "subject"]}],
            "relationships": [
                {
                    "name": "attachments",
                    "stream": "attachments",
                    "foreign_key": "message_id",
                    "cardinality": "has_many",
                }
            ],
            "query": {
                "range_filters": {"sent_at": ["gte", "lt"], "size": ["gt"]},
                "expand": [{"name": "attachments", "default_limit": 3, "max_limit": 5}],
                "search": {"lexical_fields": ["subject", "body"], "semantic_fields": ["body"]},
                "aggregations": {
                    "count": True,
                    "sum": ["size"],
                    "min": ["weight"],
                    "max": ["sent_at"],
                    "count_distinct": ["sender"],
                    "group_by": ["sender", "is_read"],
                    "group_by_time": ["sent_at"],
                },
            },
        },
        {
            "name": "attachments",
            "semantics": "append_only",
            "schema": {"properties": {"id": {"type": "string"}, "message_id": {"type": "string"}}},
            "primary_key": ["message_id", "id"],
            "selection": {"fields": False, "resources": False},
            "query": {"expand": []},
        },
    ],
    "extensions": {"https://example.org/profile": {"kept": 1}},
}


def declaration() -> dict[str, Any]:
    """Give a fresh copy."""
    return copy.deepcopy(_DOCUMENT)
