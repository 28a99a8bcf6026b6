"""``query_records`` and ``aggregate``: pages, changes and numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import compress, count, repeat
from operator import attrgetter, is_, is_not, not_
from typing import Any, cast

import msgspec

from headgate.errors import ResourceLimit
from headgate.mcp.serve.outcome import Outcome, link
from headgate.mcp.serve.reader import Reader, ref_of, take_lengths
from headgate.model.query import AggregateQuery, ChangesQuery, ListQuery
from headgate.model.reference import RecordRef
from headgate.reading.port import ReadAnswer, RecordRow
from headgate.text.aggregate import aggregate_text
from headgate.text.budget import INLINE_CHARS, TOOL_RESULT
from headgate.text.ladder import Ladder, is_whole, looks_whole, record_entry, shorten
from headgate.text.records import records_text

#: How much of a long text stays in its row; the next smaller one is taken while a page is too large.
_STEPS = (INLINE_CHARS, 1024, 256, 64)
_TEXT_ROOM = 4_000
#: A body of this size with a few rungs cannot grow beyond the whole.
_SURELY_FITS = 40_000
_FEW = 10
_LINKS = 5
#: Enough to find a row by, and short enough to be looked for quickly.
_ROW_BEGINNING = 64

Json = dict[str, Any]
_RAW, _UNSET = msgspec.Raw, msgspec.UNSET
_read_data = msgspec.json.Decoder(dict[str, Any]).decode
_data_of: Callable[[RecordRow], Any] = attrgetter("data")
_previews_of: Callable[[RecordRow], Any] = attrgetter("previews")


class _Drawn(msgspec.Struct):
    """A page on its way to an answer: the structure, the rows for the text, and links to files."""

    structured: Json
    #: Made when they are printed: how many are is not known before.
    shown: Iterator[tuple[RecordRef, Json]]
    links: list[Json]


async def query_records(reader: Reader, query: ListQuery | ChangesQuery) -> Outcome:
    """Answer a page of a stream."""
    answer = await reader.port.records(query, preview_chars=INLINE_CHARS)
    # Pages of changes hold marks of what is gone, and others bring children along: those are read as anybody's.
    is_plain = isinstance(query, ListQuery) and not query.expand
    body, drawn = (is_plain and _as_made(reader, answer)) or _as_read(reader, answer)
    named = ((reader.handles.result_id(ref), row) for ref, row in drawn.shown)
    text = records_text(query.stream, body, named, windows=reader.windows)
    return Outcome(drawn.structured, text, links=tuple(drawn.links[:_LINKS]))


async def aggregate(reader: Reader, query: AggregateQuery) -> Outcome:
    """Answer a number or its groups."""
    answer = await reader.port.aggregate(query)
    body = answer.body()
    return Outcome(reader.structured(body, answer), aggregate_text(body))


def _as_made(reader: Reader, answer: ReadAnswer) -> tuple[Json, _Drawn] | None:
    """Draw a page from what its body was written from: only rows that have to be cut are taken apart.

    None when that is not at hand, or more is to be done about it.
    """
    page = cast("Json | None", answer.document)
    if page is None or len(answer.content) > _SURELY_FITS:
        return None
    rows: list[RecordRow] = page["data"]
    positions = _to_cut(rows)
    if len(positions) > _FEW:
        return None
    content, cut, links = answer.content, dict[int, Json](), list[Json]()
    entries: list[Json] = []
    for position in positions:
        written = msgspec.json.encode(rows[position])
        record = cut[position] = cast("Json", msgspec.json.decode(written))
        entry, ladder = shorten_row(reader, record, INLINE_CHARS)
        entries += [entry] if entry else []
        links += file_links(ladder)
        # The same writer wrote the page, so the row stands in it just like this.
        content = _with_row(content, written, msgspec.json.encode(record))
    structured = _with_ladder(reader, answer, msgspec.Raw(content), entries)
    return page, _Drawn(structured, _shown(rows, cut), links)


def _to_cut(rows: list[RecordRow]) -> list[int]:
    """Say which rows have to be looked into or cut; data is read only if its looks do not tell."""
    # Not in loops of our own: this looks at every row of every page.
    data = list(map(_data_of, rows))
    is_unread = list(map(is_, map(type, data), repeat(_RAW)))
    if looks_whole(list(compress(data, is_unread))):
        # What was taken apart already refers to a file, and what has previews is cut already.
        is_cut = map(is_not, map(_previews_of, rows), repeat(_UNSET))
        return sorted({*compress(count(), map(not_, is_unread)), *compress(count(), is_cut)})
    return [at for at, row in enumerate(rows) if not _is_whole(row)]


def _is_whole(row: RecordRow) -> bool:
    is_unread = row.previews is _UNSET and isinstance(row.data, _RAW)
    return is_unread and is_whole(_read_data(row.data), INLINE_CHARS)


def _shown(rows: list[RecordRow], cut: dict[int, Json]) -> Iterator[tuple[RecordRef, Json]]:
    for position, row in enumerate(rows):
        ref = RecordRef(row.connection_id, row.stream, row.id)
        yield ref, cut.get(position) or {"data": _read_data(row.data)}


def _with_row(content: bytes, old: bytes, new: bytes) -> bytes:
    """Put one row of a page in the place of another."""
    at = content.find(old[:_ROW_BEGINNING])
    while content[at : at + len(old)] != old:
        at = content.index(old[:_ROW_BEGINNING], at + 1)
    return b"%b%b%b" % (content[:at], new, content[at + len(old) :])


def _as_read(reader: Reader, answer: ReadAnswer) -> tuple[Json, _Drawn]:
    """Draw a page from its body, whoever wrote it."""
    structured, links = _fitted(reader, answer)
    body = cast("Json", structured["data"])
    rows = cast("list[Json]", body.get("data", []))
    return body, _Drawn(structured, ((ref_of(row), row) for row in rows), links)


def _fitted(reader: Reader, answer: ReadAnswer) -> tuple[Json, list[Json]]:
    for inline_chars in _STEPS:
        body = answer.body()
        entries, links = _shortened(reader, body, inline_chars)
        structured = _with_ladder(reader, answer, body, entries)
        if len(answer.content) <= _SURELY_FITS and len(entries) <= _FEW:
            return structured, links
        if len(msgspec.json.encode(structured)) <= TOOL_RESULT - _TEXT_ROOM:
            return structured, links
    raise ResourceLimit(
        "This page is too large for one answer.", hint="Ask for a smaller limit, or for fewer fields."
    )


def _with_ladder(reader: Reader, answer: ReadAnswer, data: Json | msgspec.Raw, entries: list[Json]) -> Json:
    structured = reader.structured(data, answer)
    if entries:
        structured["content_ladder"] = {
            "kind": "record_set",
            "read_tool": reader.windows.tool,
            "records": entries,
        }
    return structured


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
