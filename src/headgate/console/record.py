"""One record as what it is, with what belongs to it, who has read it, and what the owner may do with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from headgate.auth.keys import fresh_id
from headgate.console.layout import Layout, lay_out
from headgate.console.lines import PREVIEW_CHARS, line_of, record_path, source_of, stream_path
from headgate.console.pages import Frame, OwnerRequest, View, page, see_other
from headgate.errors import HeadgateError, NotFound
from headgate.model.declaration import RangeOperator, SourceDeclaration, StreamDeclaration
from headgate.model.hiding import RuleId, RuleKind
from headgate.model.ids import (
    ConnectionId,
    FieldName,
    RecordId,
    StreamName,
    connection_id,
    record_id,
    stream_name,
)
from headgate.model.query import ExactFilter, Filter, ListQuery, Order, RangeFilter, RecordQuery
from headgate.reading.rules import ChosenRule, add_rule
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_READERS_SHOWN = 50
_CHILDREN_SHOWN = 10
#: So many messages of a chat or thread stand before a message, and as many after it.
_NEIGHBOURS = 6
_NOTICES = {"hidden": "No agent sees this record any more. The page Rules has the rule, and can remove it."}


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show one record with what belongs to it, its files, and who has read it."""
    body = await _read(console, request)
    where, stream, key = ConnectionId(body["connection_id"]), StreamName(body["stream"]), RecordId(body["id"])
    source = (await console.reads.catalog()).declarations[body["connector_key"]]
    declared = source.streams[stream]
    line, layout = line_of(declared.line, body), lay_out(declared, body["data"], where)
    await console.pump.flush()
    view = View(
        path=record_path(where, stream, key),
        title=line.title,
        when=line.when,
        source=source_of(body),
        stream=stream,
        label=declared.label or stream,
        stream_path=stream_path(where, stream),
        layout=layout,
        related=await _related(console, source, declared, body, layout),
        hide_path=_action_path(record_path(where, stream, key), "hide"),
        erase_path=_action_path(record_path(where, stream, key), "erase"),
        sender_path=_sender_path(stream, layout),
        names=await console.clients.names(),
        readers=await console.activity.who_read(key, stream, where, limit=_READERS_SHOWN),
    )
    notice = _NOTICES.get(request.query.get("done"), "")
    return page("record.html", Frame(view.title, request, "data", notice), view)


async def hide(console: Services, request: OwnerRequest) -> HttpReply:
    """Add a rule by which no agent ever sees the record."""
    await request.form()
    body = await _read(console, request)
    where, stream, key = ConnectionId(body["connection_id"]), StreamName(body["stream"]), RecordId(body["id"])
    declared = (await console.reads.catalog()).declarations[body["connector_key"]].streams[stream]
    name, *others = declared.primary_key
    if others or "*" in key:
        raise NotFound(
            "This record cannot be named in a rule.", hint="Hide it by its words on the page Rules."
        )
    chosen = ChosenRule(RuleKind.VALUE, key, name, stream)
    await add_rule(console.reads.store, chosen, RuleId(fresh_id("rul")), console.clock())
    return see_other(f"{record_path(where, stream, key)}&done=hidden")


async def ask_to_erase(console: Services, request: OwnerRequest) -> HttpReply:
    """Ask whether the record is to be erased."""
    body = await _read(console, request)
    declared = (await console.reads.catalog()).declarations[body["connector_key"]].streams[body["stream"]]
    where, stream, key = ConnectionId(body["connection_id"]), StreamName(body["stream"]), RecordId(body["id"])
    view = View(
        title=line_of(declared.line, body).title,
        back_path=record_path(where, stream, key),
        path=_action_path(record_path(where, stream, key), "erase"),
    )
    return page("erase_record.html", Frame("Erase a record", request, "data"), view)


async def erase(console: Services, request: OwnerRequest) -> HttpReply:
    """Erase the record."""
    await request.form()
    body = await _read(console, request)
    where, stream, key = ConnectionId(body["connection_id"]), StreamName(body["stream"]), RecordId(body["id"])
    await console.intake.store.delete_record(where, stream, key, at=console.clock())
    return see_other(f"{stream_path(where, stream)}?done=erased")


