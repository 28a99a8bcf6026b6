"""The first page: search, what there is, what was read, and what needs attention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headgate.audit.activity import Alarm, LogFilter, by_day, by_week
from headgate.auth.clients import ClientOverview, GrantOverview
from headgate.console.activity import alarm_words
from headgate.console.agents import agent_path
from headgate.console.chart import reads_chart
from headgate.console.formatting import counted, day
from headgate.console.lines import source_names
from headgate.console.pages import Frame, OwnerRequest, View, page
from headgate.console.records import connection_cards
from headgate.console.uploads import latest_imports
from headgate.model.instants import DAY_US
from headgate.tasks import Trouble
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_DAYS = 30
_SOON_US = 7 * DAY_US
_LATEST = 5
_SCANNED = 5000
_WEEK_US = 7 * DAY_US
#: Where the owner sees more of what fails, by the name of its loop.
_TROUBLE_PAGES = {
    "remote servers": "/console/servers",
    "accounts": "/console/data",
    "imports": "/console/add",
}


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show the first page."""
    now = console.clock()
    await console.pump.flush()
    names, clients = await console.clients.names(), await console.clients.overview()
    reads = await console.clients.reads_by_day(_DAYS)
    log = await console.activity.page(LogFilter(since=now - 2 * _WEEK_US), before=None, limit=_SCANNED)
    alarms = await console.clients.alarms(console.settings.alarm_factor)
    view = View(
        cards=await connection_cards(console),
        chart=reads_chart(reads, now // DAY_US, _DAYS, names),
        attention=(
            *_troubles(console.supervisor.troubles()),
            *_alarms(alarms, names),
            *_attention(clients, now),
        ),
        latest=by_day(log.reads)[:_LATEST],
        weeks=by_week(log.reads, now),
        is_whole=log.before is None,
        imports=[known for known in latest_imports(console) if known.is_running],
        names=names,
        sources=await source_names(console),
        has_clients=bool(clients),
        now=now,
    )
    return page("home.html", Frame("Home", request, "home"), view)


def _troubles(troubles: Sequence[Trouble]) -> Iterator[View]:
    for trouble in troubles:
        what = f"{trouble.loop}, {trouble.subject}" if trouble.subject else trouble.loop
        text = f"Work in the background fails ({what}): {trouble.message} Headgate tries again."
        yield View(text=text, path=_TROUBLE_PAGES.get(trouble.loop, "/console/settings"))


def _alarms(alarms: Sequence[Alarm], names: Mapping[str, str]) -> Iterator[View]:
    for alarm in alarms:
        yield View(text=alarm_words(alarm, names), path=agent_path(alarm.client_id))


def _attention(clients: Sequence[ClientOverview], now: int) -> tuple[View, ...]:
    attention: list[View] = []
    for client in clients:
        path = agent_path(client.client_id)
        ends = [end for grant in client.active if (end := grant.issued.grant.expires_at) is not None]
        if ends and min(ends) - now < _SOON_US:
            text = f"{client.name} can read until {day(min(ends))}; after that it asks you again."
            attention.append(View(text=text, path=path))
        open_ended = [grant for grant in client.active if _is_unlimited(grant)]
        if open_ended:
            what = counted(len(open_ended), "grant")
            attention.append(
                View(text=f"{client.name} has {what} without an end and without a daily limit.", path=path)
            )
    return tuple(attention)


def _is_unlimited(grant: GrantOverview) -> bool:
    return grant.issued.grant.expires_at is None and grant.issued.daily_records is None
