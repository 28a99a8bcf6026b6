"""``read_record_field``: a window of one long field, and how to go on from it."""

from __future__ import annotations

from headgate.mcp.serve.outcome import Outcome, link
from headgate.mcp.serve.reader import Reader
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.query import WindowQuery
from headgate.model.reference import RecordRef
from headgate.model.wire import Json
from headgate.text.window import WindowText, window_text


async def read_record_field(reader: Reader, query: WindowQuery) -> Outcome:
    """Answer a window."""
    body = (await reader.port.window(query)).body()
    structured, text = describe(reader, query, body)
    incomplete = not structured["window"]["complete"]
    uri = structured["resource"]["uri"]
    mime_type = structured["field"]["mime_type"]
    links = (link(uri, query.field, mime_type=mime_type),) if incomplete else ()
    return Outcome(structured, window_text(text), links=links)


def describe(reader: Reader, query: WindowQuery, body: Json) -> tuple[Json, WindowText]:
    """Turn the resource server's window into the fixed structure and what its text says."""
    window: Json = body["window"]
    ref = RecordRef(
        ConnectionId(body.get("connection_id") or query.connection_id or ""),
        StreamName(body["stream"]),
        RecordId(body["record_id"]),
    )
    result_id = reader.handles.result_id(ref)
    going = {side: _selector(window, side) for side in ("next", "previous")}
    uris = {
        side: None if selector is None else reader.handles.window_uri(ref, query.field, selector)
        for side, selector in going.items()
    }
    match = _match(window)
    text = WindowText(
        id=result_id,
        field_path=query.field,
        text=window["text"],
        start_chars=window["start_chars"],
        end_chars=window["end_chars"],
        total_chars=window.get("total_chars"),
        complete=window["complete"],
        next=going["next"],
        previous=going["previous"],
        match=match,
        next_uri=uris["next"],
        previous_uri=uris["previous"],
    )
    return _structure(query, body, ref, text, uri=_own_uri(reader, ref, query, window)), text


def _structure(query: WindowQuery, body: Json, ref: RecordRef, text: WindowText, *, uri: str) -> Json:
    window: Json = body["window"]
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


def _field(query: WindowQuery, body: Json) -> Json:
    known: Json = body.get("field") or {}
    is_json = known.get("type") == "json"
    mime_type = "application/json" if is_json else "text/plain"
    facts: Json = {"path": query.field, "text_like": not is_json, "mime_type": mime_type}
    total = known.get("size_chars", body["window"].get("total_chars"))
    if isinstance(total, int):
        facts["size_chars"] = total
    if isinstance(known.get("digest"), str):
        facts["digest"] = known["digest"]
    return facts


def _selector(window: Json, side: str) -> Json | None:
    """Say how to reach the window on one side: by the server's cursor, or by offset where it gives none."""
    if window.get(f"{side}_cursor"):
        return {"cursor": window[f"{side}_cursor"]}
    offset = window.get(f"{side}_offset_chars")
    return None if offset is None else {"offset_chars": offset, "limit_chars": window["limit_chars"]}


def _match(window: Json) -> tuple[int, int] | None:
    start, end = window.get("match_start_chars"), window.get("match_end_chars")
    return (start, end) if isinstance(start, int) and isinstance(end, int) else None


def _own_uri(reader: Reader, ref: RecordRef, query: WindowQuery, window: Json) -> str:
    if query.q is not None:
        names = ("q", "before_chars", "after_chars", "limit_chars")
        selector = {name: value for name in names if (value := getattr(query, name)) is not None}
    else:
        selector = {"offset_chars": window["start_chars"], "limit_chars": window["limit_chars"]}
    return reader.handles.window_uri(ref, query.field, selector)
