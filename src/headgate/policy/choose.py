"""Choose the scope of a query; the refusal of a query that fits several lists their connections."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from headgate.errors import (
    AmbiguousConnection,
    ConnectionNotFound,
    HeadgateError,
    StreamNotAllowed,
    StreamNotDeclared,
)
from headgate.model.grant import Access, TokenKind
from headgate.model.ids import ConnectionId, ConnectorKey, FieldName, StreamName
from headgate.model.record import Connection
from headgate.nearest import listed, near_or_all, nearest, quoted
from headgate.policy.allowance import Allowance, StreamScope

MAX_CHOICES = 12
_OR_CONNECTOR = (
    "Repeat the call with one connection_id of available_connections, or with the connector_key of one."
)


def choose(
    allowance: Allowance,
    stream: StreamName,
    connection_id: ConnectionId | None,
    connector_key: ConnectorKey | None = None,
    *,
    named: Collection[FieldName] | None = None,
) -> StreamScope:
    """Find the one scope that a stream name and perhaps a connection or a connector mean.

    ``named`` are the fields of a query that may name a connector, which a refusal then advises.
    """
    candidates = allowance.by_stream.get(stream, ())
    if not candidates:
        raise _no_stream(allowance, stream)
    if connector_key is not None:
        candidates = of_connector(candidates, connector_key)
    if connection_id is not None:
        candidates = on_connection(candidates, connection_id)
    joined = candidates[0] if len(candidates) == 1 else None
    if joined is None and connector_key is not None:
        joined = join(candidates)
    if joined is None:
        raise _several(allowance.access, candidates, named)
    return joined


def _several(
    access: Access, scopes: Sequence[StreamScope], named: Collection[FieldName] | None
) -> HeadgateError:
    """Make the refusal of a query that fits several scopes; the only connector with its fields comes first."""
    if named is None:
        return ambiguous(access, scopes)
    keys = {scope.connector_key for scope in scopes if scope.capability.fields.keys() >= set(named)}
    if len(keys) == 1 and len({scope.connector_key for scope in scopes}) > 1:
        fitting = [scope for scope in scopes if scope.connector_key in keys]
        if join(fitting) is not None:
            # Sorting keeps the order of equal ones.
            ordered = sorted(scopes, key=lambda scope: scope not in fitting)
            hint = f"Repeat the call with connector_key {quoted(keys.pop())}, which alone has these fields."
            return ambiguous(access, ordered, hint=hint)
    return ambiguous(access, scopes, hint=_OR_CONNECTOR if _joins_some(scopes) else "")


def _joins_some(scopes: Sequence[StreamScope]) -> bool:
    """Return whether a connector among them has several connections that are read together."""
    keys = {scope.connector_key for scope in scopes}
    joined = [join([scope for scope in scopes if scope.connector_key == key]) for key in keys]
    return any(joined_scope is not None and len(joined_scope.connections) > 1 for joined_scope in joined)


def join(scopes: Sequence[StreamScope]) -> StreamScope | None:
    """Join what several grants allow of one stream; None if they do not allow the same.

    A page or a number is computed under one set of fields and bounds, so only equal ones can be joined.
    """
    first, *others = scopes
    if not others:
        return first
    if not all(first.allows_as(other) for other in others):
        return None
    connections = {connection.id: connection for scope in scopes for connection in scope.connections}
    return replace(first, connections=tuple(connections.values()), parts=tuple(scopes))


def on_connection(scopes: Iterable[StreamScope], connection_id: ConnectionId) -> tuple[StreamScope, ...]:
    candidates = tuple(scopes)
    narrowed = tuple(part for scope in candidates if (part := scope.on(connection_id)) is not None)
    if not narrowed:
        raise no_connection(candidates, connection_id)
    return narrowed


def of_connector(scopes: Iterable[StreamScope], connector_key: ConnectorKey) -> tuple[StreamScope, ...]:
    """Leave the scopes of one connector, with all its connections."""
    candidates = tuple(scopes)
    chosen = tuple(scope for scope in candidates if scope.connector_key == connector_key)
    if not chosen:
        keys = list(dict.fromkeys(scope.connector_key for scope in candidates))
        message = f"There is no connector {quoted(connector_key)} that you may read."
        raise ConnectionNotFound(
            f"{message}{near_or_all(connector_key, keys, 'Connectors')}", param="connector_key"
        )
    return chosen


def ambiguous(
    access: Access,
    scopes: Sequence[StreamScope],
    *,
    only: Iterable[ConnectionId] | None = None,
    error: type[HeadgateError] = AmbiguousConnection,
    param: str = "connection_id",
    hint: str = "",
) -> HeadgateError:
    """Make the refusal that lists the fitting connections, at most twelve."""
    fitting = None if only is None else set(only)
    choices = [
        _choice(scope, connection, access)
        for scope in scopes
        for connection in scope.connections
        if fitting is None or connection.id in fitting
    ]
    data: dict[str, Any] = {"available_connections": choices[:MAX_CHOICES], "retry_with": "connection_id"}
    if len(choices) > MAX_CHOICES:
        data["available_connection_count"] = len(choices)
        data["available_connections_truncated"] = True
        data["available_connections_omitted"] = len(choices) - MAX_CHOICES
        call = f"schema with {msgspec.json.encode({'stream': scopes[0].stream}).decode()}"
        data["discovery_hint"] = f"{call} lists every connection."
    return error(
        f"{len(choices)} connections fit; choose one with connection_id.", param=param, hint=hint, data=data
    )


def _choice(scope: StreamScope, connection: Connection, access: Access) -> dict[str, Any]:
    return {
        "connection_id": connection.id,
        "connector_key": scope.connector_key,
        "stream": scope.stream,
        **({"display_name": name} if (name := connection.label) is not None else {}),
        **({"grant_id": scope.grant_id} if access.token_kind is TokenKind.MCP_PACKAGE else {}),
    }


def _no_stream(allowance: Allowance, stream: StreamName) -> HeadgateError:
    message = f"There is no stream {quoted(stream)} that you may read."
    message += near_or_all(stream, list(allowance.by_stream), "Streams")
    error = StreamNotDeclared if allowance.access.is_owner else StreamNotAllowed
    return error(message, param="stream")


def no_connection(scopes: Iterable[StreamScope], connection_id: ConnectionId) -> ConnectionNotFound:
    """Make the refusal of a connection that some scopes do not reach: it lists those that they do, the nearest first."""
    labels = {
        connection.id: connection.label or connection.id
        for scope in scopes
        for connection in scope.connections
    }
    # A connection is often named by what the owner calls it.
    called = [name for name, label in labels.items() if label.casefold() == connection_id.casefold()]
    alike = nearest(connection_id, [*labels, *labels.values()], most=2 * len(labels))
    places = {text: place for place, text in reversed([*enumerate(alike)])}
    ids = sorted(labels, key=lambda name: min(places.get(text, len(alike)) for text in (name, labels[name])))
    message = "No connection that you may read has this id."
    found = listed("By that name", called) or listed("Connections", ids)
    return ConnectionNotFound(f"{message}{found}", param="connection_id")


def connector_of(scopes: Iterable[StreamScope]) -> dict[ConnectionId, tuple[ConnectorKey, str | None]]:
    """Map each connection to its connector and to the owner's name for it."""
    return {
        connection.id: (scope.connector_key, connection.label)
        for scope in scopes
        for connection in scope.connections
    }
