"""``query_records`` and ``aggregate``: pages, changes and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from headgate.errors import InvalidCursor, ResourceLimit
from headgate.mcp.serve.reader import Reader, expanded_of, ref_of, related_rows, take_lengths
from headgate.mcp.serve.results import Outcome, link
from headgate.model.ids import RecordRef
from headgate.model.query import AggregateQuery, ChangesQuery, ListQuery
from headgate.model.wire import AggregateBody, Json, PageBody, RecordBody
from headgate.reading.home import draw
from headgate.reading.port import ReadAnswer, RecordRow
from headgate.text.aggregate import GroupPlace, aggregate_text, cut_keys, key_text, read_place
from headgate.text.ladder import Ladder, binary_facts, encoded_facts, is_whole, record_entry, shorten
from headgate.text.records import records_text
from headgate.text.writing import ENVELOPE, INLINE_CHARS, TOOL_RESULT, smaller_limit

#: How much of a long text stays in its row; the next smaller number is tried while a page is too large.
#: At last the entries of the ladder leave out what the row or the call beside it says too, and then the call, which
#: is the same for every field of a record.
_REPEATED = frozenset({"preview_text", "resource_uri"})
_ALIKE = _REPEATED | {"read", "digest", "json_field", "mime_type", "preview_status", "text_like"}
_INLINE_STEPS: tuple[tuple[int, frozenset[str]], ...] = (
    (INLINE_CHARS, frozenset()),
    (1024, frozenset()),
    (256, frozenset()),
    (64, frozenset()),
    (64, _REPEATED),
    (16, _ALIKE),
)
_HOW_TO_READ = "Call read_tool with the id of the record and with field_path."
_KEY_STEPS = (1024, 256, 64)
_AGGREGATE_BYTES = 90_000
_LINKS = 5
_LINKS_BYTES = 2_500

#: A row as it is made in process, or as it was decoded from another server's JSON.
_PageRow = RecordRow | RecordBody
_read_data = msgspec.json.Decoder(dict[str, Any]).decode


class _ReadRow(msgspec.Struct, frozen=True):
    """A row of a page, its data decoded once for all that look at it, and the id that text and structure show."""

    row: _PageRow
    data: Json
    fetch_id: str


class _RenderedPage(msgspec.Struct):
    """A page as the answer shows it: the whole structure as JSON, and links to files."""

    structured: msgspec.Raw
    links: list[Json]


async def query_records(reader: Reader, query: ListQuery | ChangesQuery) -> Outcome:
    """Answer a page of a stream."""
    answer = await reader.port.records(query, preview_chars=INLINE_CHARS)
    return await draw(len(answer.content), _page_outcome, reader, query, answer)


def _page_outcome(reader: Reader, query: ListQuery | ChangesQuery, answer: ReadAnswer) -> Outcome:
    # In process the rows are at hand, and are not decoded from the body that was made of them.
    page = cast("PageBody", answer.body() if answer.document is None else answer.document)
    rows = [_read_row(reader, row) for row in cast("list[_PageRow]", page.get("data", []))]
    named = _named(reader, rows)
    text = records_text(query.stream, page, named, cursor=query.cursor, windows=reader.windows)
    limit_bytes = TOOL_RESULT - ENVELOPE - _LINKS_BYTES - len(msgspec.json.encode(text))
    rendered = _rendered(reader, answer, page, rows, limit_bytes)
    return Outcome(rendered.structured, text, links=tuple(rendered.links[:_LINKS]), has_trust=True)


async def aggregate(reader: Reader, query: AggregateQuery, cursor: str | None) -> Outcome:
    """Answer a number or its groups; ``cursor`` goes on in the text, at a group or in the key of one."""
    place = GroupPlace(0) if cursor is None else read_place(cursor)
    if place is None:
        raise _no_such_place()
    answer = await reader.port.aggregate(query)
    body: AggregateBody = answer.body()
    text = aggregate_text(body, place.group) if place.offset_chars is None else key_text(body, place)
    if text is None or place.group > len(body.get("groups", ())):
        raise _no_such_place()
    return Outcome(reader.fenced(_with_short_keys(body), answer), text, has_trust=True)


def _no_such_place() -> InvalidCursor:
    return InvalidCursor(
        "The cursor is none that this call printed, or the groups have changed.",
        param="cursor",
        hint="Repeat aggregate without cursor, and pass a cursor as it prints it.",
    )


def _with_short_keys(body: AggregateBody) -> Json:
    """Cut the keys of groups until the structure fits."""
    short = cast("Json", body)
    for limit_chars in _KEY_STEPS:
        short = {**body, "groups": cut_keys(body["groups"], limit_chars)} if "groups" in body else short
        if len(msgspec.json.encode(short)) <= _AGGREGATE_BYTES:
            break
    return short


def _rendered(
    reader: Reader, answer: ReadAnswer, page: PageBody, rows: list[_ReadRow], limit_bytes: int
) -> _RenderedPage:
    """Cut the rows until the page fits, and encode it once for each attempt; nearly all fit at the first."""
    written = b""
    for inline_chars, left_out in _INLINE_STEPS:
        short, entries, links = _cut_rows(reader, rows, inline_chars)
        structured = reader.fenced({**page, "data": short}, answer)
        if entries:
            structured["content_ladder"] = {
                "kind": "record_set",
                "read_tool": reader.windows.tool,
                "records": [_without(left_out, entry) for entry in entries] if left_out else entries,
                **({"note": _HOW_TO_READ} if left_out is _ALIKE else {}),
            }
        written = msgspec.json.encode(structured)
        if len(written) <= limit_bytes:
            return _RenderedPage(msgspec.Raw(written), links)
    if len(rows) <= 1:
        raise ResourceLimit(
            "This record is too large for one answer.",
            hint="Ask for fewer fields.",
            data={"request_id": answer.request_id},
        )
    fitting = smaller_limit(len(rows), limit_bytes, len(written))
    raise ResourceLimit(
        "This page is too large for one answer.",
        hint=f"Ask for a smaller limit, such as limit={fitting}, or for fewer fields.",
        data={"request_id": answer.request_id},
    )


def _without(left_out: frozenset[str], entry: Json) -> Json:
    return {
        kind: [
            {key: fact for key, fact in rung.items() if key not in left_out or "read" not in rung}
            for rung in cast("list[Json]", rungs)
        ]
        if isinstance(rungs, list)
        else rungs
        for kind, rungs in entry.items()
    }


def _cut_rows(
    reader: Reader, rows: list[_ReadRow], inline_chars: int
) -> tuple[list[_PageRow], list[Json], list[Json]]:
    """Return the rows with long texts cut, the ladder entries of what was cut, and links to files."""
    short: list[_PageRow] = []
    entries: list[Json] = []
    links: list[Json] = []
    for row in rows:
        if _is_whole_row(row, inline_chars):
            short.append(_with_fetch_id(row))
            continue
        # A copy: a page that is still too large is cut again from the same rows.
        copy: RecordBody = msgspec.json.decode(msgspec.json.encode(row.row))
        for record in _with_children(copy):
            entry, ladder = shorten_row(reader, record, inline_chars)
            record["fetch_id"] = reader.handles.result_id(ref_of(record))
            if entry:
                entries.append(entry)
                links += file_links(ladder)
        short.append(copy)
    return short, entries, links


def _is_whole_row(read_row: _ReadRow, inline_chars: int) -> bool:
    """Return whether a row is shown as it is: nothing in it is long, nested deeply, a file or a related record."""
    row = read_row.row
    if isinstance(row, RecordRow):
        has_more = row.previews is not msgspec.UNSET or row.expanded is not msgspec.UNSET
    else:
        has_more = "previews" in row or "expanded" in row
    return not has_more and is_whole(read_row.data, inline_chars)


def _read_row(reader: Reader, row: _PageRow) -> _ReadRow:
    if isinstance(row, RecordRow):
        ref = RecordRef(row.connection_id, row.stream, row.id)
        return _ReadRow(row, _read_data(row.data), reader.handles.result_id(ref))
    return _ReadRow(row, row.get("data") or {}, reader.handles.result_id(ref_of(row)))


def _with_fetch_id(read_row: _ReadRow) -> _PageRow:
    """Copy a row with the id that fetch takes: a host may show its model the structure alone."""
    if isinstance(read_row.row, RecordRow):
        return replace(read_row.row, fetch_id=read_row.fetch_id)
    return {**read_row.row, "fetch_id": read_row.fetch_id}


def _named(reader: Reader, rows: list[_ReadRow]) -> Iterator[tuple[str, RecordBody]]:
    """Yield each row with its id, and with its source if there are several."""
    has_sources = len({_source_of(read_row.row)[0] for read_row in rows}) > 1
    for read_row in rows:
        row = read_row.row
        if isinstance(row, RecordRow):
            named: RecordBody = {"data": read_row.data}
            previews = row.previews or None
        else:
            named = cast("RecordBody", {**row, "display_name": None, "expanded": None})
            previews = cast("Json | None", row.get("previews"))
        if previews and "data" in named:
            named["data"] = _without_encoded(named["data"], previews)
        if expanded := _expanded_in(row):
            # By their ids: the structure has the records.
            named["expanded"] = cast("Any", _child_ids(reader, expanded))
        if has_sources:
            named["display_name"] = _source_of(row)[1]
        yield read_row.fetch_id, named


def _without_encoded(data: Json, previews: Mapping[str, Any]) -> Json:
    """Show encoded bytes by what is known about them: texts that are declared so, and beginnings that are."""
    facts = {path: _facts_of(data.get(path), known) for path, known in previews.items()}
    return {**data, **{path: known for path, known in facts.items() if known is not None}}


def _facts_of(value: Any, known: Json) -> Json | None:
    if "mime_type" in known:
        return encoded_facts(known["size_chars"], known["mime_type"])
    # The value is the beginning of a text that is longer.
    facts = binary_facts(value)
    return None if facts is None else {**facts, "size_chars": known["size_chars"]}


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
    """Return the connection of a row, and what to call it."""
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
