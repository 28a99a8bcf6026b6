"""``query_records`` and ``aggregate``: pages, changes and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypedDict, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome, link
from headgate.mcp.serve.reader import Reader, ref_of, take_lengths
from headgate.model.query import AggregateQuery, ChangesQuery, ListQuery
from headgate.reading.port import Answer
from headgate.text.aggregate import aggregate_text
from headgate.text.budget import INLINE_CHARS, TOOL_RESULT
from headgate.text.ladder import Ladder, is_whole, record_entry, shorten
from headgate.text.records import SHOWN, records_text

#: How much of a long text stays in its row; the next smaller one is taken while a page is too large.
_STEPS = (INLINE_CHARS, 1024, 256, 64)
_TEXT_ROOM = 4_000
#: A body of this size with a few rungs cannot grow beyond the whole.
_SURELY_FITS = 40_000
_FEW = 10
_LINKS = 5

Json = dict[str, Any]


class _Row(TypedDict, total=False):
    """What of a row its text, its id and the look for long values need."""

    id: str
    stream: str
    connection_id: str
    data: dict[str, Any]
    deleted: bool
    deleted_at: str
    previews: msgspec.Raw
    expanded: msgspec.Raw


class _Page(TypedDict, total=False):
    data: list[_Row]
    has_more: bool
    next_cursor: str | None
    next_changes_since: str | None
    meta: dict[str, Any]


_read_page = msgspec.json.Decoder(_Page).decode


async def query_records(reader: Reader, query: ListQuery | ChangesQuery) -> Outcome:
    """Answer a page of a stream."""
    answer = await reader.port.records(query, preview_chars=INLINE_CHARS)
    page = _as_it_came(answer)
    if page is not None:
        structured, links = reader.structured(msgspec.Raw(answer.content), answer), list[Json]()
    else:
        structured, links = _fitted(reader, answer)
        page = cast("Json", structured["data"])
    rows = cast("list[Json]", page.get("data", []))
    ids = [reader.handles.result_id(ref_of(row)) for row in rows[:SHOWN]]
    text = records_text(query.stream, page, ids, windows=reader.windows)
    return Outcome(structured, text, links=tuple(links[:_LINKS]))


async def aggregate(reader: Reader, query: AggregateQuery) -> Outcome:
    """Answer a number or its groups."""
    answer = await reader.port.aggregate(query)
    body = answer.body()
    return Outcome(reader.structured(body, answer), aggregate_text(body))


def _as_it_came(answer: Answer) -> Json | None:
    """Give what the text needs of a page of which nothing has to be cut; such a page is passed on unread."""
    if len(answer.content) > _SURELY_FITS:
        return None
    try:
        page = _read_page(answer.content)
    except msgspec.MsgspecError:
        # Another's server may answer in ways of its own; the slow way takes them as they are.
        return None
    for row in page.get("data", ()):
        if "previews" in row or "expanded" in row or not is_whole(row.get("data", {}), INLINE_CHARS):
            return None
    return cast("Json", page)


def _fitted(reader: Reader, answer: Answer) -> tuple[Json, list[Json]]:
    for inline_chars in _STEPS:
        body = answer.body()
        entries, links = _shortened(reader, body, inline_chars)
        structured = reader.structured(body, answer)
        if entries:
            structured["content_ladder"] = {
                "kind": "record_set",
                "read_tool": reader.windows.tool,
                "records": entries,
            }
        if len(answer.content) <= _SURELY_FITS and len(entries) <= _FEW:
            return structured, links
        if len(msgspec.json.encode(structured)) <= TOOL_RESULT - _TEXT_ROOM:
            return structured, links
    raise ResourceLimit(
        "This page is too large for one answer.", hint="Ask for a smaller limit, or for fewer fields."
    )


def _shortened(reader: Reader, body: Json, inline_chars: int) -> tuple[list[Json], list[Json]]:
    """Cut the rows of a body in place; give the rungs of what was cut, and links to files."""
    rows = cast("list[Json]", body.get("data", []))
    entries: list[Json] = []
    links: list[Json] = []
    for row in rows:
        for record in _with_children(row) if "expanded" in row else (row,):
            if "previews" not in record and is_whole(record.get("data") or {}, inline_chars):
                continue
            entry, ladder = shorten_row(reader, record, inline_chars)
            if entry:
                entries.append(entry)
                links += file_links(ladder)
    return entries, links


def shorten_row(reader: Reader, row: Json, inline_chars: int) -> tuple[Json | None, Ladder]:
    """Cut one row in place, and give its rungs if it has any."""
    lengths = take_lengths(row)
    naming = reader.naming(ref_of(row))
    data = cast("Json", row.get("data") or {})
    short, ladder = shorten(data, naming, inline_chars=inline_chars, lengths=lengths)
    if short is not data:
        row["data"] = short
    return (record_entry(row, naming, ladder) if ladder.members() else None), ladder


def file_links(ladder: Ladder) -> list[Json]:
    """Link the files that a record refers to."""
    return [
        link(
            rung["resource_uri"],
            rung["field_path"],
            mime_type=rung.get("mime_type"),
            size=rung.get("size_bytes"),
        )
        for rung in ladder.binary_fields
        if "resource_uri" in rung
    ]


def _with_children(row: Json) -> Iterator[Json]:
    yield row
    expanded = row.get("expanded")
    for related in cast("Json", expanded).values() if isinstance(expanded, dict) else ():
        if isinstance(related, dict):
            child = cast("Json", related)
            yield from cast("list[Json]", child["data"]) if child.get("object") == "list" else [child]
