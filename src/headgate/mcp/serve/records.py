"""``query_records`` and ``aggregate``: pages, changes and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec
from msgspec.structs import replace

from headgate.errors import InvalidCursor, ResourceLimit
from headgate.mcp.serve.reader import Reader, expanded_of, ref_of, related_rows, take_lengths
from headgate.mcp.serve.results import Outcome, link
from headgate.model.ids import RecordRef, StreamName
from headgate.model.plan import LINE_CHARS
from headgate.model.query import DEFAULT_PAGE, AggregateQuery, ChangesQuery, ListQuery
from headgate.model.wire import AggregateBody, Json, PageBody, RecordBody
from headgate.reading.home import draw
from headgate.reading.port import ReadAnswer, RecordRow
from headgate.text.aggregate import GroupPlace, aggregate_text, cut_keys, key_text, read_place
from headgate.text.ladder import Ladder, binary_facts, encoded_facts, is_whole, shorten
from headgate.text.records import records_text
from headgate.text.writing import (
    ENVELOPE,
    INLINE_CHARS,
    QUERY_TEXT,
    ROWS_BYTES,
    TOOL_RESULT,
    UNASKED_RESULT,
    USUAL_PAGE,
    page_bytes,
    smaller_limit,
    text_within,
)

#: How much of a long text stays in its row, after what was asked of the server, while a page is too large.
_INLINE_STEPS = (64, 16)
_HOW_TO_READ = "Call read_tool with id=fetch_id, field_path and offset_chars to read a field on; name those of more_fields in fields."
_KEY_STEPS = (1024, 256, 64, 16)
#: A row that alone is larger than its share of a page, without all its fields but one.
_ROW_BYTES = 20_000
_LEAST_TEXT = 2_500
_LINKS = 5
_LINKS_BYTES = 2_500

#: A row as it is made in process, or as it was decoded from another server's JSON.
_PageRow = RecordRow | RecordBody
_read_data = msgspec.json.Decoder(dict[str, Any]).decode


class _ReadRow(NamedTuple):
    """A row of a page, its data decoded once for all that look at it, and the id that text and structure show."""

    row: _PageRow
    data: Json
    ref: RecordRef
    fetch_id: str


class _RenderedPage(msgspec.Struct):
    """A page as the answer shows it: the whole structure as JSON, and links to files."""

    structured: msgspec.Raw
    links: list[Json]


async def query_records(reader: Reader, query: ListQuery | ChangesQuery) -> Outcome:
    """Answer a page of a stream."""
    limit_bytes = page_bytes(query.limit, DEFAULT_PAGE, ROWS_BYTES)
    # A field that was asked for by name gets its share of the whole page.
    share = limit_bytes // (query.limit * len(query.fields)) if query.fields else 0
    chars = min(max(LINE_CHARS, share), INLINE_CHARS)
    answer = await reader.port.records(query, preview_chars=chars, page_bytes=limit_bytes)
    return await draw(len(answer.content), _page_outcome, reader, query, answer, chars)


def _page_outcome(
    reader: Reader, query: ListQuery | ChangesQuery, answer: ReadAnswer, inline_chars: int
) -> Outcome:
    # In process the rows are at hand, and are not decoded from the body that was made of them.
    page = cast("PageBody", answer.body() if answer.document is None else answer.document)
    rows = [_read_row(reader, query.stream, row) for row in cast("list[_PageRow]", page.get("data", []))]
    named = list(_named(reader, rows, page))
    most = _most_bytes(query)
    # The server ends a page before it is full, but not before its first row, which can be larger than a page.
    rows_limit = most // 2 if len(rows) == 1 else TOOL_RESULT - ENVELOPE - _LINKS_BYTES - 2 * QUERY_TEXT
    rendered = _rendered(reader, answer, page, rows, inline_chars, rows_limit)
    links = tuple(rendered.links[:_LINKS])

    def draw_text(limit_bytes: int) -> str:
        windows = reader.windows
        return records_text(
            query.stream, page, named, cursor=query.cursor, windows=windows, limit_bytes=limit_bytes
        )

    space = most - ENVELOPE - len(msgspec.json.encode(links)) - len(bytes(rendered.structured))
    # A server that keeps no cursors gives long ones.
    least = _LEAST_TEXT + len(str(page.get("next_cursor") or ""))
    text = text_within(max(space, least), QUERY_TEXT, draw_text)
    return Outcome(rendered.structured, text, links=links, has_trust=True)


def _most_bytes(query: ListQuery | ChangesQuery) -> int:
    """Return how many bytes both channels of a page may have together."""
    if query.fields or (isinstance(query, ListQuery) and query.expand):
        return TOOL_RESULT
    return USUAL_PAGE if query.limit <= DEFAULT_PAGE else UNASKED_RESULT


async def aggregate(reader: Reader, query: AggregateQuery, cursor: str | None) -> Outcome:
    """Answer a number or its groups; ``cursor`` goes on in the text, at a group or in the key of one."""
    place = GroupPlace(0) if cursor is None else read_place(cursor)
    if place is None:
        raise _no_such_place()
    answer = await reader.port.aggregate(query, page_bytes=ROWS_BYTES)
    body: AggregateBody = answer.body()
    text = (
        aggregate_text(body, place.group, query.filters)
        if place.offset_chars is None
        else key_text(body, place)
    )
    if text is None or place.group > len(body.get("groups", ())):
        raise _no_such_place()
    space = UNASKED_RESULT - ENVELOPE - len(msgspec.json.encode(text))
    return Outcome(reader.fenced(_with_short_keys(body, space), answer), text, has_trust=True)


def _no_such_place() -> InvalidCursor:
    return InvalidCursor(
        "The cursor is none that this call printed, or the groups have changed.",
        param="cursor",
        hint="Repeat aggregate without cursor, and pass a cursor as it prints it.",
    )


def _with_short_keys(body: AggregateBody, limit_bytes: int) -> Json:
    """Cut the keys of groups until the structure fits."""
    short = cast("Json", body)
    for limit_chars in _KEY_STEPS:
        short = {**body, "groups": cut_keys(body["groups"], limit_chars)} if "groups" in body else short
        if len(msgspec.json.encode(short)) <= limit_bytes:
            break
    return short


def _rendered(
    reader: Reader,
    answer: ReadAnswer,
    page: PageBody,
    rows: list[_ReadRow],
    inline_chars: int,
    limit_bytes: int,
) -> _RenderedPage:
    """Cut what is long in the rows, and encode the page; nearly all fit at the first attempt."""
    written, links = b"", list[Json]()
    for shown, chars in _steps(rows, inline_chars):
        short, entries, links = _cut_rows(reader, shown, chars)
        structured = reader.fenced({**page, "data": short}, answer)
        if entries:
            structured["content_ladder"] = {
                "kind": "record_set",
                "read_tool": reader.windows.tool,
                "records": entries,
                "note": _HOW_TO_READ,
            }
        written = msgspec.json.encode(structured)
        if len(written) <= limit_bytes:
            return _RenderedPage(msgspec.Raw(written), links)
    if len(rows) <= 1:
        if len(written) <= _ROW_BYTES:
            # Its id and the cursor, which no step cuts, take more than their share.
            return _RenderedPage(msgspec.Raw(written), links)
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


def _steps(rows: list[_ReadRow], inline_chars: int) -> Iterator[tuple[list[_ReadRow], int]]:
    """Yield the rows and how much of a long text each shows, from the most to the least; at last a row loses fields."""
    for chars in (inline_chars, *_INLINE_STEPS):
        yield rows, chars
    if len(rows) == 1:
        fields = len(rows[0].data)
        while fields > 1:
            fields //= 2
            yield [_with_first_fields(rows[0], fields)], _INLINE_STEPS[0]


def _with_first_fields(read_row: _ReadRow, fields: int) -> _ReadRow:
    """Return a row with so many of its fields, and the number of the others."""
    row: RecordBody = msgspec.json.decode(msgspec.json.encode(read_row.row))
    data = dict(islice(read_row.data.items(), fields))
    row["data"] = data
    row["previews"] = {name: known for name, known in row.get("previews", {}).items() if name in data}
    row["more_fields"] = len(read_row.data) - fields
    return read_row._replace(row=row, data=data)


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
            ref = row.ref if record is copy else ref_of(record)
            ladder = shorten_row(reader, record, ref, inline_chars)
            record["fetch_id"] = reader.handles.result_id(ref)
            if ladder.members():
                entries.append({"fetch_id": record["fetch_id"], **ladder.short()})
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


def _read_row(reader: Reader, stream: StreamName, row: _PageRow) -> _ReadRow:
    if isinstance(row, RecordRow):
        ref, data = RecordRef(row.connection_id, stream, row.id), _read_data(row.data)
    else:
        # In the short form the page names the stream.
        ref, data = ref_of({"stream": stream, **row}), row.get("data") or {}
    return _ReadRow(row, data, ref, reader.handles.result_id(ref))


def _with_fetch_id(read_row: _ReadRow) -> _PageRow:
    """Copy a row with the id that fetch takes: a host may show its model the structure alone."""
    if isinstance(read_row.row, RecordRow):
        return replace(read_row.row, fetch_id=read_row.fetch_id)
    return {**read_row.row, "fetch_id": read_row.fetch_id}


def _named(reader: Reader, rows: list[_ReadRow], page: PageBody) -> Iterator[tuple[str, RecordBody]]:
    """Yield each row with its id, and with what its source is called."""
    sources: list[Json] = cast("Any", page.get("sources") or [])
    labels = {source.get("connection_id"): _label(source) for source in sources}
    for read_row in rows:
        row = read_row.row
        previews: Json | None
        if isinstance(row, RecordRow):
            named: RecordBody = {"data": read_row.data}
            previews = row.previews or None
        else:
            named = cast("RecordBody", {**row, "expanded": None})
            previews = cast("Json | None", row.get("previews"))
        if previews and "data" in named:
            named["data"] = _without_encoded(named["data"], previews)
            named["previews"] = cast("Any", previews)
        if expanded := _expanded_in(row):
            # By their ids: the structure has the records.
            named["expanded"] = cast("Any", _child_ids(reader, expanded))
        named["display_name"] = labels.get(read_row.ref.connection_id) or _label(cast("Json", named))
        yield read_row.fetch_id, named


def _label(source: Json) -> str:
    named = (source.get(member) for member in ("display_name", "connector_key", "connection_id"))
    return next((str(text) for text in named if text), "")


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


def shorten_row(reader: Reader, row: RecordBody, ref: RecordRef, inline_chars: int) -> Ladder:
    """Cut one row in place, and return the ladder of what was cut."""
    data = row.get("data") or {}
    short, ladder = shorten(data, reader.naming(ref), inline_chars=inline_chars, lengths=take_lengths(row))
    if short is not data:
        row["data"] = short
    return ladder


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
