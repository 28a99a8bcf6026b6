"""The owner's records: connections and streams, a page of a stream, one record with everything, search and files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote, urlencode

from headgate.console.formatting import size
from headgate.console.lines import PREVIEW_CHARS, hit_line, line_of, source_of, stream_path
from headgate.console.pages import Frame, OwnerRequest, View, page, part
from headgate.errors import NotFound
from headgate.model.ids import BlobId, ConnectionId, blob_id, connection_id, record_id, stream_name
from headgate.model.instants import instant
from headgate.model.query import BlobQuery, ExactFilter, Filter, ListQuery, Order, RecordQuery, SearchQuery
from headgate.reading.preview import Span, StreamPlace, stream_line
from headgate.web.replies import NO_STORE, HttpReply
from headgate.wiring import Services

_PAGE = 25
_TITLE_CHARS = 160
_SHORT_CHARS = 120
_READERS_SHOWN = 50
_MOST_FILTERS = 3
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
    """Show a page of a stream, filtered by a field if one is given."""
    where, stream = connection_id(request.places["connection_id"]), stream_name(request.places["stream"])
    server = await console.own_records()
    described = (await server.stream(stream, where)).body()
    capabilities = cast("Mapping[str, Any]", described["field_capabilities"])
    usable = tuple(
        sorted(name for name, capability in capabilities.items() if capability["exact_filter"]["usable"])
    )
    name, value, order = request.query.get("field"), request.query.get("value"), request.query.get("order")
    chosen: tuple[Filter, ...] = ()
    if name in usable and value:
        chosen = (ExactFilter(cast("Any", name), _typed(value, capabilities[name]["type"])),)
    query = ListQuery(
        stream=stream,
        connection_id=where,
        limit=_PAGE,
        order=Order.ASC if order == "asc" else None,
        filters=chosen,
        cursor=request.query.get("cursor") or None,
        with_extent=True,
    )
    server = await console.own_records()
    body = (await server.records(query, preview_chars=PREVIEW_CHARS)).body()
    declared = await stream_line(console.reads, await console.admission.owner_access(), stream, where)
    view = View(
        connection_id=where,
        source=source_of(body["data"][0]) if body["data"] else _named(described, where),
        stream=stream,
        lines=tuple(line_of(declared, row) for row in body["data"]),
        total=body.get("meta", {}).get("window", {}).get("total"),
        filterable=usable,
        field=name,
        value=value,
        order=order,
        next_path=_next(request, body),
    )
    return page("stream.html", Frame(f"{stream} of {view.source}", request, "data"), view)


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show one record with all its fields, its files, and who has read it."""
    stream, key = stream_name(request.places["stream"]), record_id(request.places["id"])
    named = request.query.get("connection_id")
    where = connection_id(named) if named else None
    server = await console.own_records()
    body = (await server.record(RecordQuery(stream, key, where))).body()
    connection = ConnectionId(body["connection_id"])
    declared = await stream_line(console.reads, await console.admission.owner_access(), stream, connection)
    line = line_of(declared, body)
    await console.pump.flush()
    view = View(
        id=key,
        title=line.title,
        source=source_of(body),
        stream=stream,
        stream_path=stream_path(connection, stream),
        when=line.when,
        fields=tuple(
            sorted((_field(name, value, connection) for name, value in body["data"].items()), key=_rank)
        ),
        names=await console.clients.names(),
        readers=await console.activity.who_read(key, stream, connection, limit=_READERS_SHOWN),
    )
    return page("record.html", Frame(view.title, request, "data"), view)


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


def _next(request: OwnerRequest, body: Mapping[str, Any]) -> str | None:
    if not body.get("has_more"):
        return None
    chosen_fields = {
        name: request.query.get(name) for name in ("field", "value", "order") if request.query.get(name)
    }
    path = request.here.partition("?")[0]
    return f"{path}?{urlencode({**chosen_fields, 'cursor': body['next_cursor']})}"


def _typed(value: str, kind: str) -> Any:
    if kind == "boolean":
        return value.lower() in {"true", "yes", "1"}
    if kind in {"integer", "number"}:
        try:
            return int(value) if kind == "integer" else float(value)
        except ValueError:
            raise NotFound("The value must be a number.", hint="Change the filter.") from None
    return value


def _named(described: Mapping[str, Any], where: str) -> str:
    for connection in described.get("granted_connections", ()):
        if connection["connection_id"] == where:
            return str(connection.get("display_name") or where)
    return where


def _rank(field: View) -> int:
    """Short values first, then long texts, then what has parts, then files."""
    return 3 if field.file_path else 2 if field.is_structured else int(len(field.text) > _SHORT_CHARS)


def _field(name: str, value: Any, where: ConnectionId) -> View:
    if isinstance(value, str):
        return View(name=name, text=value, is_structured=False, file_path="", is_image=False)
    if isinstance(value, dict) and isinstance(file := cast("dict[str, Any]", value).get("blob_id"), str):
        media = str(cast("dict[str, Any]", value).get("mime_type", ""))
        path = f"/console/files/{BlobId(file)}?connection_id={quote(where, safe='')}"
        size_bytes = cast("dict[str, Any]", value).get("size_bytes")
        facts = ", ".join(filter(None, (media, size(size_bytes) if isinstance(size_bytes, int) else "")))
        return View(
            name=name, text=facts, file_path=path, is_image=media in _INLINE_TYPES, is_structured=False
        )
    if isinstance(value, dict | list):
        return View(
            name=name,
            text=json.dumps(value, indent=2, ensure_ascii=False),
            is_structured=True,
            file_path="",
            is_image=False,
        )
    return View(
        name=name,
        text="—" if value is None else json.dumps(value),
        is_structured=False,
        file_path="",
        is_image=False,
    )
