"""The reads: each turns its parameters into a query and passes it to the resource server."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from msgspec import structs

from headgate.errors import BlobNotFound, InvalidFieldPath, InvalidRequest, NotFound
from headgate.model import reads
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
from headgate.model.query import BlobQuery, ChangesQuery, ListQuery, RecordQuery, SearchMode, WindowQuery
from headgate.model.reads import AggregateRead, Read, RecordsRead, SchemaRead, SearchRead
from headgate.reading.port import BY_BOTH, PAGE_BYTES, PREVIEW_CHARS, BlobAnswer, ReadAnswer
from headgate.web.api.calls import NOTHING, Call
from headgate.web.replies import NOSNIFF, PRIVATE, HttpReply

_RANGE = re.compile(r"bytes=(\d{0,15})-(\d{0,15})")
_SHOWN_IN_PLACE = frozenset(
    {
        "application/pdf",
        *(f"image/{kind}" for kind in ("avif", "bmp", "gif", "jpeg", "png", "tiff", "webp", "x-icon")),
    }
)
_PREFERRED = {
    name: re.compile(rb"(?:^|[,;])\s*" + name.encode() + rb"=([1-9]\d{0,5})\s*(?=$|[,;])", re.IGNORECASE)
    for name in (PREVIEW_CHARS, PAGE_BYTES, BY_BOTH)
}
_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+")
_Read = TypeVar("_Read", bound=Read)


def schema(call: Call) -> Awaitable[ReadAnswer]:
    """Return what the token may read and ask."""
    params = call.given
    is_exhaustive = params.get("detail") == "full"
    query = reads.schema_query(
        _read(call, SchemaRead), full=params.get("view") != "compact", exhaustive=is_exhaustive
    )
    return call.resource_server().schema(query)


def connectors(call: Call) -> Awaitable[ReadAnswer]:
    return call.resource_server().connectors()


def streams(call: Call) -> Awaitable[ReadAnswer]:
    return call.resource_server().streams(call.given.connection())


def stream(call: Call) -> Awaitable[ReadAnswer]:
    """Describe a stream."""
    return call.resource_server().stream(_stream(call), call.given.connection())


def records(call: Call) -> Awaitable[ReadAnswer]:
    """Read a page, or what changed."""
    return call.resource_server().records(
        _list(call), preview_chars=_preferred(call, PREVIEW_CHARS), page_bytes=_preferred(call, PAGE_BYTES)
    )


def record(call: Call) -> Awaitable[ReadAnswer]:
    params = call.given
    query = RecordQuery(_stream(call), _record(call))
    if params is not NOTHING:
        query = structs.replace(
            query, connection_id=params.connection(), fields=params.fields(), expand=params.expand()
        )
    return call.resource_server().record(query, preview_chars=_preferred(call, PREVIEW_CHARS))


def window(call: Call) -> Awaitable[ReadAnswer]:
    """Read a part of a field."""
    params = call.given
    query = WindowQuery(
        stream=_stream(call),
        record_id=_record(call),
        field=_window_field(params.get("field")),
        connection_id=params.connection(),
        offset_chars=params.get("offset_chars"),
        limit_chars=params.get("limit_chars"),
        q=params.get("q"),
        before_chars=params.get("before_chars"),
        after_chars=params.get("after_chars"),
        cursor=params.get("cursor"),
        as_json=params.get("as") is not None,
    )
    return call.resource_server().window(query)


def aggregate(call: Call) -> Awaitable[ReadAnswer]:
    """Compute a number."""
    query = reads.aggregate_query(_read(call, AggregateRead), call.given.get("q"), call.given.filters)
    return call.resource_server().aggregate(query, page_bytes=_preferred(call, PAGE_BYTES))


def search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by words; by both as soon as that can be done, if the client prefers it."""
    if _preferred(call, BY_BOTH):
        return _search(call, SearchMode.HYBRID, or_words=True)
    return _search(call, SearchMode.LEXICAL)


def semantic_search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by meaning."""
    return _search(call, SearchMode.SEMANTIC)


def hybrid_search(call: Call) -> Awaitable[ReadAnswer]:
    """Find records by words and by meaning."""
    return _search(call, SearchMode.HYBRID)


def _search(call: Call, mode: SearchMode, *, or_words: bool = False) -> Awaitable[ReadAnswer]:
    read = _read(call, SearchRead)
    query = reads.search_query(read, call.given.get("q"), call.given.filters, mode, or_words=or_words)
    return call.resource_server().search(
        query, line_chars=_preferred(call, PREVIEW_CHARS), page_bytes=_preferred(call, PAGE_BYTES)
    )


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


def _preferred(call: Call, name: str) -> int | None:
    """Read a number that the client prefers, such as the bytes of a page; what cannot be read is ignored."""
    preferred = call.headers.get(b"prefer")
    preference = None if preferred is None else _PREFERRED[name].search(preferred)
    return None if preference is None else int(preference[1])


def _blob(call: Call) -> BlobId:
    try:
        return blob_id(call.path["blob_id"])
    except InvalidRequest:
        # An invalid id is answered like a hidden one: 404.
        raise BlobNotFound(param="blob_id") from None


def _list(call: Call) -> ListQuery | ChangesQuery:
    params = call.given
    if params is NOTHING:
        return ListQuery(_stream(call))
    extent = params.get("window")
    if extent is not None and params.get("changes_since") is not None:
        raise InvalidRequest("changes_since excludes window.", param="window")
    return reads.list_query(
        _read(call, RecordsRead), params.filters, params.expand(), with_extent=extent == "exact"
    )


def _read(call: Call, kind: type[_Read]) -> _Read:
    """Put the parameters of a call, and the stream of its path, into the read that they ask for.

    They are parsed but not bounded: what a list does with a limit beyond its own is decided later.
    """
    names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    values = {
        names[name]: value for name, value in call.given.values.items() if name in names and name != "detail"
    }
    return kind(**values, **{name: text for name, text in call.path.items() if name in names})


def _stream(call: Call) -> StreamName:
    return stream_name(call.path["stream"])


def _record(call: Call) -> RecordId:
    try:
        return record_id(call.path["id"])
    except InvalidRequest:
        # An invalid key cannot exist: 404.
        raise NotFound(param="id") from None


def _window_field(name: str) -> FieldName:
    try:
        return field_name(name)
    except InvalidRequest:
        raise InvalidFieldPath(param="field") from None


def _span(header: str, size: int) -> tuple[int, int] | None:
    """Read a Range header: the bytes to send, all of them without one, None when there are none."""
    span = _RANGE.fullmatch(header.strip())
    if span is None or (not span[1] and not span[2]):
        return 0, size
    if not span[1]:
        start, end = max(0, size - int(span[2])), size
    else:
        start, end = int(span[1]), min(size, int(span[2]) + 1 if span[2] else size)
    return (start, end) if start < end else None


def _blob_headers(file: BlobAnswer, length: int) -> tuple[tuple[bytes, bytes], ...]:
    is_media = _MEDIA_TYPE.fullmatch(file.mime_type) is not None
    media = file.mime_type if is_media else "application/octet-stream"
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
