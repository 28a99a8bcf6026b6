"""The owner's records: connections and streams, a page of a stream, one record with everything, search and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from headgate.console.lines import PREVIEW_CHARS, hit_line, line_of, stream_path
from headgate.console.narrowed import Chosen, cells, filterable, time_field
from headgate.console.pages import Frame, OwnerRequest, View, page, part
from headgate.errors import InvalidRequest
from headgate.model.ids import blob_id, connection_id, stream_name
from headgate.model.instants import instant
from headgate.model.query import BlobQuery, ListQuery, Order, SearchQuery
from headgate.reading.preview import Span, StreamPlace
from headgate.web.replies import NO_STORE, HttpReply
from headgate.wiring import Services

_PAGE = 25
_TITLE_CHARS = 160
_SHORT_CHARS = 120
_READERS_SHOWN = 50
_INLINE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


async def connection_cards(console: Services) -> tuple[View, ...]:
    """Describe every connection, the largest first."""
    server = await console.own_records()
    body = (await server.streams()).body()
    by_connection: dict[str, list[Mapping[str, Any]]] = {}
    for row in cast("list[Mapping[str, Any]]", body["data"]):
        by_connection.setdefault(row["connection_id"], []).append(row)
    stored = (
        ((row["connection_id"], row["name"]), (row["record_count"], row.get("last_updated")))
        for rows in by_connection.values()
        for row in rows
    )
    dated = await console.spans.spans(await console.admission.owner_access(), stored)
    cards = [_card(rows, dated) for rows in by_connection.values()]
    return tuple(sorted(cards, key=lambda card: -card.records))


def _card(rows: list[Mapping[str, Any]], dated: Mapping[StreamPlace, Span | None]) -> View:
    times = [at for row in rows if (at := instant(row.get("last_updated") or "")) is not None]
    streams = [
        View(
            name=row["name"],
            records=row["record_count"],
            path=stream_path(row["connection_id"], row["name"]),
            span=dated.get((row["connection_id"], row["name"])),
        )
        for row in sorted(rows, key=lambda row: -row["record_count"])
    ]
    first = rows[0]
    return View(
        id=first["connection_id"],
        name=first.get("display_name") or first["connector_key"],
        connector=first["connector_key"],
        records=sum(stream.records for stream in streams),
        streams=tuple(streams),
        updated_at=max(times, default=None),
        span=_hull([stream.span for stream in streams if stream.span is not None]),
    )


def _hull(spans: Sequence[Span]) -> Span | None:
    return (min(span[0] for span in spans), max(span[1] for span in spans)) if spans else None


async def show_all(console: Services, request: OwnerRequest) -> HttpReply:
    """Show every connection with its streams."""
    return page("data.html", Frame("Data", request, "data"), View(cards=await connection_cards(console)))


async def search(console: Services, request: OwnerRequest) -> HttpReply:
    """Search all records, or those of one stream."""
    q, stream, where = (request.query.get(name).strip() for name in ("q", "stream", "connection_id"))
    view = View(q=q, hits=(), next_path=None, stream=stream, connection_id=where)
    if q:
        query = SearchQuery(
            q=q,
            streams=(stream_name(stream),) if stream else None,
            connection_id=connection_id(where) if where else None,
            limit=_PAGE,
            cursor=request.query.get("cursor") or None,
        )
        server = await console.own_records()
        body = (await server.search(query, line_chars=_TITLE_CHARS)).body()
        hits = tuple(hit_line(row) for row in body["data"])
        cursor = body.get("next_cursor")
        chosen = {"q": q, "stream": stream, "connection_id": where, "cursor": cursor or ""}
        asks = urlencode({name: value for name, value in chosen.items() if value})
        view = View(
            q=q,
            hits=hits,
            next_path=None if cursor is None else f"/console/search?{asks}",
            stream=stream,
            connection_id=where,
        )
    if request.is_partial:
        return part("hits.html", request, view)
    return page("search.html", Frame("Search", request, "data"), view)


async def browse(console: Services, request: OwnerRequest) -> HttpReply:
    """Show a page of a stream: between days, with some words, filtered by a field, as lines or with chosen columns."""
    where, stream = connection_id(request.places["connection_id"]), stream_name(request.places["stream"])
    server = await console.own_records()
    described = (await server.stream(stream, where)).body()
    connector = (await console.reads.catalog()).connections[where].connector_key
    declared = (await console.reads.catalog()).declarations[connector].streams[stream]
    chosen = Chosen.of(request.query, declared)
    problem, body = "", dict[str, Any](data=[])
    try:
        filters, cursor = chosen.filters(declared), request.query.get("cursor") or None
        server = await console.own_records()
        if chosen.words:
            search = SearchQuery(
                chosen.words, (stream,), where, filters=filters, limit=_PAGE, cursor=cursor, collapse=False
            )
            body = (await server.search(search, line_chars=_TITLE_CHARS)).body()
        else:
            order = Order.ASC if chosen.order == "asc" else None
            query = ListQuery(
                stream,
                connection_id=where,
                limit=_PAGE,
                order=order,
                filters=filters,
                cursor=cursor,
                with_extent=True,
            )
            body = (await server.records(query, preview_chars=PREVIEW_CHARS)).body()
    except InvalidRequest as error:
        problem = error.message
    rows = body["data"]
    view = View(
        connection_id=where,
        source=_named(described, where),
        stream=stream,
        label=declared.label or stream,
        lines=tuple(hit_line(row) if chosen.words else line_of(declared.line, row) for row in rows),
        rows=() if chosen.words else tuple(cells(row, declared, chosen.columns) for row in rows),
        total=body.get("meta", {}).get("window", {}).get("total"),
        filterable=filterable(described["field_capabilities"]),
        has_days=time_field(declared) is not None,
        fields=tuple(declared.fields),
        chosen=chosen,
        problem=problem,
        next_path=_next(request, chosen, body),
    )
    notice = "The record is erased." if request.query.get("done") == "erased" else ""
    return page("stream.html", Frame(f"{view.label} of {view.source}", request, "data", notice), view)


async def show_file(console: Services, request: OwnerRequest) -> HttpReply:
    """Send a file: pictures to be shown in the page, everything else to be saved."""
    where = request.query.get("connection_id")
    query = BlobQuery(blob_id(request.places["blob_id"]), connection_id(where) if where else None)
    server = await console.own_records()
    file = await server.blob(query)
    is_shown = file.mime_type in _INLINE_TYPES
    media = file.mime_type if is_shown else "application/octet-stream"
    headers = (
        (b"content-type", media.encode("latin-1", "replace")),
        (b"content-disposition", b"inline" if is_shown else b"attachment"),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        # A page of another port of this machine must not learn from it which files are here.
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"content-length", b"%d" % file.size_bytes),
        NO_STORE,
    )
    return HttpReply(headers=headers, stream=file.content)


def _next(request: OwnerRequest, chosen: Chosen, body: Mapping[str, Any]) -> str | None:
    cursor = body.get("next_cursor")
    if cursor is None:
        return None
    return f"{request.here.partition('?')[0]}?{urlencode([*chosen.parameters(), ('cursor', cursor)])}"


def _named(described: Mapping[str, Any], where: str) -> str:
    for connection in described.get("granted_connections", ()):
        if connection["connection_id"] == where:
            return str(connection.get("display_name") or where)
    return where
