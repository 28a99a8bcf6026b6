"""``fetch``: one record as a document, the same in text and structure."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.reader import Reader, ref_of, take_lengths
from headgate.mcp.serve.records import file_links, shorten_row
from headgate.model.query import RecordQuery
from headgate.reading.port import ReadAnswer, RecordRow
from headgate.text.budget import FALLBACK_CHARS, FETCH_CHARS, TOOL_RESULT
from headgate.text.document import document
from headgate.text.ladder import Ladder, looks_whole
from headgate.text.quote import plain

#: How much of the text is shown; a smaller part while the whole, which says it twice, is too large.
_STEPS = (FETCH_CHARS, 8_192, 4_096)
#: Twice a body of this size, escapes of escapes included, cannot be too large.
_SURELY_FITS = 16_000

Json = dict[str, Any]


async def fetch(reader: Reader, query: RecordQuery, asked_id: str) -> Outcome:
    """Answer one record; the document has the id it was asked with."""
    answer = await reader.port.record(query, preview_chars=FETCH_CHARS)
    for inline_chars in _STEPS:
        made, ladder = build(
            reader, answer.body(), asked_id, inline_chars, is_known_whole=_looks_whole(answer)
        )
        # Written once: the text says what the structure says.
        written = msgspec.json.encode(made)
        outcome = Outcome(msgspec.Raw(written), plain(written), links=tuple(file_links(ladder)))
        if len(answer.content) <= _SURELY_FITS or len(msgspec.json.encode(outcome.wire())) <= TOOL_RESULT:
            return outcome
    raise ResourceLimit(
        "This record is too large for one answer.", hint="Ask for fewer fields, or a smaller expand_limit."
    )


def _looks_whole(answer: ReadAnswer) -> bool:
    """Say of a record of our own that nothing of it is long, nested, or a file."""
    row = answer.document
    return (
        isinstance(row, RecordRow)
        and len(answer.content) <= _STEPS[-1]
        and isinstance(row.data, msgspec.Raw)
        and looks_whole((row.data,))
    )


def build(
    reader: Reader, row: Json, asked_id: str, inline_chars: int, *, is_known_whole: bool = False
) -> tuple[Json, Ladder]:
    """Turn a record into its document, its children among the metadata."""
    ref = ref_of(row)
    made, ladder = document(
        row,
        lambda: reader.naming(ref),
        asked_id=asked_id,
        url=reader.url(ref),
        lengths=take_lengths(row),
        inline_chars=inline_chars,
        is_known_whole=is_known_whole,
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
