"""A window: a part of one long field."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from headgate.audit.journal import Disclosed
from headgate.errors import CursorExpired, NotFound, QueryNotFound
from headgate.model.ids import ConnectionId
from headgate.model.plan import MatchWindow, OffsetWindow
from headgate.model.query import WindowQuery
from headgate.model.rows import FieldWindow
from headgate.policy import cursors
from headgate.policy.cursors import WindowPlace
from headgate.policy.decide import decide_window
from headgate.reading.home import CurrentRead, Served, labels_of, only, with_whole_key
from headgate.reading.links import window_link, window_path
from headgate.reading.port import Body
from headgate.store.queries.windows import find_folded


async def window(read: CurrentRead, query: WindowQuery) -> Served:
    """Read a part of one field, with the cursors into the text before and after it."""
    allowance, seals = read.decisions.allowance, read.home.seals()
    query = await with_whole_key(read, query)
    decision = decide_window(allowance, query, seals)
    windows = await read.home.store.window(decision.plan)
    part = only(allowance, decision.scopes, windows, lambda: NotFound(param="id"))
    if decision.digest is not None and decision.digest != part.digest:
        raise CursorExpired(
            f"Field '{query.field}' has changed; read it from offset_chars 0.", param="cursor"
        )
    limit = decision.plan.window.limit_chars
    origin = labels_of(allowance, decision.scopes).of(part.connection_id)
    body = window_body(query, limit, part, origin)
    for name in ("next", "previous"):
        offset = body["window"][f"{name}_offset_chars"]
        if offset is not None:
            place = WindowPlace(part.connection_id, part.digest, offset, limit)
            body["window"][f"{name}_cursor"] = cursors.seal_window(seals, place, decision.binding)
    body |= {"links": {"self": window_link(query)}, "meta": read.meta(decision.warnings)}
    disclosed = Disclosed(part.connection_id, query.stream, (query.field,), (query.record_id,))
    return Served(body, (disclosed,))


def window_body(query: WindowQuery, limit: int, part: FieldWindow, origin: Body) -> Body:
    """Return a part of a field, and where it stands in the whole."""
    start, end, total = part.start_chars, part.end_chars, part.total_chars
    return {
        "object": "field_window",
        "stream": query.stream,
        "record_id": query.record_id,
        **origin,
        "field": {
            "path": query.field,
            "type": "json" if part.is_json else "string",
            "size_chars": total,
            "digest": f"sha256:{part.digest}",
        },
        "window": {
            "text": part.text,
            "start_chars": start,
            "end_chars": end,
            "limit_chars": limit,
            "total_chars": total,
            "complete": start == 0 and end == total,
            "has_more": end < total,
            "next_offset_chars": end if end < total else None,
            "previous_offset_chars": max(0, start - limit) if start else None,
            "match_start_chars": part.match_start_chars,
            "match_end_chars": part.match_end_chars,
            "next_cursor": None,
            "previous_cursor": None,
        },
        "url": window_path(query.stream, query.record_id),
    }


def part_of_json(
    value: dict[str, Any] | list[Any], window: OffsetWindow | MatchWindow, connection_id: ConnectionId
) -> FieldWindow:
    """Cut a window of a value's JSON text.

    Raises:
        QueryNotFound: the text sought does not occur in it.
    """
    text = msgspec.json.encode(value).decode()
    match = None, None
    if isinstance(window, OffsetWindow):
        start = min(window.offset_chars, len(text))
    else:
        place = find_folded([text], window.q)
        if place is None:
            raise QueryNotFound
        match = place
        start = max(0, place[0] - window.before_chars)
    part = text[start : start + window.limit_chars]
    digest = hashlib.sha256(text.encode()).hexdigest()
    return FieldWindow(connection_id, part, start, len(text), digest, *match, is_json=True)
