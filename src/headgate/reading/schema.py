"""Schema documents: what a token may read and ask, drawn from the very capabilities that are enforced.

What a client may not see is not mentioned: no hidden field, stream, relation or view, in no description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId, FieldName, StreamName
from headgate.model.instants import iso
from headgate.model.query import SchemaQuery
from headgate.model.record import Connection
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import AGGREGATIONS, FieldCapability, RelationCapability, Use
from headgate.policy.choose import choose
from headgate.policy.decide import decide_schema, decide_streams
from headgate.reading import links
from headgate.reading.compact_schema import Values, common_values, compact_connector, values_shown
from headgate.reading.home import CurrentRead, Served, times_of
from headgate.reading.port import Body
from headgate.reading.stream_facts import (
    StreamFacts,
    Summaries,
    by_connector,
    connection_body,
    connector_body,
    count_of,
    field_flags,
    freshness_of,
    read_summaries,
)


async def schema(read: CurrentRead, query: SchemaQuery) -> Served:
    """Describe what an access may read and ask."""
    scopes = decide_schema(read.decisions.allowance, query)
    summaries = await read_summaries(read, scopes)
    bearer = {"bearer": _bearer(read.context.access)}
    if query.full:
        described: Body = {"connectors": _full_connectors(scopes, summaries)}
        return Served(
            {
                "object": "schema",
                **bearer,
                **described,
                "links": {"self": links.schema_link(query)},
                "meta": read.meta(),
            }
        )
    values: Values = {} if query.stream is None else await common_values(read, scopes, summaries)
    connectors = [compact_connector(group, summaries, values) for group in by_connector(scopes)]
    # Whose the token is stands in the index, which is asked for first.
    body: Body = {"object": "schema", **(bearer if query.stream is None else {}), "connectors": connectors}
    body |= {"detail": "compact", "connector_count": len(connectors), "stream_count": len(scopes)}
    return Served(body | {"meta": read.meta()}, values_shown(scopes, summaries, values))


async def streams(read: CurrentRead, connection_id: ConnectionId | None) -> Served:
    scopes = decide_streams(read.decisions.allowance, connection_id)
    summaries = await read_summaries(read, scopes)
    rows = [
        _stream_row(scope, connection, summaries.get((connection.id, scope.stream)))
        for scope in scopes
        for connection in scope.connections
    ]
    return _whole_list(read, "/v1/streams", links.connection_link("/v1/streams", connection_id), rows)


async def connectors(read: CurrentRead) -> Served:
    """List the connectors with their streams."""
    scopes = read.decisions.allowance.scopes
    summaries = await read_summaries(read, scopes)
    rows = [connector_body(group) | compact_connector(group, summaries, {}) for group in by_connector(scopes)]
    for row in rows:
        row["streams"] = [{"object": "stream", **stream} for stream in row["streams"]]
    listed = _whole_list(read, "/v1/connectors", "/v1/connectors", rows)
    return Served(listed.body, values_shown(scopes, summaries, {}))


async def stream(read: CurrentRead, name: StreamName, connection_id: ConnectionId | None) -> Served:
    """Describe one stream, and beside what may be done with each field its own JSON Schema."""
    scope = choose(read.decisions.allowance, name, connection_id)
    body = _stream_metadata(scope, await read_summaries(read, (scope,)))
    for field, capability in scope.capability.fields.items():
        body["field_capabilities"][field]["schema"] = _own_schema(scope, capability)
    own = links.connection_link(links.stream_path(name), connection_id)
    return Served(body | {"links": {"self": own}, "meta": read.meta()})


def _whole_list(read: CurrentRead, url: str, own: str, rows: list[Body]) -> Served:
    return Served(
        {
            "object": "list",
            "data": rows,
            "has_more": False,
            "url": url,
            "links": {"self": own, "next": None},
            "meta": read.meta(),
        }
    )


def _bearer(access: Access) -> Body:
    """Describe the token."""
    if access.is_owner:
        return {"token_kind": access.token_kind, "scope": "owner"}
    body: Body = {"token_kind": access.token_kind, "scope": "grant", "client_id": access.client_id}
    if access.token_kind is TokenKind.MCP_PACKAGE:
        return body | {"package_id": access.package_id, "grant_ids": [grant.id for grant in access.grants]}
    return body | {"grant_id": access.grants[0].id}


def _full_connectors(scopes: Sequence[StreamScope], summaries: Summaries) -> list[Body]:
    """Describe every stream whole, by connector."""
    return [
        connector_body(group) | {"streams": [_stream_metadata(scope, summaries) for scope in group]}
        for group in by_connector(scopes)
    ]


def _stream_metadata(scope: StreamScope, summaries: Summaries) -> Body:
    """Describe one stream, as far as the scope goes."""
    declared, capability = scope.declaration, scope.capability
    visible = capability.fields
    body: Body = {
        "object": "stream_metadata",
        "name": scope.stream,
        "semantics": declared.semantics,
        "primary_key": [name for name in declared.primary_key if name in visible],
        "cursor_field": capability.sort_field,
        "consent_time_field": declared.consent_time_field if declared.consent_time_field in visible else None,
        "schema": _json_schema(scope),
        "selection": {"fields": declared.selects_fields, "resources": declared.selects_resources},
        "views": [
            {"id": view.id, "label": view.label, "fields": list(view.fields)}
            for view in capability.views.values()
        ],
        "relationships": [_relationship(relation) for relation in capability.relations.values()],
        "query": _query(scope),
        "granted_connections": [connection_body(connection) for connection in scope.connections],
        "field_capabilities": {name: field_flags(field) for name, field in visible.items()},
        "expand_capabilities": [_expand(relation) for relation in capability.relations.values()],
        "record_count": count_of(scope, summaries),
        "freshness": freshness_of(scope, summaries),
    }
    for name, text in (
        ("description", declared.description),
        ("label", declared.label),
        ("detail", declared.detail),
    ):
        if text and not _mentions_hidden(text, scope):
            body[name] = text
    return body | times_of([scope]) | _time_constraint(scope)


# Full


def _query(scope: StreamScope) -> Body:
    fields = scope.capability.fields

    def names(use: Use) -> list[FieldName]:
        return [name for name, field in fields.items() if field.usable(use)]

    body: Body = {
        "range_filters": {name: list(fields[name].operators) for name in names(Use.RANGE_FILTER)},
        "search": {"lexical_fields": names(Use.LEXICAL_SEARCH)},
        "expand": [
            relation.relation.name
            for relation in scope.capability.relations.values()
            if relation.refused is None
        ],
    }
    if scope.capability.counts is not None:
        body["aggregations"] = {"count": scope.capability.counts} | {
            use.value: names(use) for use in AGGREGATIONS
        }
    return body


def _relationship(capability: RelationCapability) -> Body:
    relation = capability.relation
    return {
        "name": relation.name,
        "stream": relation.stream,
        "foreign_key": relation.foreign_key,
        "cardinality": relation.cardinality,
    }


def _expand(capability: RelationCapability) -> Body:
    body = _relationship(capability) | {
        "target_stream": capability.relation.stream,
        "child_parent_key_field": capability.relation.foreign_key,
        "default_limit": capability.expansion.default_limit,
        "max_limit": capability.expansion.max_limit,
        "granted": True,
        "usable": capability.refused is None,
    }
    return body if capability.refused is None else body | {"reason": capability.refused.value}


def _json_schema(scope: StreamScope) -> Mapping[str, Any]:
    """Return the owner the schema as declared, and clients what is left of it without hidden fields."""
    declared = scope.declaration.schema
    if scope.is_owner:
        return declared
    properties = {name: _own_schema(scope, field) for name, field in scope.capability.fields.items()}
    required = [name for name, field in scope.capability.fields.items() if field.field.required]
    return {"type": "object", "properties": properties, "required": required}


def _own_schema(scope: StreamScope, capability: FieldCapability) -> Mapping[str, Any]:
    schema = capability.field.schema
    text = msgspec.json.encode(schema).decode()
    if "$ref" in text or "$dynamicRef" in text or _mentions_hidden(text, scope):
        types = list(capability.field.types)
        return {"type": types[0] if len(types) == 1 else types} if types else {}
    return schema


def _mentions_hidden(text: str, scope: StreamScope) -> bool:
    """Check whether a text holds the name of something the scope does not show."""
    if scope.is_owner:
        return False
    hidden = scope.declaration.fields.keys() - scope.capability.fields.keys()
    others = scope.source.streams.keys() - {scope.stream}
    words = set(re.findall(r"\w+", text))
    return any(set(re.findall(r"\w+", name)) <= words for name in (*hidden, *others))


def _stream_row(scope: StreamScope, connection: Connection, stored: StreamFacts | None) -> Body:
    facts = stored or StreamFacts(0, None)
    freshness = facts.freshness()
    return {
        "object": "stream",
        "name": scope.stream,
        "record_count": facts.record_count,
        "last_updated": freshness.get("captured_at"),
        "connector_key": scope.connector_key,
        **connection_body(connection),
        "freshness": freshness,
    }


def _time_constraint(scope: StreamScope) -> Body:
    time = scope.time
    if time is None:
        return {}
    bounds = {
        "field": time.field if time.field in scope.capability.fields else None,
        "since": None if time.since is None else iso(time.since),
        "until": None if time.until is None else iso(time.until),
    }
    return {
        "time_constraint": cast("Body", {name: value for name, value in bounds.items() if value is not None})
    }
