"""Agents: what each client may see, in words, and how that ends."""

from __future__ import annotations

from urllib.parse import quote

from headgate.auth.clients import ClientOverview, GrantOverview
from headgate.console.formatting import counted, day
from headgate.console.pages import Frame, OwnerRequest, View, page, see_other
from headgate.model.grant import AccessMode, GrantState, StreamGrant, TimeConstraint
from headgate.model.ids import client_id, grant_id
from headgate.model.instants import DAY_US
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_FIELDS_NAMED = 12
AGENTS = "/console/agents"


def agent_path(client: str) -> str:
    """Return the address of a client's page."""
    return f"{AGENTS}/{quote(client, safe='')}"


async def show_all(console: Services, request: OwnerRequest) -> HttpReply:
    """Show every client."""
    await console.pump.flush()
    names = await _names(console)
    agents = tuple(_card(client, names) for client in await console.clients.overview())
    view = View(agents=agents, active=sum(agent.can_read for agent in agents))
    stopped = request.query.number("stopped")
    notice = "" if stopped is None else f"Stopped: {counted(stopped, 'grant')} ended."
    return page("agents.html", Frame("Agents", request, "agents", notice), view)


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show one client with its grants."""
    await console.pump.flush()
    client = await console.clients.client(client_id(request.places["client"]))
    card = _card(client, await _names(console))
    return page("agent.html", Frame(card.name, request, "agents"), card)


async def revoke(console: Services, request: OwnerRequest) -> HttpReply:
    """End one grant."""
    await request.form()
    await console.clients.revoke_grant(grant_id(request.places["grant_id"]))
    return see_other(f"{AGENTS}?stopped=1")


async def stop(console: Services, request: OwnerRequest) -> HttpReply:
    """End every grant of one client."""
    await request.form()
    ended = await console.clients.stop(client_id(request.places["client"]))
    return see_other(f"{AGENTS}?stopped={ended}")


async def stop_all(console: Services, request: OwnerRequest) -> HttpReply:
    """End every grant of every client."""
    await request.form()
    ended = await console.clients.stop_all()
    await console.gateway_callers.stop_all()
    return see_other(f"{AGENTS}?stopped={ended}")


async def _names(console: Services) -> dict[str, str]:
    connections = (await console.reads.catalog()).connections
    return {id_: connection.label or connection.connector_key for id_, connection in connections.items()}


def _card(client: ClientOverview, names: dict[str, str]) -> View:
    grants = tuple(_grant(grant, names) for grant in client.grants)
    can_see = [stream for grant in grants if grant.is_active for stream in grant.streams]
    last = max((grant.last_day for grant in client.grants if grant.last_day is not None), default=None)
    return View(
        id=client.client_id,
        name=client.name,
        path=agent_path(client.client_id),
        can_read=bool(client.active),
        summary=_summary(can_see),
        today=client.today,
        last_used=_last(last),
        grants=grants,
    )


def _summary(streams: list[View]) -> str:
    if not streams:
        return "Can read nothing now."
    parts = dict.fromkeys(f"{stream.stream} of {stream.sources}" for stream in streams)
    return f"Can read {'; '.join(parts)}."


def _grant(overview: GrantOverview, names: dict[str, str]) -> View:
    grant, limit = overview.issued.grant, overview.issued.daily_records
    return View(
        id=grant.id,
        state=overview.state,
        is_active=overview.state in {GrantState.ACTIVE, GrantState.CONSUMED},
        streams=tuple(_stream(stream, names) for stream in grant.streams),
        since=day(grant.issued_at),
        until="until you revoke it" if grant.expires_at is None else f"until {day(grant.expires_at)}",
        is_single_use=grant.access_mode is AccessMode.SINGLE_USE,
        today=overview.today,
        limit=limit,
        left=max((limit or 0) - overview.today, 0),
        last_used=_last(overview.last_day),
    )


def _stream(stream: StreamGrant, names: dict[str, str]) -> View:
    sources = ", ".join(names.get(connection, connection) for connection in stream.connection_ids)
    named = tuple(stream.fields[:_FIELDS_NAMED])
    return View(
        stream=stream.name,
        sources=sources,
        fields=named,
        more_fields=len(stream.fields) - len(named),
        times=_times(stream.time),
    )


def _times(time: TimeConstraint | None) -> str:
    if time is None:
        return "from any time"
    since = "" if time.since is None else f"from {day(time.since)} on"
    until = "" if time.until is None else f"before {day(time.until)}"
    return " and ".join(filter(None, (since, until)))


def _last(last_day: int | None) -> str:
    return "not in the last 30 days" if last_day is None else day(last_day * DAY_US)