async def _read(console: Services, request: OwnerRequest) -> dict[str, Any]:
    named = request.query.get("connection_id")
    query = RecordQuery(
        stream_name(request.places["stream"]),
        record_id(request.places["id"]),
        connection_id(named) if named else None,
    )
    server = await console.own_records()
    try:
        return (await server.record(query)).body()
    except NotFound:
        raise NotFound("This record does not exist, or was erased.", hint="Look at Data.") from None


def _action_path(path: str, action: str) -> str:
    path, _, query = path.partition("?")
    return f"{path}/{action}?{query}"


def _sender_path(stream: str, layout: Layout) -> str:
    field, value = layout.sender
    chosen = {"kind": RuleKind.VALUE, "text": value, "field": field, "stream": stream}
    return f"/console/rules?{urlencode(chosen)}" if value and "*" not in value else ""


async def _related(
    console: Services,
    source: SourceDeclaration,
    declared: StreamDeclaration,
    body: Mapping[str, Any],
    layout: Layout,
) -> tuple[View, ...]:
    """Find what belongs to a record: what it is part of, with its neighbours there, and what is part of it."""
    where, data = ConnectionId(body["connection_id"]), body["data"]
    groups: list[View] = []
    for parent in source.streams.values():
        for relation in parent.relationships:
            of = data.get(relation.foreign_key) if relation.stream == declared.name else None
            if not isinstance(of, str):
                continue
            lines = ()
            if layout.has_neighbours:
                lines = await _neighbours(console, declared, body, relation.foreign_key)
            if lines or not layout.has_neighbours:
                path = record_path(where, parent.name, of)
                groups.append(View(title=f"In its {_single(parent)}", lines=lines, path=path, is_part=True))
    for relation in declared.relationships:
        child = source.streams.get(relation.stream)
        if child is not None:
            same = ExactFilter(relation.foreign_key, body["id"])
            lines = await _list(console, child, where, (same,), _CHILDREN_SHOWN)
            query = urlencode({"field": relation.foreign_key, "value": body["id"]})
            if lines:
                path = f"{stream_path(where, child.name)}?{query}"
                groups.append(View(title=child.label or child.name, lines=lines, path=path, is_part=False))
    return tuple(groups)


def _single(parent: StreamDeclaration) -> str:
    return (parent.label or parent.name).lower().removesuffix("s")


async def _neighbours(
    console: Services, declared: StreamDeclaration, body: Mapping[str, Any], foreign_key: FieldName
) -> Sequence[View]:
    """Read what stands before and after a message in its chat or thread, and the message itself in its place."""
    time, data, where = declared.cursor_field, body["data"], ConnectionId(body["connection_id"])
    if time is None or not isinstance(data.get(time), str):
        return ()
    same = ExactFilter(foreign_key, data[foreign_key])
    sides = [
        await _list(
            console, declared, where, (same, RangeFilter(time, operator, data[time])), _NEIGHBOURS + 1, order
        )
        for operator, order in ((RangeOperator.LTE, Order.DESC), (RangeOperator.GTE, Order.ASC))
    ]
    before, after = sides
    by_path = {line.path: line for line in (*reversed(before), *after)}
    return tuple(by_path.values()) if len(by_path) > 1 else ()


async def _list(
    console: Services,
    declared: StreamDeclaration,
    where: ConnectionId,
    filters: tuple[Filter, ...],
    limit: int,
    order: Order = Order.ASC,
) -> tuple[View, ...]:
    server = await console.own_records()
    query = ListQuery(declared.name, limit=limit, order=order, connection_id=where, filters=filters)
    try:
        body = (await server.records(query, preview_chars=PREVIEW_CHARS)).body()
    except HeadgateError:
        # A source may declare a relation by a field that has no filter.
        return ()
    return tuple(line_of(declared.line, row) for row in body["data"])
