"""Resources: the same reads by URI, for clients that follow links instead of calling tools."""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, cast

from headgate.errors import InvalidResourceUri, ResourceLimit
from headgate.mcp.serve import handles
from headgate.mcp.serve.fetch import fetch
from headgate.mcp.serve.field import describe
from headgate.mcp.serve.reader import Reader
from headgate.model import ids
from headgate.model.query import RecordQuery
from headgate.model.wire import FieldWindowBody, Json
from headgate.text.quote import json_text
from headgate.text.window import window_text

#: The largest file that is put into an answer; larger ones have an address on the REST surface.
BLOB_BYTES = 4 * 1024 * 1024
_MAX_URI_CHARS = 8192

_Read = Callable[[Reader, str], Awaitable[Json]]


async def read(reader: Reader, uri: str) -> Json:
    """Read a resource: one content of ``resources/read``.

    Raises:
        InvalidResourceUri: this server gave no such URI. Any other error is the resource server's.
    """
    if len(uri) > _MAX_URI_CHARS or not ids.is_plain(uri):
        raise InvalidResourceUri
    for prefix, reading in _READS.items():
        if uri.startswith(prefix):
            return {"uri": uri, **(await reading(reader, uri))}
    raise InvalidResourceUri


async def _record(reader: Reader, uri: str) -> Json:
    ref = reader.handles.read_record_uri(uri)
    query = RecordQuery(ref.stream, ref.record_id, connection_id=ref.connection_id)
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
    name, connection = handles.stream_of(uri)
    chosen = None if connection is None else ids.connection_id(connection)
    answer = await reader.port.stream(ids.stream_name(name), chosen)
    return {"mimeType": "application/json", "text": json_text(answer.body())}


async def _blob(reader: Reader, uri: str) -> Json:
    found = await reader.port.blob(reader.handles.read_blob_uri(uri))
    async with aclosing(cast("Any", found.content)) as pieces:
        if found.size_bytes > BLOB_BYTES:
            raise ResourceLimit(
                f"The file has {found.size_bytes} bytes; at most {BLOB_BYTES} are read here.",
                hint=f"Get it from {reader.provider_url}/v1/blobs/{found.blob_id} with the same token.",
            )
        content = b"".join([piece async for piece in pieces])
    return {"mimeType": found.mime_type, "blob": base64.b64encode(content).decode("ascii")}


_READS: Mapping[str, _Read] = {
    handles.RECORD: _record,
    handles.WINDOW: _window,
    handles.STREAM: _stream,
    handles.BLOB: _blob,
}
