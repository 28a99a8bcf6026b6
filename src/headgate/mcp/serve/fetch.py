"""``fetch``: one record as a document, the same in text and structure."""

from __future__ import annotations

from typing import Any, cast

from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.reader import Reader, ref_of, take_lengths
from headgate.mcp.serve.records import file_links, shorten_row
from headgate.model.query import RecordQuery
from headgate.text.budget import FALLBACK_CHARS, FETCH_CHARS
from headgate.text.document import document
from headgate.text.ladder import Ladder
from headgate.text.quote import json_text

Json = dict[str, Any]


async def fetch(reader: Reader, query: RecordQuery, asked_id: str) -> Outcome:
    """Answer one record; the document has the id it was asked with."""
    answer = await reader.port.record(query, preview_chars=FETCH_CHARS)
    row = answer.body()
    made, ladder = build(reader, row, asked_id)
    return Outcome(made, json_text(made), links=tuple(file_links(ladder)))


def build(reader: Reader, row: Json, asked_id: str) -> tuple[Json, Ladder]:
    """Turn a record into its document, its children among the metadata."""
    ref = ref_of(row)
    made, ladder = document(
        row, reader.naming(ref), asked_id=asked_id, url=reader.url(ref), lengths=take_lengths(row)
    )
    expanded = row.get("expanded")
    if isinstance(expanded, dict) and expanded:
        made["metadata"]["expanded"] = {
            name: _children(reader, related) for name, related in cast("Json", expanded).items()
        }
    return made, ladder


def _children(reader: Reader, related: Any) -> Any:
    if not isinstance(related, dict):
        return None
    child = cast("Json", related)
    if child.get("object") != "list":
        return _child(reader, child)
    rows = cast("list[Json]", child.get("data", []))
    return {"has_more": bool(child.get("has_more")), "data": [_child(reader, row) for row in rows]}


def _child(reader: Reader, row: Json) -> Json:
    entry, _ = shorten_row(reader, row, FALLBACK_CHARS)
    short: Json = {"id": reader.handles.result_id(ref_of(row)), "data": row.get("data")}
    return {**short, "content_ladder": entry} if entry else short
