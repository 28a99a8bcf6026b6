"""``fetch``: one record as a document, the same in text and structure."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome
from headgate.mcp.serve.reader import Reader, expanded_of, ref_of, related_rows, take_lengths
from headgate.mcp.serve.records import file_links, shorten_row
from headgate.model.query import RecordQuery
from headgate.model.wire import ChildrenBody, Json, RecordBody
from headgate.reading.port import ReadAnswer
from headgate.text.budget import FALLBACK_CHARS, FETCH_CHARS, TOOL_RESULT
from headgate.text.document import Document, document
from headgate.text.quote import plain

#: How much of the text is shown; the next smaller number is tried while the answer, which holds it twice, is too large.
_INLINE_STEPS = (FETCH_CHARS, 8_192, 4_096)
#: A body of this size fits twice, even if every character of it has to be escaped, and escaped again.
_SURELY_FITS = 16_000


async def fetch(reader: Reader, query: RecordQuery, asked_id: str) -> Outcome:
    """Answer one record; the document has the id of the call."""
    outcomes: list[Outcome] = []

    def show(answer: ReadAnswer) -> Collection[str]:
        # Made before the answer is logged: a document leaves fields out, and a log names those that left.
        outcome, fields = _outcome(reader, answer, asked_id)
        outcomes.append(outcome)
        return fields

    await reader.port.record(query, preview_chars=FETCH_CHARS, show=show)
    return outcomes[0]


def _outcome(reader: Reader, answer: ReadAnswer, asked_id: str) -> tuple[Outcome, Collection[str]]:
    for inline_chars in _INLINE_STEPS:
        made, shown, ladder = build(reader, answer.body(), asked_id, inline_chars)
        # Encoded once: the text is the same JSON as the structure.
        written = msgspec.json.encode(made)
        outcome = Outcome(msgspec.Raw(written), plain(written), links=tuple(file_links(ladder)))
        if len(answer.content) <= _SURELY_FITS or len(msgspec.json.encode(outcome.wire())) <= TOOL_RESULT:
            return outcome, shown
    raise ResourceLimit(
        "This record is too large for one answer.", hint="Ask for fewer fields, or a smaller expand_limit."
    )


def build(reader: Reader, row: RecordBody, asked_id: str, inline_chars: int) -> Document:
    """Turn a record into its document, its children among the metadata."""
    ref = ref_of(row)
    made = document(
        row,
        lambda: reader.naming(ref),
        asked_id=asked_id,
        url=reader.url(ref),
        lengths=take_lengths(row),
        inline_chars=inline_chars,
    )
    expanded = expanded_of(row)
    if expanded:
        made.members["metadata"]["expanded"] = {
            name: _children(reader, related) for name, related in expanded.items()
        }
    return made


def _children(reader: Reader, related: RecordBody | ChildrenBody | None) -> Json | None:
    if related is None:
        return None
    rows = [_child(reader, row) for row in related_rows(related)]
    return (
        {"has_more": bool(related.get("has_more")), "data": rows}
        if related.get("object") == "list"
        else rows[0]
    )


def _child(reader: Reader, row: RecordBody) -> Json:
    entry, _ = shorten_row(reader, row, FALLBACK_CHARS)
    short: Json = {"id": reader.handles.result_id(ref_of(row)), "data": row.get("data")}
    return {**short, "content_ladder": entry} if entry else short
