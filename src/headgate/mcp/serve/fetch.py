"""``fetch``: one record as a document, the same in text and structure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.reader import RECORD, Reader, expanded_of, ref_of, related_rows, take_lengths
from headgate.mcp.serve.records import file_links, shorten_row
from headgate.mcp.serve.results import Outcome
from headgate.model.query import RecordQuery
from headgate.model.wire import ChildrenBody, Json, RecordBody
from headgate.reading.port import ReadAnswer
from headgate.text.document import Document, Space, document
from headgate.text.records import telling
from headgate.text.writing import (
    FALLBACK_CHARS,
    FETCH_CHARS,
    FETCH_TEXT,
    TOOL_RESULT,
    UNASKED_RESULT,
    plain,
    size,
)

#: Of values: what fits twice into an answer that did not ask for more, if nearly every character takes one byte.
_UNASKED_CHARS = 10_000
#: Of the fields that were asked for by name, together.
_NAMED_CHARS = 45_000
_LEAST_CHARS = 100
#: A document with less space leaves out more.
_PREVIEWED_CHARS = 1_000
_STAMP = 300
_NO_REST = "This resource server has no windows: the rest of the field cannot be read here."


async def fetch(reader: Reader, query: RecordQuery, asked_id: str | None) -> Outcome:
    """Answer one record; the document has the id of the call, unless that was the bare id of a record."""
    outcomes: list[Outcome] = []

    def show(answer: ReadAnswer) -> Collection[str]:
        # Made before the answer is logged: a document leaves fields out, and a log names those that left.
        outcome, fields = _outcome(reader, answer, asked_id, query)
        outcomes.append(outcome)
        return fields

    await reader.port.record(query, preview_chars=FETCH_CHARS, show=show)
    return outcomes[0]


def _outcome(
    reader: Reader, answer: ReadAnswer, asked_id: str | None, query: RecordQuery
) -> tuple[Outcome, Collection[str]]:
    """Draw a document, with fewer characters as long as the answer, which holds it twice, is too large."""
    named = query.fields or ()
    limit_bytes = (TOOL_RESULT if named or query.expand else UNASKED_RESULT) - _STAMP
    chars = min(FETCH_CHARS * len(named), _NAMED_CHARS) if named else _UNASKED_CHARS
    while chars > _LEAST_CHARS:
        members, fields, ladder = build(reader, answer.body(), asked_id, Space(chars, named))
        if not reader.windows and named:
            _drop_circles(members, named)
        if chars < _PREVIEWED_CHARS:
            _drop_lesser(members)
        # Encoded once: the text is the same JSON as the structure.
        written = msgspec.json.encode(members)
        outcome = Outcome(
            msgspec.Raw(written), plain(written), links=tuple(file_links(ladder)), has_trust=True
        )
        excess = max(
            len(msgspec.json.encode(outcome.wire())) / limit_bytes, size(members["text"]) / FETCH_TEXT
        )
        if excess <= 1:
            return outcome, fields
        chars = int(min(chars / excess, chars * 0.8))
    raise ResourceLimit(
        "This record is too large for one answer.",
        hint="Ask for fewer fields, or a smaller expand_limit; schema with stream names the fields.",
        data={"request_id": answer.request_id},
    )


def _drop_circles(members: Json, requested: Sequence[str]) -> None:
    """Where a server has no windows, take out the calls that would give this very answer again."""
    for rung in _rungs(members):
        if rung.get("read", {}).get("args", {}).get("fields") == list(requested):
            del rung["read"]
            rung["rest"] = _NO_REST


def _drop_lesser(members: Json) -> None:
    """Leave out what a document can do without: a key that its id stands for, and how fields begin that it only names."""
    if members["id"].startswith(RECORD):
        members["metadata"].pop("record_id", None)
    for rung in _rungs(members):
        rung.pop("preview_text", None)


def _rungs(members: Json) -> Iterator[Json]:
    """Yield the entries of what a document does not show whole."""
    ladder: Json = members["metadata"].get("content_ladder", {})
    for rungs in ladder.values():
        yield from cast("list[Json]", rungs) if isinstance(rungs, list) else ()


def build(reader: Reader, row: RecordBody, asked_id: str | None, space: Space) -> Document:
    """Turn a record into its document, its children among the metadata."""
    ref = ref_of(row)
    record_document = document(
        row,
        lambda: reader.naming(ref),
        asked_id=asked_id or reader.handles.result_id(ref),
        url=reader.short_url(ref),
        lengths=take_lengths(row),
        space=space,
    )
    expanded = expanded_of(row)
    if expanded:
        record_document.members["metadata"]["expanded"] = {
            name: _children(reader, related) for name, related in expanded.items()
        }
    return record_document


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
    ref = ref_of(row)
    row["data"] = telling(row.get("data") or {}, ref.record_id)
    ladder = shorten_row(reader, row, ref, FALLBACK_CHARS)
    child: Json = {"id": reader.handles.result_id(ref), "data": row["data"]}
    rungs = ladder.short("read", "resource_uri")
    return {**child, "content_ladder": rungs} if rungs else child
