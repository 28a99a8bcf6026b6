"""The records behind an entry of the log, or behind all of an agent's day: the line of each, and what was shown of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from urllib.parse import urlencode

from headgate.audit.activity import LogFilter, LoggedRead, records_of
from headgate.audit.journal import ShownRecord
from headgate.console.activity import PATH
from headgate.console.lines import PREVIEW_CHARS, line_of, source_names
from headgate.console.pages import Frame, OwnerRequest, View, page
from headgate.model.ids import ConnectionId, FieldName, StreamName, client_id
from headgate.reading.shown import RecordNow, records_now
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_PAGE = 100


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show the records that some entries of the log showed, and those of them that are gone as such."""
    await console.pump.flush()
    query = request.query
    first, last, after = (query.number(name) or 0 for name in ("first", "last", "after"))
    client = client_id(query.get("client")) if query.get("client") else None
    reads = [
        read
        for read in await console.activity.between(first, last, LogFilter(with_owner=True))
        if read.event.client_id == client
    ]
    records = records_of(reads)
    some = records[after : after + _PAGE]
    found = await records_now(console.reads, await console.own_look(), some, PREVIEW_CHARS)
    asks = urlencode({"first": first, "last": last, "client": client or "", "after": after + _PAGE})
    view = View(
        who="You" if client is None else (await console.clients.names()).get(client, client),
        day=reads,
        total=len(records),
        groups=_groups(some, found, _fields(reads)),
        sources=await source_names(console),
        back_path=PATH if client is None else f"{PATH}?{urlencode({'client': client})}",
        next_path=f"{PATH}/records?{asks}" if len(records) > after + _PAGE else "",
        left=len(records) - after - _PAGE,
    )
    return page("shown.html", Frame(f"What {view.who} read", request, "activity"), view)


def _fields(reads: Iterable[LoggedRead]) -> dict[ShownRecord, tuple[FieldName, ...]]:
    """Return which fields of each record were shown."""
    fields: dict[ShownRecord, dict[FieldName, None]] = defaultdict(dict)
    for read in reads:
        for part in read.event.parts:
            for record_id in part.record_ids:
                fields[part.connection_id, part.stream, record_id] |= dict.fromkeys(part.fields)
    return {place: tuple(names) for place, names in fields.items()}


def _groups(
    places: Sequence[ShownRecord],
    found: dict[ShownRecord, RecordNow],
    fields: dict[ShownRecord, tuple[FieldName, ...]],
) -> tuple[View, ...]:
    """Put records together of which the same was shown."""
    grouped: dict[tuple[ConnectionId, StreamName, tuple[FieldName, ...]], list[View]] = defaultdict(list)
    gone: dict[tuple[ConnectionId, StreamName, tuple[FieldName, ...]], list[str]] = defaultdict(list)
    order = {place[:2]: number for number, place in reversed(list(enumerate(places)))}
    for place in sorted(places, key=lambda place: order[place[:2]]):
        key = (place[0], place[1], fields[place])
        lines, now = grouped[key], found.get(place)
        if now is None:
            gone[key].append(place[2])
        else:
            lines.append(line_of(now.line, now.row))
    return tuple(
        View(connection=key[0], stream=key[1], fields=key[2], lines=lines, gone=gone.get(key, ()))
        for key, lines in grouped.items()
    )
