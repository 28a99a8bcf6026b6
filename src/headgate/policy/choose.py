"""Choose the scope of a query; the refusal of a query that fits several lists their connections."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from headgate.model.ids import ConnectionId, ConnectorKey, StreamName
from headgate.model.record import Connection
from headgate.policy.allowance import Allowance, StreamScope

MAX_CHOICES = 12
_OR_CONNECTOR = (
    "Repeat the call with one connection_id of available_connections, or with the connector_key of one to read all "
    "connections of that connector."
)


def choose(
    allowance: Allowance,
    stream: StreamName,
    connection_id: ConnectionId | None,
    connector_key: ConnectorKey | None = None,
    *,
    by_connector: bool = False,
) -> StreamScope:
    """Find the one scope that a stream name and perhaps a connection or a connector mean.

    ``by_connector`` says that the query may name a connector, which a refusal then advises.
    """
    candidates = allowance.by_stream.get(stream, ())
    if not candidates:
        raise _no_stream(allowance.access, stream)
    if connector_key is not None:
        candidates = of_connector(candidates, connector_key)
    if connection_id is not None:
        candidates = on_connection(candidates, connection_id)
    joined = candidates[0] if len(candidates) == 1 else None
    if joined is None and connector_key is not None:
        joined = join(candidates)
    if joined is None:
        advice = _OR_CONNECTOR if by_connector and _joins_some(candidates) else ""
        raise ambiguous(allowance.access, candidates, hint=advice)
    return joined


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
    narrowed = tuple(part for scope in scopes if (part := scope.on(connection_id)) is not None)
    if not narrowed:
        raise ConnectionNotFound(param="connection_id")
    return narrowed


def of_connector(scopes: Iterable[StreamScope], connector_key: ConnectorKey) -> tuple[StreamScope, ...]:
    """Leave the scopes of one connector, with all its connections."""
    chosen = tuple(scope for scope in scopes if scope.connector_key == connector_key)
    if not chosen:
        raise ConnectionNotFound(
            "No connection that this token reaches is of this connector.", param="connector_key"
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
        data["discovery_hint"] = f"{call} lists every connection; then repeat the call with connection_id."
        hint = f"{hint or error.hint} {call} lists every connection."
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


def _no_stream(access: Access, stream: StreamName) -> HeadgateError:
    if access.is_owner:
        return StreamNotDeclared(f"No connected source has the stream '{stream}'.", param="stream")
    return StreamNotAllowed(f"Stream '{stream}' is outside this grant.", param="stream")


def connector_of(scopes: Iterable[StreamScope]) -> dict[ConnectionId, tuple[ConnectorKey, str | None]]:
    """Map each connection to its connector and to the owner's name for it."""
    return {
        connection.id: (scope.connector_key, connection.label)
        for scope in scopes
        for connection in scope.connections
    }
