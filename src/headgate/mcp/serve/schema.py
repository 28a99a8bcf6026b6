"""``schema``: an index of what was granted, or all that one stream allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.reader import Reader
from headgate.model.query import SchemaQuery
from headgate.text.budget import TOOL_RESULT
from headgate.text.schema import LEGEND, index_text, stream_text

_INDEX_BYTES = 59_000
#: What stands in a document beside its connectors.
_OVERHEAD = 3_000
_TEXT_ROOM = 20_000
#: What only a scoped answer tells.
_DETAIL = (
    "field_capabilities",
    "expand_capabilities",
    "schema",
    "views",
    "relationships",
    "query",
    "selection",
)
_BARE = ("name", "granted_connections", "connection_id")
_CONNECTOR = ("object", "connector_key", "display_name", "stream_count", "granted_connections", "grant_id")
_REDUCED = "Rows are names only; call schema with stream for the rest."
_NO_NAMES = "The text names the streams; call schema with stream or connection_id for the rest."

Json = dict[str, Any]


async def schema(reader: Reader, query: SchemaQuery) -> Outcome:
    """Answer what may be read and asked."""
    answer = await reader.port.schema(query)
    document = answer.body()
    if document.get("connectors") is not None:
        # The rows stand under their connectors; a second copy would only cost.
        document.pop("streams", None)
    if query.stream is None:
        _index(document)
        text = index_text(document)
        return Outcome(reader.structured(_fitted(document), answer), text)
    if len(answer.content) > TOOL_RESULT - _TEXT_ROOM:
        raise ResourceLimit(
            "This stream's schema is too large for one answer.", hint="Ask with detail compact."
        )
    if not query.full:
        document["field_capability_legend"] = LEGEND
    text = stream_text(document, connection_id=query.connection_id)
    return Outcome(reader.structured(document, answer), text)


def _index(document: Json) -> None:
    """Keep an index of a document: the streams, and nothing of their fields."""
    for stream in _streams(document):
        for member in _DETAIL:
            stream.pop(member, None)
    document["detail"] = "compact"
    document["field_capability_legend"] = LEGEND


def _fitted(document: Json) -> Json:
    """Leave out of an index what its budget has no room for, and say so; the text names what is granted."""
    for reduce, told in ((_names_only, _REDUCED), (_lists_of_names, _REDUCED), (_connectors_only, _NO_NAMES)):
        if len(msgspec.json.encode(document)) <= _INDEX_BYTES:
            break
        reduce(document)
        document.setdefault("meta", {})["reduced"] = told
    return document


def _names_only(document: Json) -> None:
    for stream in _streams(document):
        for member in [member for member in stream if member not in _BARE]:
            del stream[member]


def _lists_of_names(document: Json) -> None:
    for connector in _connectors(document):
        named = [stream["name"] for stream in cast("list[Json]", connector.pop("streams", None) or [])]
        for member in [member for member in connector if member not in _CONNECTOR]:
            del connector[member]
        connector["stream_names"] = named


def _connectors_only(document: Json) -> None:
    connectors = _connectors(document)
    document["connector_count"] = len(connectors)
    document["stream_count"] = sum(len(connector.pop("stream_names")) for connector in connectors)
    room = _INDEX_BYTES - _OVERHEAD
    for position, connector in enumerate(connectors):
        room -= len(msgspec.json.encode(connector)) + 1
        if room < 0:
            del connectors[position:]
            break


def _connectors(document: Json) -> list[Json]:
    return cast("list[Json]", document.get("connectors") or [])


def _streams(document: Json) -> Iterator[Json]:
    for connector in _connectors(document):
        yield from cast("list[Json]", connector.get("streams") or [])
