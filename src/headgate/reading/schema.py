"""Schema documents: what a token may read and ask, drawn from the very capabilities that are enforced.

What a client may not see is not mentioned: no hidden field, stream, relation or view, in no description.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import msgspec

from headgate.errors import ConnectionNotFound
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName
from headgate.model.instants import iso
from headgate.model.plan import Reach
from headgate.model.query import SchemaQuery
from headgate.model.record import Connection, Freshness, freshness_in
from headgate.model.wire import FieldFlags, FlagBody, flag_line
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import AGGREGATIONS, FieldCapability, Flag, RelationCapability, Use
from headgate.policy.choose import choose
from headgate.policy.decide import decide_schema, decide_streams, whole
from headgate.reading import links
from headgate.reading.home import CurrentRead, Served, times_of
from headgate.reading.port import Body

if TYPE_CHECKING:
    from headgate.store.engines.store import Store


async def schema(read: CurrentRead, query: SchemaQuery) -> Served:
    """Describe what an access may read and ask."""
    scopes = decide_schema(read.decisions.allowance, query)
    summaries = await _summaries(read, scopes)
    connectors = (_full_connectors if query.full else _compact_connectors)(scopes, summaries)
    access = read.context.access
    body: Body = {"object": "schema", "bearer": _bearer(access), "connectors": connectors}
    if not query.full:
        body |= {"detail": "compact", "connector_count": len(connectors), "stream_count": len(scopes)}
    return Served(body | {"links": {"self": links.schema_link(query)}, "meta": read.meta()})


async def streams(read: CurrentRead, connection_id: ConnectionId | None) -> Served:
    scopes = decide_streams(read.decisions.allowance, connection_id)
    summaries = await _summaries(read, scopes)
    rows = [
        _stream_row(scope, connection, summaries.get((connection.id, scope.stream)))
        for scope in scopes
        for connection in scope.connections
    ]
    return _whole_list(read, "/v1/streams", links.connection_link("/v1/streams", connection_id), rows)


async def connectors(read: CurrentRead) -> Served:
    """List the connectors with their streams."""
    scopes = read.decisions.allowance.scopes
    rows = _compact_connectors(scopes, await _summaries(read, scopes))
    for row in rows:
        row["streams"] = [{"object": "stream", **stream} for stream in row["streams"]]
    return _whole_list(read, "/v1/connectors", "/v1/connectors", rows)


async def stream(read: CurrentRead, name: StreamName, connection_id: ConnectionId | None) -> Served:
    """Describe one stream, and beside what may be done with each field its own JSON Schema."""
    scope = choose(read.decisions.allowance, name, connection_id)
    body = _stream_metadata(scope, await _summaries(read, (scope,)))
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


async def _summaries(read: CurrentRead, scopes: Sequence[StreamScope]) -> Summaries:
    if not scopes:
        return {}
    reaches = [whole(scope) for scope in scopes]
    return await _stream_facts(read.home.store, reaches, now=read.home.clock())


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """What is stored of one stream of one connection, and how fresh it is."""

    record_count: int
    #: Microseconds since 1970: when a record was last ingested; None if there is none.
    last_updated: int | None
    #: Of an account: when it was last fetched, and its status now.
    attempted_at: int | None = None
    status: str = "unknown"

    def freshness(self) -> Body:
        """Write the member of that name."""
        times = {"captured_at": self.last_updated, "last_attempted_at": self.attempted_at}
        return {"status": self.status} | {name: iso(time) for name, time in times.items() if time is not None}


Summaries = Mapping[tuple[ConnectionId, StreamName], StreamFacts]


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
        _connector(group) | {"streams": [_stream_metadata(scope, summaries) for scope in group]}
        for group in _by_connector(scopes)
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
        "granted_connections": [_connection(connection) for connection in scope.connections],
        "field_capabilities": {name: _field(field) for name, field in visible.items()},
        "expand_capabilities": [_expand(relation) for relation in capability.relations.values()],
        "record_count": _count(scope, summaries),
        "freshness": _freshness(scope, summaries),
    }
    for name, text in (
        ("description", declared.description),
        ("label", declared.label),
        ("detail", declared.detail),
    ):
        if text and not _mentions_hidden(text, scope):
            body[name] = text
    return body | times_of([scope]) | _time_constraint(scope)


def _compact_connectors(scopes: Sequence[StreamScope], summaries: Summaries) -> list[Body]:
    """Describe every stream in a few words, by connector: one flag string for each field."""
    return [_compact_connector(group, summaries) for group in _by_connector(scopes)]


# Compact


def _compact_connector(group: Sequence[StreamScope], summaries: Summaries) -> Body:
    shared = Counter(scope.connections for scope in group).most_common(1)[0][0]
    rows = [_compact_stream(scope, summaries) for scope in group]
    for row, scope in zip(rows, group, strict=True):
        if scope.connections != shared:
            row["granted_connections"] = [_connection(connection) for connection in scope.connections]
    return _connector(group) | {
        "granted_connections": [_connection(granted) for granted in shared],
        "streams": rows,
    }


def _compact_stream(scope: StreamScope, summaries: Summaries) -> Body:
    capability = scope.capability
    row: Body = {
        "name": scope.stream,
        "connector_key": scope.connector_key,
        "record_count": _count(scope, summaries),
        "granted": True,
        "primary_key": [name for name in scope.declaration.primary_key if name in capability.fields],
        "cursor_field": capability.sort_field,
        "field_capabilities": {name: flag_line(_field(field)) for name, field in capability.fields.items()},
        "expand_capabilities": [_expand(relation) for relation in capability.relations.values()],
        "views": list(capability.views),
        "count": bool(capability.counts),
    }
    if len(scope.connections) == 1:
        row |= _connection(scope.connections[0])
    return row


# Full


def _field(capability: FieldCapability) -> FieldFlags:
    role = capability.field.schema.get("x_pdpp_role")
    body: FieldFlags = {
        "type": "|".join(capability.field.types) or "any",
        "granted": True,
        "exact_filter": _flag(capability.flag(Use.EXACT_FILTER)),
        "range_filter": _range_flag(capability),
        "lexical_search": _flag(capability.flag(Use.LEXICAL_SEARCH)),
        "semantic_search": _flag(capability.flag(Use.SEMANTIC_SEARCH)),
        "aggregation": {use.value: _flag(capability.flag(use)) for use in AGGREGATIONS},
    }
    if isinstance(role, str):
        body["role"] = role
    return body


def _range_flag(capability: FieldCapability) -> FlagBody:
    body = _flag(capability.flag(Use.RANGE_FILTER))
    if capability.operators:
        body["operators"] = list(capability.operators)
    return body


def _flag(flag: Flag) -> FlagBody:
    body: FlagBody = {"declared": flag.declared, "usable": flag.usable}
    if flag.reason is not None:
        body["reason"] = flag.reason
    return body


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


# Shared


def _by_connector(scopes: Sequence[StreamScope]) -> list[list[StreamScope]]:
    groups: dict[tuple[ConnectorKey, object], list[StreamScope]] = {}
    for scope in scopes:
        groups.setdefault((scope.connector_key, scope.grant_id), []).append(scope)
    return list(groups.values())


def _connector(group: Sequence[StreamScope]) -> Body:
    first = group[0]
    body: Body = {
        "object": "connector",
        "connector_key": first.connector_key,
        "connector_id": first.connector_key,
        "source": {"kind": first.source.source_kind, "id": first.source.source_id},
        "display_name": first.source.display_name,
        "stream_count": len(group),
    }
    return body if first.grant_id is None else body | {"grant_id": first.grant_id}


def _connection(connection: Connection) -> Body:
    name = connection.label
    body: Body = {"connection_id": connection.id}
    return body if name is None else body | {"display_name": name}


def _count(scope: StreamScope, summaries: Summaries) -> int:
    return sum(facts.record_count for facts in _of(scope, summaries))


def _freshness(scope: StreamScope, summaries: Summaries) -> Body:
    """Sum up the connections of a stream: one that is stale makes the whole stale."""
    facts = _of(scope, summaries)
    statuses = {stored.status for stored in facts}
    return StreamFacts(
        0,
        max((stored.last_updated for stored in facts if stored.last_updated is not None), default=None),
        max((stored.attempted_at for stored in facts if stored.attempted_at is not None), default=None),
        next((status for status in ("stale", "unknown", "current") if status in statuses), "unknown"),
    ).freshness()


def _of(scope: StreamScope, summaries: Summaries) -> list[StreamFacts]:
    facts = (summaries.get((connection.id, scope.stream)) for connection in scope.connections)
    return [stored for stored in facts if stored is not None]


def _stream_row(scope: StreamScope, connection: Connection, stored: StreamFacts | None) -> Body:
    facts = stored or StreamFacts(0, None)
    freshness = facts.freshness()
    return {
        "object": "stream",
        "name": scope.stream,
        "record_count": facts.record_count,
        "last_updated": freshness.get("captured_at"),
        "connector_key": scope.connector_key,
        **_connection(connection),
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


async def _stream_facts(store: Store, reaches: Sequence[Reach], *, now: int) -> Summaries:
    """Count the records of each stream of each connection, and judge how fresh those of accounts are."""
    summaries = await store.summaries(reaches)
    fresh = {
        summary: await _read_freshness(store, summary)
        for summary in {each.connection_id for each in summaries}
    }
    return {
        (summary.connection_id, summary.stream): StreamFacts(
            summary.record_count,
            summary.last_updated,
            fresh[summary.connection_id].attempted_at,
            fresh[summary.connection_id].status(now),
        )
        for summary in summaries
    }


async def _read_freshness(store: Store, connection_id: ConnectionId) -> Freshness:
    try:
        stored = await store.state(connection_id)
    except ConnectionNotFound:
        # It was removed a moment ago.
        stored = None
    state: Any = None if stored is None else msgspec.json.decode(stored)
    noted = freshness_in(cast("dict[str, Any]", state)) if isinstance(state, dict) else None
    return noted or Freshness()
