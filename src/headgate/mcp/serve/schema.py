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

_INDEX_BYTES = 60_000
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

Json = dict[str, Any]


async def schema(reader: Reader, query: SchemaQuery) -> Outcome:
    """Answer what may be read and asked."""
    answer = await reader.port.schema(query)
    document = answer.body()
    if document.get("connectors") is not None:
        # The rows stand under their connectors; a second copy would only cost.
        document.pop("streams", None)
    if query.stream is None:
        document = _index(document)
        return Outcome(reader.structured(document, answer), index_text(document))
    if len(answer.content) > TOOL_RESULT - _TEXT_ROOM:
        raise ResourceLimit(
            "This stream's schema is too large for one answer.", hint="Ask with detail compact."
        )
    if not query.full:
        document["field_capability_legend"] = LEGEND
    text = stream_text(document, connection_id=query.connection_id)
    return Outcome(reader.structured(document, answer), text)


def _index(document: Json) -> Json:
    """Keep an index of a document: the streams, and nothing of their fields."""
    for stream in _streams(document):
        for member in _DETAIL:
            stream.pop(member, None)
    document["detail"] = "compact"
    document["field_capability_legend"] = LEGEND
    if len(msgspec.json.encode(document)) > _INDEX_BYTES:
        _strip(document)
    return document


def _strip(document: Json) -> None:
    for stream in _streams(document):
        for member in [member for member in stream if member not in _BARE]:
            del stream[member]
    document.setdefault("meta", {})["reduced"] = "Rows are names only; call schema with stream for the rest."


def _streams(document: Json) -> Iterator[Json]:
    for connector in cast("list[Json]", document.get("connectors") or []):
        yield from cast("list[Json]", connector.get("streams") or [])
