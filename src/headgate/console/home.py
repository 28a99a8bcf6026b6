"""The first page: search, what there is, what was read, and what needs attention."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.audit.activity import LogFilter, conversations
from headgate.console.activity import ConversationLine, conversation_line
from headgate.console.chart import Chart, reads_chart
from headgate.console.pages import Frame, OwnerRequest, page
from headgate.console.records import ConnectionCard, connection_cards
from headgate.console.services import ConsoleServices
from headgate.console.words import counted, day
from headgate.model.instants import DAY_US
from headgate.web.replies import HttpReply

_DAYS = 30
_SOON_US = 7 * DAY_US
_LATEST = 5
_SCANNED = 300


@dataclass(frozen=True, slots=True)
class HomeView:
    """What the first page shows."""

    cards: tuple[ConnectionCard, ...]
    chart: Chart
    attention: tuple[str, ...]
    latest: tuple[ConversationLine, ...]
    has_clients: bool
    now: int


async def show(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show the first page."""
    now = console.clock()
    reads = console.clients.reads_by_day(_DAYS)
    log = console.activity.page(LogFilter(), before=None, limit=_SCANNED)
    view = HomeView(
        cards=await connection_cards(console),
        chart=reads_chart(reads, now // DAY_US, _DAYS),
        attention=_attention(console, now),
        latest=tuple(conversation_line(one) for one in conversations(log.reads)[:_LATEST]),
        has_clients=bool(console.clients.overview()),
        now=now,
    )
    return page("home.html", Frame("Home", asked, "home"), view)


def _attention(console: ConsoleServices, now: int) -> tuple[str, ...]:
    found: list[str] = []
    for client in console.clients.overview():
        ends = [
            one.issued.grant.expires_at for one in client.active if one.issued.grant.expires_at is not None
        ]
        soon = [end for end in ends if end - now < _SOON_US]
        if soon:
            found.append(f"{client.client_id} can read until {day(min(soon))}; after that it asks you again.")
        unlimited = [
            one
            for one in client.active
            if one.issued.grant.expires_at is None and one.issued.daily_records is None
        ]
        if unlimited:
            what = counted(len(unlimited), "grant")
            found.append(f"{client.client_id} has {what} without an end and without a daily limit.")
    return tuple(found)
