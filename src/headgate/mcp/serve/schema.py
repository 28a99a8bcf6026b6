"""``schema``: an index of what was granted, or all that one stream allows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from headgate.errors import InvalidCursor, ResourceLimit
from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import Outcome
from headgate.model.query import SchemaQuery
from headgate.model.wire import LEGEND, Json, SchemaBody
from headgate.text.schema import read_schema_place, stream_text
from headgate.text.schema_index import index_text

_INDEX_BYTES = 59_000
#: The bytes of a document beside its connectors.
_OVERHEAD = 3_000
_STREAM_BYTES = 60_000
_REDUCED_STREAM = "Some sources are left out or have no fields here; call schema with connection_id for one."
#: The members that only an answer about one stream has.
_DETAIL = (
    "count",
    "cursor_field",
    "field_capabilities",
    "expand_capabilities",
    "schema",
    "views",
    "relationships",
    "query",
    "selection",
    "values",
)
_BARE = ("name", "granted_connections", "connection_id")
_CONNECTOR = ("object", "connector_key", "display_name", "stream_count", "granted_connections", "grant_id")
_REDUCED = "Rows are names only; call schema with stream for the rest."
_NO_NAMES = "The text names the streams; call schema with stream or connection_id for the rest."


async def schema(reader: Reader, query: SchemaQuery, cursor: str | None = None) -> Outcome:
    """Answer what may be read, and which queries are possible; ``cursor`` goes on in the text."""
    place = None if cursor is None else read_schema_place(cursor)
    if cursor is not None and (place is None or (place.list == "streams") != (query.stream is None)):
        raise _no_such_place()
    answer = await reader.port.schema(query)
    document: Json = answer.body()
    if document.get("connectors") is not None:
        # The streams are listed under their connectors; a second list would only add bytes.
        document.pop("streams", None)
    if query.stream is None:
        _index(document)
        text = index_text(cast("SchemaBody", document), _asked(query), 0 if place is None else place.first)
        return Outcome(reader.structured(_fitted(document), answer), text)
    text = stream_text(cast("SchemaBody", document), _asked(query), is_full=query.full, place=place)
    if text is None:
        raise _no_such_place()
    space = _STREAM_BYTES - _OVERHEAD - len(msgspec.json.encode(text))
    if query.full and len(answer.content) > space:
        raise ResourceLimit(
            "This stream's schema is too large for one answer.", hint="Ask with detail compact."
        )
    if not query.full:
        document["field_capability_legend"] = LEGEND
        _reduce_stream(document, space)
    return Outcome(reader.structured(document, answer), text)


def _asked(query: SchemaQuery) -> dict[str, str]:
    """Return the arguments that the printed calls repeat."""
    arguments = {
        "stream": query.stream,
        "connection_id": query.connection_id,
        "connector_key": query.connector_key,
        "detail": "full" if query.full else None,
    }
    return {name: value for name, value in arguments.items() if value is not None}


def _no_such_place() -> InvalidCursor:
    return InvalidCursor(
        "The cursor is none that this call printed, or what is granted has changed.",
        param="cursor",
        hint="Repeat schema without cursor, and pass a cursor as it prints it.",
    )


def _reduce_stream(document: Json, limit_bytes: int) -> None:
    """Leave out of a compact answer about one stream what does not fit; the text has the rest."""
    for reduce in (_first_shape_only, _connectors_last):
        if len(msgspec.json.encode(document)) <= limit_bytes:
            return
        reduce(document, limit_bytes)
        document.setdefault("meta", {})["reduced"] = _REDUCED_STREAM


def _first_shape_only(document: Json, _limit_bytes: int) -> None:
    """Describe the fields of sources that allow the same once."""
    seen: set[bytes] = set()
    for stream in _streams(document):
        shape = msgspec.json.encode([stream.get("connector_key"), stream.get("field_capabilities")])
        if shape in seen:
            for member in _DETAIL:
                stream.pop(member, None)
        seen.add(shape)


def _connectors_last(document: Json, limit_bytes: int) -> None:
    """Keep the first sources as they are, as many as fit."""
    connectors = _connectors(document)
    space = limit_bytes - _OVERHEAD
    for position, connector in enumerate(connectors):
        space -= len(msgspec.json.encode(connector)) + 1
        if space < 0:
            del connectors[position:]
            break


def _index(document: Json) -> None:
    """Reduce a document to an index: the streams without their fields."""
    for stream in _streams(document):
        for member in _DETAIL:
            stream.pop(member, None)
    document["detail"] = "compact"
    # Whose the token is, and what the pages of the resource server are called, no model needs.
    for member in ("bearer", "links"):
        document.pop(member, None)


def _fitted(document: Json) -> Json:
    """Leave out of an index what does not fit, and note that in its meta; the text names what is granted."""
    for reduce, note in ((_names_only, _REDUCED), (_lists_of_names, _REDUCED), (_connectors_only, _NO_NAMES)):
        if len(msgspec.json.encode(document)) <= _INDEX_BYTES:
            break
        reduce(document)
        document.setdefault("meta", {})["reduced"] = note
    return document


def _names_only(document: Json) -> None:
    for stream in _streams(document):
        for member in [member for member in stream if member not in _BARE]:
            del stream[member]


def _lists_of_names(document: Json) -> None:
    for connector in _connectors(document):
        streams: list[Json] = connector.pop("streams", None) or []
        for member in [member for member in connector if member not in _CONNECTOR]:
            del connector[member]
        connector["stream_names"] = [stream["name"] for stream in streams]


def _connectors_only(document: Json) -> None:
    connectors = _connectors(document)
    document["connector_count"] = len(connectors)
    document["stream_count"] = sum(len(connector.pop("stream_names")) for connector in connectors)
    space = _INDEX_BYTES - _OVERHEAD
    for position, connector in enumerate(connectors):
        space -= len(msgspec.json.encode(connector)) + 1
        if space < 0:
            del connectors[position:]
            break


def _connectors(document: Json) -> list[Json]:
    return document.get("connectors") or []


def _streams(document: Json) -> Iterator[Json]:
    for connector in _connectors(document):
        yield from connector.get("streams") or []
