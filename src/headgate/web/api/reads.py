"""The reads: each turns its parameters into a query and passes it to the resource server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from msgspec import structs

from headgate.errors import BlobNotFound, InvalidExpand, InvalidFieldPath, InvalidRequest, NotFound
from headgate.model.ids import (
    BlobId,
    FieldName,
    RecordId,
    StreamName,
    blob_id,
    field_name,
    record_id,
    stream_name,
)
from headgate.model.query import (
    DEFAULT_GROUPS,
    DEFAULT_PAGE,
    AggregateQuery,
    BlobQuery,
    ChangesQuery,
    Count,
    Granularity,
    ListQuery,
    Metric,
    Order,
    RecordQuery,
    SchemaQuery,
    SearchMode,
    SearchQuery,
    SearchSort,
    WindowQuery,
)
from headgate.reading.port import PREVIEW_CHARS, BlobAnswer, ReadAnswer
from headgate.web.api.calls import Call
from headgate.web.api.params import NOTHING
from headgate.web.replies import NOSNIFF, PRIVATE, HttpReply

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
_SHOWN_IN_PLACE = frozenset(
    {
        "application/pdf",
        *(f"image/{kind}" for kind in ("avif", "bmp", "gif", "jpeg", "png", "tiff", "webp", "x-icon")),
    }
)
_PREFERRED = re.compile(
    rb"(?:^|[,;])\s*" + PREVIEW_CHARS.encode() + rb"=([1-9]\d{0,5})\s*(?:$|[,;])", re.IGNORECASE
)
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")
_NOT_WITH_CHANGES = ("sort", "order", "count", "window", "view", "connector_key")


def schema(call: Call) -> Awaitable[ReadAnswer]:
    """Say what the token may read and ask."""
    stream = call.given.get("stream")
    query = SchemaQuery(
        stream=None if stream is None else stream_name(stream),
        connection_id=call.given.connection(),
        connector_key=call.given.connector(),
        full=call.given.get("view") != "compact",
        exhaustive=call.given.get("detail") == "full",
    )
    return call.resource_server().schema(query)


def connectors(call: Call) -> Awaitable[ReadAnswer]:
    """List the connectors."""
    return call.resource_server().connectors()


def streams(call: Call) -> Awaitable[ReadAnswer]:
    """List the streams."""
    return call.resource_server().streams(call.given.connection())


def stream(call: Call) -> Awaitable[ReadAnswer]:
    """Describe a stream."""
    return call.resource_server().stream(_stream(call), call.given.connection())


def records(call: Call) -> Awaitable[ReadAnswer]:
    """Read a page, or what changed."""
    query = _list(call) if call.given.get("changes_since") is None else _changes(call)
    return call.resource_server().records(query, preview_chars=_preview_chars(call))


def record(call: Call) -> Awaitable[ReadAnswer]:
    """Read one record."""
    given = call.given
    query = RecordQuery(_stream(call), _record(call))
    if given is not NOTHING:
        query = structs.replace(
            query, connection_id=given.connection(), fields=given.fields(), expand=given.expand()
        )
    return call.resource_server().record(query, preview_chars=_preview_chars(call))


def window(call: Call) -> Awaitable[ReadAnswer]:
    """Read a part of a field."""
    given = call.given
    query = WindowQuery(
        stream=_stream(call),
        record_id=_record(call),
        field=_window_field(given.get("field")),
        connection_id=given.connection(),
        offset_chars=given.get("offset_chars"),
        limit_chars=given.get("limit_chars"),
        q=given.get("q"),
        before_chars=given.get("before_chars"),
        after_chars=given.get("after_chars"),
        cursor=given.get("cursor"),
        as_json=given.get("as") is not None,
    )
    return call.resource_server().window(query)


def aggregate(call: Call) -> Awaitable[ReadAnswer]:
    """Compute a number."""
    given = call.given
    granularity, limit = given.get("granularity"), given.get("limit")
    query = AggregateQuery(
        stream=_stream(call),
        metric=Metric(given.get("metric")),
        field=_optional_field(given.get("field")),
        group_by=_optional_field(given.get("group_by")),
        group_by_time=_optional_field(given.get("group_by_time")),
        granularity=None if granularity is None else Granularity(granularity),
        time_zone=given.get("time_zone"),
        limit=DEFAULT_GROUPS if limit is None else limit,
        filters=given.filters,
        connection_id=given.connection(),
        connector_key=given.connector(),
    )
    return call.resource_server().aggregate(query)


def search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by words."""
    return _search(call, SearchMode.LEXICAL)


def semantic_search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by meaning."""
    return _search(call, SearchMode.SEMANTIC)


def hybrid_search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by words and by meaning."""
    return _search(call, SearchMode.HYBRID)


