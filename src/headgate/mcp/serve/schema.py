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
from headgate.text.writing import ENVELOPE, SCHEMA_STREAM_TEXT, TOOL_RESULT, UNASKED_RESULT, text_within

#: A full schema and what stands beside it; and an index that names more streams than the other answers have bytes.
_FULL_BYTES = 60_000
_INDEX_BYTES = 59_000
#: The bytes of a document beside its connectors.
_OVERHEAD = 3_000
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
_CONNECTOR = ("connector_key", "display_name", "stream_count", "granted_connections")
_LISTED = "The rows do not fit as JSON: listing is the text of this answer, with the calls that go on."
_NOT_LISTED = "The text names the streams; call schema with stream or connection_id for the rest."


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
        return Outcome(reader.structured(_fitted(document, text, is_part=place is not None), answer), text)

    def draw_text(limit_bytes: int) -> str:
        body, asked = cast("SchemaBody", document), _asked(query)
        text = stream_text(body, asked, is_full=query.full, place=place, limit_bytes=limit_bytes)
        if text is None:
            raise _no_such_place()
        return text

    # The text stands in both channels where the rows do not fit as JSON.
    text = text_within((UNASKED_RESULT - ENVELOPE) // 2, SCHEMA_STREAM_TEXT, draw_text)
    if query.full:
        if len(answer.content) > _FULL_BYTES - _OVERHEAD - len(msgspec.json.encode(text)):
            raise ResourceLimit(
                "This stream's schema is too large for one answer.", hint="Ask with detail compact."
            )
        return Outcome(reader.structured(document, answer), text)
    document["field_capability_legend"] = LEGEND
    return Outcome(reader.structured(_fitted(document, text, is_part=place is not None), answer), text)


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


def _index(document: Json) -> None:
    """Reduce a document to an index: the streams without their fields."""
    for stream in _streams(document):
        for member in _DETAIL:
            stream.pop(member, None)
    document["detail"] = "compact"
    # Whose the token is, and what the pages of the resource server are called, no model needs.
    for member in ("bearer", "links"):
        document.pop(member, None)


def _fitted(document: Json, text: str, *, is_part: bool) -> Json:
    """Return a document that fits beside its text: where it is too large, or a part was asked for, the text stands for its rows."""
    written = len(msgspec.json.encode(text))
    if not is_part and len(msgspec.json.encode(document)) + written <= UNASKED_RESULT - ENVELOPE:
        return document
    connectors = _connectors(document)
    short: Json = {
        "object": "schema",
        "detail": "compact",
        "connector_count": len(connectors),
        "stream_count": sum(1 for _ in _streams(document)),
        "connectors": [],
    }
    meta: Json = document.get("meta") or {}
    if 2 * written <= UNASKED_RESULT - ENVELOPE:
        return {**short, "listing": text, "meta": {**meta, "reduced": _LISTED}}
    space = min(_INDEX_BYTES, TOOL_RESULT - ENVELOPE - written) - _OVERHEAD
    for source in connectors:
        named = {member: source[member] for member in _CONNECTOR if member in source}
        space -= len(msgspec.json.encode(named)) + 1
        if space < 0:
            break
        short["connectors"].append(named)
    return {**short, "meta": {**meta, "reduced": _NOT_LISTED}}


def _connectors(document: Json) -> list[Json]:
    return document.get("connectors") or []


def _streams(document: Json) -> Iterator[Json]:
    for connector in _connectors(document):
        yield from connector.get("streams") or []
