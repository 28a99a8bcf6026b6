"""A source whose streams and fields a test names, declared in a world."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.model.grant import AccessMode, Grant, StreamGrant
from headgate.model.ids import ConnectorKey
from tests.mcp.serve.world import NOW, World

Streams = Mapping[str, Iterable[str]]


def stream_of(name: str, fields: Mapping[str, Any], key: str = "id", **query: Any) -> dict[str, Any]:
    return {
        "name": name,
        "semantics": "mutable_state",
        "schema": {"type": "object", "properties": {**fields, key: {"type": "string"}}},
        "primary_key": [key],
        "selection": {"fields": True, "resources": True},
        "query": query,
    }


def declaration_of(key: str, streams: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {
        "protocol_version": "0.1.0",
        "source": {"kind": "connector", "id": f"https://odd.example/connectors/{key}"},
        "declaration_version": "1",
        "publisher": {"id": "https://odd.example"},
        "display": {"name": key},
        "streams": list(streams),
    }


async def declare(w: World, key: str, *streams: dict[str, Any], connections: Iterable[str] = ()) -> None:
    """Declare a source, and connect it under each of the names, or under its key."""
    await w.store.declare(ConnectorKey(key), declaration_of(key, streams))
    for name in connections or [key]:
        w.connections[name] = (await w.store.create_connection(ConnectorKey(key), name)).id


def grant_of(w: World, key: str, streams: Streams, connections: Iterable[str] = (), number: int = 1) -> Grant:
    """Grant fields of streams of some connections, or of the one that is named like its source."""
    ids = [w.connections[name] for name in connections or [key]]
    return grant_to(key, *ids, streams=streams, number=number)


def grant_to(key: str, *connection_ids: str, streams: Streams, number: int = 1) -> Grant:
    """Grant fields of streams of connections."""
    return Grant(
        id=f"grt_{key}_{number}",
        subject_id="me",
        client_id="agent",
        source_id=f"https://odd.example/connectors/{key}",
        source_kind="connector",
        declaration_version="1",
        purpose_code="https://pdpp.dev/purpose/agent_context",
        access_mode=AccessMode.CONTINUOUS,
        streams=tuple(StreamGrant(name, connection_ids, tuple(fields)) for name, fields in streams.items()),
        issued_at=NOW,
    )