def _search(call: Call, mode: SearchMode) -> Awaitable[ReadAnswer]:
    given = call.given
    names = given.get("streams")
    query = SearchQuery(
        q=given.get("q"),
        streams=None if names is None else tuple(stream_name(name) for name in names),
        connection_id=given.connection(),
        connector_key=given.connector(),
        limit=given.get("limit") or DEFAULT_PAGE,
        filters=given.filters,
        cursor=given.get("cursor"),
        sort=SearchSort(given.get("sort") or SearchSort.RELEVANCE),
        mode=mode,
    )
    return call.resource_server().search(query, title_chars=_preview_chars(call))


async def blob(call: Call) -> HttpReply:
    """Send a file, or a part of it."""
    query = BlobQuery(_blob(call), call.given.connection())
    whole = await call.resource_server().blob(query)
    span = _span(call.headers.get(b"range", b"").decode("latin-1"), whole.size_bytes)
    if span is None:
        headers = (
            *_blob_headers(whole, 0),
            (b"content-range", f"bytes */{whole.size_bytes}".encode("ascii")),
        )
        return HttpReply(status=416, headers=headers, stream=_no_bytes())
    start, end = span
    is_part = (start, end) != (0, whole.size_bytes)
    headers = _blob_headers(whole, end - start)
    if is_part:
        content_range = f"bytes {start}-{end - 1}/{whole.size_bytes}"
        headers = (*headers, (b"content-range", content_range.encode("ascii")))
    content = _no_bytes() if call.method == "HEAD" else whole.read(start, end)
    return HttpReply(headers=headers, status=206 if is_part else 200, stream=content)


def _preview_chars(call: Call) -> int | None:
    """Read how many characters of a long text the client prefers; a preference that says nothing is ignored."""
    preferred = call.headers.get(b"prefer")
    found = None if preferred is None else _PREFERRED.search(preferred)
    return None if found is None else int(found[1])


def _blob(call: Call) -> BlobId:
    try:
        return blob_id(call.path["blob_id"])
    except InvalidRequest:
        # An id that can be none is the id of nothing, like one that is only hidden.
        raise BlobNotFound(param="blob_id") from None


def _list(call: Call) -> ListQuery:
    given = call.given
    if given is NOTHING:
        return ListQuery(_stream(call))
    order, count = given.get("order"), given.get("count")
    return ListQuery(
        stream=_stream(call),
        connection_id=given.connection(),
        connector_key=given.connector(),
        limit=given.get("limit") or DEFAULT_PAGE,
        order=None if order is None else Order(order),
        sort=given.get("sort"),
        count=Count.NONE if count is None else Count(count),
        fields=given.fields(),
        view=given.get("view"),
        filters=given.filters,
        expand=given.expand(),
        cursor=given.get("cursor"),
        with_extent=given.get("window") == "exact",
    )


def _changes(call: Call) -> ChangesQuery:
    given = call.given
    for param in _NOT_WITH_CHANGES:
        if given.get(param) is not None:
            raise InvalidRequest(f"{param} does not go with changes_since.", param=param)
    if given.filters:
        raise InvalidRequest("filter does not go with changes_since.", param="filter")
    if given.get("expand") or given.expand_limits:
        raise InvalidExpand("expand does not go with changes_since.", param="expand")
    return ChangesQuery(
        stream=_stream(call),
        since=given.get("changes_since"),
        connection_id=given.connection(),
        limit=given.get("limit") or DEFAULT_PAGE,
        fields=given.fields(),
        cursor=given.get("cursor"),
    )


def _stream(call: Call) -> StreamName:
    return stream_name(call.path["stream"])


def _record(call: Call) -> RecordId:
    try:
        return record_id(call.path["id"])
    except InvalidRequest:
        # What can be no key is no record.
        raise NotFound(param="id") from None


def _window_field(name: str) -> FieldName:
    try:
        return field_name(name)
    except InvalidRequest:
        raise InvalidFieldPath(param="field") from None


def _optional_field(name: Any) -> FieldName | None:
    return None if name is None else field_name(name)


def _span(header: str, size: int) -> tuple[int, int] | None:
    """Read a Range header: the bytes to send, all of them without one, None when there are none."""
    asked = _RANGE.fullmatch(header.strip())
    if asked is None or (not asked[1] and not asked[2]):
        return 0, size
    if not asked[1]:
        start, end = max(0, size - int(asked[2])), size
    else:
        start, end = int(asked[1]), min(size, int(asked[2]) + 1 if asked[2] else size)
    return (start, end) if start < end else None


def _blob_headers(found: BlobAnswer, length: int) -> tuple[tuple[bytes, bytes], ...]:
    is_media = _MEDIA_TYPE.fullmatch(found.mime_type) is not None
    media = found.mime_type if is_media else "application/octet-stream"
    place = b"inline" if media in _SHOWN_IN_PLACE else b"attachment"
    return (
        (b"content-type", media.encode("latin-1")),
        (b"content-length", str(length).encode("ascii")),
        (b"accept-ranges", b"bytes"),
        (b"content-disposition", place),
        (b"content-security-policy", b"sandbox; default-src 'none'"),
        PRIVATE,
        NOSNIFF,
    )


async def _no_bytes() -> AsyncIterator[bytes]:
    for piece in list[bytes]():
        yield piece
