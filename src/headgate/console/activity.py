"""The disclosure log: a line for each agent and day, every entry, export and check."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any
from urllib.parse import urlencode

from headgate.audit.activity import Alarm, LogFilter, by_day
from headgate.console.formatting import counted, day, number
from headgate.console.lines import source_names
from headgate.console.pages import Frame, OwnerRequest, View, page, part
from headgate.model.ids import client_id, stream_name
from headgate.model.instants import DAY_US, instant
from headgate.sources.formats.texts import safe_cell
from headgate.web.replies import NO_CONTENT, NO_STORE, HttpReply
from headgate.wiring import Services

_PAGE = 200
PATH = "/console/activity"
#: What the page and the export are narrowed by.
_CHOICES = ("client", "stream", "only", "since", "until")
_COLUMNS = (
    "seq", "at", "client", "via", "outcome", "records", "bytes", "streams", "fields", "reads", "words",
)  # fmt: skip


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show the log, filtered."""
    await console.pump.flush()
    view = await _view(console, request)
    if request.is_partial and request.query.get("newest") == str(view.newest):
        # Nothing is replaced: what a person reads stays where it is, and is not read out again.
        return HttpReply(status=NO_CONTENT, headers=(NO_STORE,))
    if request.is_partial:
        return part("days.html", request, view)
    return page("activity.html", Frame("Activity", request, "activity"), view)


async def verify(console: Services, request: OwnerRequest) -> HttpReply:
    """Check the log's chain of seals and say what came of it."""
    await request.form()
    await console.pump.flush()
    verdict = await console.activity.verify()
    if verdict.is_whole:
        text = f"The log is whole: {counted(verdict.count, 'entry', 'entries')}, none changed, none missing."
    elif verdict.problem:
        text = f"The log is broken at entry {verdict.broken_at}: {verdict.problem} Compare it with a backup."
    else:
        text = f"{verdict.unchecked} Of what can be checked nothing was changed."
    view = await _view(console, request, text, is_whole=verdict.is_whole)
    return page("activity.html", Frame("Activity", request, "activity"), view)


async def export(console: Services, request: OwnerRequest) -> HttpReply:
    """Send the log, filtered like the page: one JSON object a line, or a table."""
    await console.pump.flush()
    # Without a filter everything is sent, also the owner's looks.
    is_filtered = any(request.query.get(name) for name in _CHOICES)
    chosen = _filter(request) if is_filtered else None
    if request.query.get("format") == "csv":
        rows = console.activity.export(_table_rows, chosen)
        return _download(_with_head(rows), "text/csv; charset=utf-8", "csv")
    return _download(console.activity.export(_lines, chosen), "application/x-ndjson", "jsonl")


def _download(pieces: AsyncIterator[bytes], kind: str, ending: str) -> HttpReply:
    """Send the log while it is read: it only grows, and is never in memory as a whole."""
    name = f'attachment; filename="headgate-activity.{ending}"'
    headers = ((b"content-type", kind.encode()), (b"content-disposition", name.encode()), NO_STORE)
    return HttpReply(headers=headers, stream=pieces)


def _lines(documents: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(document).encode() + b"\n" for document in documents)


async def _with_head(rows: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield ",".join(_COLUMNS).encode() + b"\r\n"
    async for piece in rows:
        yield piece


def _table_rows(documents: Iterable[Mapping[str, Any]]) -> bytes:
    out = io.StringIO()
    writer = csv.writer(out)
    for document in documents:
        streams = dict.fromkeys(part["stream"] for part in document["parts"])
        fields = dict.fromkeys(name for part in document["parts"] for name in part["fields"])
        row = (
            document["seq"], document["at"], document["client_id"] or document["token_kind"], document["via"], document["outcome"],
            document["record_count"], document["size_bytes"], " ".join(streams), " ".join(fields), document.get("refusals", 1),
            document.get("words", ""),
        )  # fmt: skip
        writer.writerow(safe_cell(value) for value in row)
    return out.getvalue().encode()


def alarm_words(alarm: Alarm, names: Mapping[str, str]) -> str:
    """Describe an alarm in a sentence."""
    when = day(alarm.day * DAY_US)
    return (
        f"{names.get(alarm.client_id, alarm.client_id)} read {counted(alarm.records, 'record')} on {when}; "
        f"on a usual day it reads {number(alarm.usual)}."
    )


def _filter(request: OwnerRequest) -> LogFilter:
    query = request.query
    client, stream, only = (query.get(name) for name in ("client", "stream", "only"))
    since, until = (instant(query.get(name)) for name in ("since", "until"))
    return LogFilter(
        client_id(client) if client else None,
        stream_name(stream) if stream else None,
        only_refused=only == "refused",
        with_owner=only == "all",
        since=since,
        # The last day is a day to look at as well.
        until=None if until is None else until + DAY_US,
    )


async def _view(
    console: Services, request: OwnerRequest, verdict: str = "", *, is_whole: bool = True
) -> View:
    before = request.query.number("before")
    log = await console.activity.page(_filter(request), before=before, limit=_PAGE)
    chosen = {name: text for name in _CHOICES if (text := request.query.get(name))}
    older = None if log.before is None else f"{PATH}?{urlencode({**chosen, 'before': log.before})}"
    newest = log.reads[0].seq if log.reads else 0
    clients = await console.clients.overview()
    names = await console.clients.names()
    alarms = await console.clients.alarms(console.settings.alarm_factor)
    return View(
        days=by_day(log.reads),
        names=names,
        sources=await source_names(console),
        clients=tuple((overview.client_id, overview.name) for overview in clients),
        chosen={**dict.fromkeys(_CHOICES, ""), **chosen},
        is_filtered=bool(chosen),
        older_path=older,
        alarms=tuple(alarm_words(alarm, names) for alarm in alarms),
        alarm_factor=console.settings.alarm_factor,
        export_query=urlencode(chosen),
        newest=newest,
        live_path="" if before is not None else f"{PATH}?{urlencode({**chosen, 'newest': newest})}",
        verdict=verdict,
        is_whole=is_whole,
    )
