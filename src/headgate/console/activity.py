"""The disclosure log: conversations in sentences, every entry, export and check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from headgate.audit.activity import Conversation, LogFilter, LoggedRead, conversations
from headgate.console.pages import Frame, OwnerRequest, page, part
from headgate.console.services import ConsoleServices
from headgate.console.words import counted
from headgate.model.ids import ClientId, client_id, stream_name
from headgate.web.replies import NO_STORE, HttpReply

_PAGE = 200
_STREAMS_NAMED = 3
_TOOLS_NAMED = 3


@dataclass(frozen=True, slots=True)
class ConversationLine:
    """A conversation in a sentence, and its reads."""

    who: str
    sentence: str
    began_at: int
    ended_at: int
    refusals: int
    reads: tuple[LoggedRead, ...]


@dataclass(frozen=True, slots=True)
class ActivityView:
    """A part of the log."""

    lines: tuple[ConversationLine, ...]
    clients: tuple[tuple[ClientId, str], ...]
    client: str
    stream: str
    only: str
    older_path: str | None
    verdict: str = ""
    is_whole: bool = True


async def show(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show the log, filtered."""
    await console.flush_log()
    view = _view(console, asked)
    if asked.is_partial:
        return part("conversations.html", asked, view)
    return page("activity.html", Frame("Activity", asked, "activity"), view)


async def verify(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Check the log's chain of seals and say what came of it."""
    await asked.form()
    await console.flush_log()
    found = console.activity.verify()
    if found.is_whole:
        text = f"The log is whole: {counted(found.count, 'entry', 'entries')}, none changed, none missing."
    elif found.problem:
        text = f"The log is broken at entry {found.broken_at}: {found.problem} Compare it with a backup."
    else:
        text = f"{found.unchecked} Of what can be checked nothing was changed."
    view = _view(console, asked, text, is_whole=found.is_whole)
    return page("activity.html", Frame("Activity", asked, "activity"), view)


async def export(console: ConsoleServices, _asked: OwnerRequest) -> HttpReply:
    """Send the whole log, one JSON object a line."""
    await console.flush_log()
    lines = [json.dumps(document) for document in console.activity.export()]
    headers = (
        (b"content-type", b"application/x-ndjson"),
        (b"content-disposition", b'attachment; filename="headgate-activity.jsonl"'),
        NO_STORE,
    )
    return HttpReply(("\n".join(lines) + "\n").encode(), headers=headers)


def conversation_line(found: Conversation, names: Mapping[str, str]) -> ConversationLine:
    """Describe a conversation in a sentence."""
    who = "You" if found.client_id is None else names.get(found.client_id, found.client_id)
    streams = [f"{number} of {name}" for name, number in found.streams if number][:_STREAMS_NAMED]
    more = len([1 for _, number in found.streams if number]) - len(streams)
    what = ", ".join(streams) + (f" and {counted(more, 'other stream')}" if more > 0 else "")
    tools = ", ".join(name for name, _ in found.tools[:_TOOLS_NAMED])
    times = counted(len(found.reads), "time")
    if found.records:
        sentence = f"read {counted(found.records, 'record')} ({what}) in {counted(len(found.reads), 'call')}: {tools}."
    elif found.refusals == len(found.reads):
        sentence = f"asked {times} and was refused."
    else:
        sentence = f"asked {times} and saw no record: {tools}."
    return ConversationLine(who, sentence, found.began_at, found.ended_at, found.refusals, tuple(found.reads))


def _view(
    console: ConsoleServices, asked: OwnerRequest, verdict: str = "", *, is_whole: bool = True
) -> ActivityView:
    query = asked.query
    client, stream, only = query.get("client"), query.get("stream"), query.get("only")
    chosen = LogFilter(
        client_id(client) if client else None,
        stream_name(stream) if stream else None,
        only_refused=only == "refused",
        with_owner=only == "all",
    )
    before = query.get("before")
    found = console.activity.page(chosen, before=int(before) if before.isdecimal() else None, limit=_PAGE)
    chosen_texts = {
        name: text for name, text in (("client", client), ("stream", stream), ("only", only)) if text
    }
    older = (
        None
        if found.before is None
        else f"/console/activity?{urlencode({**chosen_texts, 'before': found.before})}"
    )
    return ActivityView(
        lines=tuple(conversation_line(one, console.clients.names()) for one in conversations(found.reads)),
        clients=tuple((one.client_id, one.name) for one in console.clients.overview()),
        client=client,
        stream=stream,
        only=only,
        older_path=older,
        verdict=verdict,
        is_whole=is_whole,
    )
