"""``read_record_field``: a window of one long field, and how to go on from it."""

from __future__ import annotations

from typing import cast

import msgspec
from msgspec.structs import replace

from headgate.mcp.serve.reader import Reader
from headgate.mcp.serve.results import Outcome, link
from headgate.model.ids import ConnectionId, RecordRef
from headgate.model.query import WindowQuery
from headgate.model.wire import FieldWindowBody, Json, TextWindow
from headgate.text.window import WindowText, window_text
from headgate.text.writing import ENVELOPE, TOOL_RESULT, UNASKED_RESULT, WINDOW_TEXT, size

#: A text of so many characters is within every limit, even if each of them has to be escaped.
_SURELY_FITS_CHARS = 1_500


async def read_record_field(reader: Reader, query: WindowQuery) -> Outcome:
    """Answer a window; a shorter one, if the characters of this one take so many bytes that it does not fit."""
    outcome = await _window(reader, query)
    if len(outcome.text) <= _SURELY_FITS_CHARS:
        return outcome
    asks_more = any((query.limit_chars, query.before_chars, query.after_chars))
    limit_bytes = (TOOL_RESULT if asks_more else UNASKED_RESULT) - ENVELOPE
    while True:
        written = len(msgspec.json.encode(outcome.wire()))
        excess = max(written / limit_bytes, size(outcome.text) / WINDOW_TEXT)
        if excess <= 1:
            return outcome
        chars = len(cast("Json", outcome.structured)["window"]["text"])
        # Without the context that was asked for, the server puts a match into the middle.
        shorter = int(chars * 0.95 / excess)
        query = replace(query, limit_chars=shorter, before_chars=None, after_chars=None)
        outcome = await _window(reader, query)


async def _window(reader: Reader, query: WindowQuery) -> Outcome:
    body: FieldWindowBody = (await reader.port.window(query)).body()
    structured, text = describe(reader, query, body)
    incomplete = not structured["window"]["complete"]
    uri = structured["resource"]["uri"]
    mime_type = structured["field"]["mime_type"]
    links = (link(uri, query.field, mime_type=mime_type),) if incomplete else ()
    return Outcome(structured, window_text(text), links=links)


def describe(reader: Reader, query: WindowQuery, body: FieldWindowBody) -> tuple[Json, WindowText]:
    """Turn the resource server's window into the fixed structure and into the parts of its text."""
    window = body["window"]
    connection = body.get("connection_id") or query.connection_id or ConnectionId("")
    ref = RecordRef(connection, body["stream"], body["record_id"])
    result_id = reader.handles.result_id(ref)
    following = _selector(window.get("next_cursor"), window.get("next_offset_chars"), window)
    previous = _selector(window.get("previous_cursor"), window.get("previous_offset_chars"), window)

    def uri_of(selector: Json | None) -> str | None:
        return None if selector is None else reader.handles.window_uri(ref, query.field, selector)

    text = WindowText(
        id=result_id,
        field_path=query.field,
        text=window["text"],
        start_chars=window["start_chars"],
        end_chars=window["end_chars"],
        total_chars=window.get("total_chars"),
        complete=window["complete"],
        next=following,
        previous=previous,
        match=_match(window),
        next_uri=uri_of(following),
        previous_uri=uri_of(previous),
    )
    return _structure(query, body, ref, text, uri=_own_uri(reader, ref, query, window)), text


def _structure(
    query: WindowQuery, body: FieldWindowBody, ref: RecordRef, text: WindowText, *, uri: str
) -> Json:
    window = body["window"]
    match = text.match
    return {
        "record": {
            "id": text.id,
            "connection_id": ref.connection_id,
            "stream": ref.stream,
            "record_id": ref.record_id,
        },
        "field": _field(query, body),
        "window": {
            "text": text.text,
            "start_chars": text.start_chars,
            "end_chars": text.end_chars,
            "limit_chars": window["limit_chars"],
            "complete": text.complete,
            "next_cursor": window.get("next_cursor"),
            "previous_cursor": window.get("previous_cursor"),
            "match": None
            if match is None or query.q is None
            else {"q": query.q, "start_chars": match[0], "end_chars": match[1]},
        },
        "resource": {"uri": uri, "next_uri": text.next_uri, "previous_uri": text.previous_uri},
    }


def _field(query: WindowQuery, body: FieldWindowBody) -> Json:
    known = body.get("field") or {}
    is_json = known.get("type") == "json"
    mime_type = "application/json" if is_json else "text/plain"
    facts: Json = {"path": query.field, "text_like": not is_json, "mime_type": mime_type}
    total = known.get("size_chars", body["window"].get("total_chars"))
    if isinstance(total, int):
        facts["size_chars"] = total
    digest = known.get("digest")
    return {**facts, "digest": digest} if isinstance(digest, str) else facts


def _selector(cursor: str | None, offset: int | None, window: TextWindow) -> Json | None:
    """Return the arguments for the window on one side: the server's cursor, or an offset where it has none."""
    if cursor:
        return {"cursor": cursor}
    return None if offset is None else {"offset_chars": offset, "limit_chars": window["limit_chars"]}


def _match(window: TextWindow) -> tuple[int, int] | None:
    start, end = window.get("match_start_chars"), window.get("match_end_chars")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else None


def _own_uri(reader: Reader, ref: RecordRef, query: WindowQuery, window: TextWindow) -> str:
    if query.q is not None:
        names = ("q", "before_chars", "after_chars", "limit_chars")
        selector = {name: value for name in names if (value := getattr(query, name)) is not None}
    else:
        selector = {"offset_chars": window["start_chars"], "limit_chars": window["limit_chars"]}
    return reader.handles.window_uri(ref, query.field, selector)
