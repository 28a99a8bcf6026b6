"""``query_records`` and ``aggregate``: pages, changes and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome, link
from headgate.mcp.serve.reader import Reader, expanded_of, ref_of, related_rows, take_lengths
from headgate.model.query import AggregateQuery, ChangesQuery, ListQuery
from headgate.model.reference import RecordRef
from headgate.model.wire import AggregateBody, Json, PageBody, RecordBody
from headgate.reading.port import ReadAnswer, RecordRow
from headgate.text.aggregate import aggregate_text
from headgate.text.budget import ENVELOPE, INLINE_CHARS, TOOL_RESULT, smaller_limit
from headgate.text.ladder import Ladder, is_whole, record_entry, shorten
from headgate.text.records import records_text

#: How much of a long text stays in its row; the next smaller number is tried while a page is too large.
#: At last the entries of the ladder leave out what the row or the call beside it says too.
_INLINE_STEPS = ((INLINE_CHARS, False), (1024, False), (256, False), (64, False), (64, True))
_REPEATED = ("preview_text", "resource_uri")
_LINKS = 5
_LINKS_BYTES = 2_500

#: A row as it is made in process, or as it was decoded from another server's JSON.
_PageRow = RecordRow | RecordBody
_read_data = msgspec.json.Decoder(dict[str, Any]).decode


class _RenderedPage(msgspec.Struct):
    """A page as the answer shows it: the whole structure as JSON, and links to files."""

    structured: msgspec.Raw
    links: list[Json]


async def query_records(reader: Reader, query: ListQuery | ChangesQuery) -> Outcome:
    """Answer a page of a stream."""
    answer = await reader.port.records(query, preview_chars=INLINE_CHARS)
    # In process the rows are at hand, and are not decoded from the body that was made of them.
    page = cast("PageBody", answer.body() if answer.document is None else answer.document)
    rows = _named(reader, cast("list[_PageRow]", page.get("data", [])))
    text = records_text(query.stream, page, rows, cursor=query.cursor, windows=reader.windows)
    limit_bytes = TOOL_RESULT - ENVELOPE - _LINKS_BYTES - len(msgspec.json.encode(text))
    rendered = _rendered(reader, answer, page, limit_bytes)
    return Outcome(rendered.structured, text, links=tuple(rendered.links[:_LINKS]))


async def aggregate(reader: Reader, query: AggregateQuery) -> Outcome:
    """Answer a number or its groups."""
    answer = await reader.port.aggregate(query)
    body: AggregateBody = answer.body()
    return Outcome(reader.structured(body, answer), aggregate_text(body))


def _rendered(reader: Reader, answer: ReadAnswer, page: PageBody, limit_bytes: int) -> _RenderedPage:
    """Cut the rows until the page fits, and encode it once for each attempt; nearly all fit at the first.

    Raises:
        ResourceLimit: the page is too large even with the shortest texts.
    """
    written = b""
    for inline_chars, is_lean in _INLINE_STEPS:
        rows, entries, links = _cut_rows(reader, page, inline_chars)
        structured = reader.structured({**page, "data": rows}, answer)
        if entries:
            structured["content_ladder"] = {
                "kind": "record_set",
                "read_tool": reader.windows.tool,
                "records": [_without_repeats(entry) for entry in entries] if is_lean else entries,
            }
        written = msgspec.json.encode(structured)
        if len(written) <= limit_bytes:
            return _RenderedPage(msgspec.Raw(written), links)
    fitting = smaller_limit(len(page.get("data", ())), limit_bytes, len(written))
    raise ResourceLimit(
        "This page is too large for one answer.",
        hint=f"Ask for a smaller limit, such as limit={fitting}, or for fewer fields.",
    )


def _without_repeats(entry: Json) -> Json:
    return {
        kind: [
            {key: fact for key, fact in rung.items() if key not in _REPEATED or "read" not in rung}
            for rung in cast("list[Json]", rungs)
        ]
        if isinstance(rungs, list)
        else rungs
        for kind, rungs in entry.items()
    }


def _cut_rows(
    reader: Reader, page: PageBody, inline_chars: int
) -> tuple[list[_PageRow], list[Json], list[Json]]:
    """Give the rows with long texts cut, the ladder entries of what was cut, and links to files."""
    rows: list[_PageRow] = []
    entries: list[Json] = []
    links: list[Json] = []
    for row in cast("list[_PageRow]", page.get("data", [])):
        if _is_whole_row(row, inline_chars):
            rows.append(row)
            continue
        # A copy: a page that is still too large is cut again from the same rows.
        copy: RecordBody = msgspec.json.decode(msgspec.json.encode(row))
        for record in _with_children(copy):
            entry, ladder = shorten_row(reader, record, inline_chars)
            if entry:
                entries.append(entry)
                links += file_links(ladder)
        rows.append(copy)
    return rows, entries, links


def _is_whole_row(row: _PageRow, inline_chars: int) -> bool:
    """Say whether a row is shown as it is: nothing in it is long, nested deeply, a file or a related record."""
    if not isinstance(row, RecordRow):
        has_more = "previews" in row or "expanded" in row
        return not has_more and is_whole(row.get("data") or {}, inline_chars)
    has_more = row.previews is not msgspec.UNSET or row.expanded is not msgspec.UNSET
    return not has_more and is_whole(_data_of(row), inline_chars)


def _data_of(row: RecordRow) -> Json:
    return _read_data(row.data) if isinstance(row.data, msgspec.Raw) else row.data


def _named(reader: Reader, rows: list[_PageRow]) -> Iterator[tuple[str, RecordBody]]:
    """Give each row with its id, and with its source if there are several. Rows are read as far as they are printed."""
    has_sources = len({_source_of(row)[0] for row in rows}) > 1
    for row in rows:
        if isinstance(row, RecordRow):
            ref = RecordRef(row.connection_id, row.stream, row.id)
            named: RecordBody = {"data": _data_of(row)}
        else:
            ref = ref_of(row)
            named = cast("RecordBody", {**row, "display_name": None, "expanded": None})
        if expanded := _expanded_in(row):
            # By their ids: the structure has the records.
            named["expanded"] = cast("Any", _child_ids(reader, expanded))
        if has_sources:
            named["display_name"] = _source_of(row)[1]
        yield reader.handles.result_id(ref), named


def _expanded_in(row: _PageRow) -> Any:
    return row.expanded or None if isinstance(row, RecordRow) else row.get("expanded")


def _child_ids(reader: Reader, expanded: Any) -> dict[str, list[str]]:
    # In process the children are rows with encoded data: read them as a client reads them.
    relations = expanded_of({"expanded": msgspec.json.decode(msgspec.json.encode(expanded))})
    return {
        name: [reader.handles.result_id(ref_of(child)) for child in related_rows(related)]
        for name, related in relations.items()
    }


def _source_of(row: _PageRow) -> tuple[str, str]:
    """Give the connection of a row, and what to call it."""
    if isinstance(row, RecordRow):
        return row.connection_id, row.display_name or row.connector_key
    connection = str(row.get("connection_id") or "")
    return connection, str(row.get("display_name") or row.get("connector_key") or connection)


def shorten_row(reader: Reader, row: RecordBody, inline_chars: int) -> tuple[Json | None, Ladder]:
    """Cut one row in place, and give its ladder entry if anything was cut."""
    lengths = take_lengths(row)
    naming = reader.naming(ref_of(row))
    data = row.get("data") or {}
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


def _with_children(row: RecordBody) -> Iterator[RecordBody]:
    yield row
    for related in expanded_of(row).values():
        yield from related_rows(related)
