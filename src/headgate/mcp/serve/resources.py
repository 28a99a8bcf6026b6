"""Resources: the same reads by URI, for clients that follow links instead of calling tools."""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from headgate.errors import InvalidResourceUri, ResourceLimit
from headgate.mcp.serve.fetch import fetch
from headgate.mcp.serve.field import describe
from headgate.mcp.serve.reader import BLOB, RECORD, STREAM, WINDOW, Reader, stream_of
from headgate.mcp.serve.skill import SKILL_URI, skill_text
from headgate.model import ids
from headgate.model.kinds import RecordKind
from headgate.model.query import BlobQuery, RecordQuery
from headgate.model.wire import FieldWindowBody, Json
from headgate.reading.links import quoted_name
from headgate.reading.port import BlobAnswer
from headgate.text.window import window_text
from headgate.text.writing import json_text

#: The most bytes of a file that are put into an answer; larger files are read in parts, or over REST.
BLOB_BYTES = 4 * 1024 * 1024
_MAX_URI_CHARS = 8192
_RANGE = re.compile(r"(\d{1,15})-(\d{1,15})")

_Read = Callable[[Reader, str], Awaitable[Json]]


async def read(reader: Reader, uri: str, kinds: Sequence[RecordKind] = ()) -> Json:
    """Read a resource: one content of ``resources/read``; the skill names the kinds of records of the grant."""
    if len(uri) > _MAX_URI_CHARS or not ids.is_plain(uri):
        raise InvalidResourceUri
    if uri == SKILL_URI:
        return {"uri": uri, "mimeType": "text/markdown", "text": skill_text(kinds)}
    for prefix, reading in _READS.items():
        if uri.startswith(prefix):
            return {"uri": uri, **(await reading(reader, uri))}
    raise InvalidResourceUri


async def _record(reader: Reader, uri: str) -> Json:
    ref = reader.handles.read_record_uri(uri)
    query = RecordQuery(ref.stream, ref.record_id, connection_id=ref.connection_id, key_digest=ref.key_digest)
    outcome = await fetch(reader, query, reader.handles.result_id(ref))
    return {"mimeType": "application/json", "text": outcome.text}


async def _window(reader: Reader, uri: str) -> Json:
    query = reader.handles.read_window_uri(uri)
    body: FieldWindowBody = (await reader.port.window(query)).body()
    structured, text = describe(reader, query, body)
    neighbours = {key: value for key, value in structured["resource"].items() if key != "uri" and value}
    # Lines about the window surround the text, so it is plain text even if the field holds JSON.
    return {"mimeType": "text/plain", "text": window_text(text, with_uris=True), "_meta": neighbours}


async def _stream(reader: Reader, uri: str) -> Json:
    name, connection = stream_of(uri)
    chosen = None if connection is None else ids.connection_id(connection)
    answer = await reader.port.stream(ids.stream_name(name), chosen)
    return {"mimeType": "application/json", "text": json_text(answer.body())}


async def _blob(reader: Reader, uri: str) -> Json:
    handle, _, part = uri.partition("?bytes=")
    query = reader.handles.read_blob_uri(handle)
    if part:
        return await _part(reader, query, handle, part)
    file = await reader.port.blob(query)
    async with aclosing(cast("Any", file.content)) as pieces:
        if file.size_bytes > BLOB_BYTES:
            raise _too_large(reader, file, handle)
        content = b"".join([piece async for piece in pieces])
    return {"mimeType": file.mime_type, "blob": base64.b64encode(content).decode("ascii")}


async def _part(reader: Reader, query: BlobQuery, handle: str, part: str) -> Json:
    """Read some bytes of a file, and say which URI goes on."""
    span = _RANGE.fullmatch(part)
    if span is None:
        raise InvalidResourceUri
    start = int(span[1])
    end = min(int(span[2]) + 1, start + BLOB_BYTES)
    file = await reader.port.blob(query, start=start, end=max(end, start))
    async with aclosing(cast("Any", file.content)) as pieces:
        content = b"".join([piece async for piece in pieces])
    stop = start + len(content)
    following = {"next_uri": _part_uri(handle, stop)} if content and stop < file.size_bytes else {}
    return {
        "mimeType": file.mime_type,
        "blob": base64.b64encode(content).decode("ascii"),
        "_meta": {"start_bytes": start, "end_bytes": stop, "size_bytes": file.size_bytes, **following},
    }


def _part_uri(handle: str, start: int) -> str:
    return f"{handle}?bytes={start}-{start + BLOB_BYTES - 1}"


def _too_large(reader: Reader, file: BlobAnswer, handle: str) -> ResourceLimit:
    chosen = f"?connection_id={quoted_name(file.connection_id)}" if file.connection_id else ""
    address = f"{reader.provider_url}/v1/blobs/{file.blob_id}{chosen}"
    return ResourceLimit(
        f"The file has {file.size_bytes} bytes; at most {BLOB_BYTES} are read at once. "
        f"Read it in parts, beginning with {_part_uri(handle, 0)}, or get {address} with the same token.",
        hint=f"Read {_part_uri(handle, 0)}, then the next_uri of each part; or get {address}.",
    )


_READS: Mapping[str, _Read] = {RECORD: _record, WINDOW: _window, STREAM: _stream, BLOB: _blob}
