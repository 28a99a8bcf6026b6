"""Agents: what each client may see, in words, and how that ends."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from headgate.auth.clients import ClientOverview, GrantOverview
from headgate.console.formatting import counted, day
from headgate.console.pages import Frame, OwnerRequest, page, see_other
from headgate.model.grant import AccessMode, GrantState, StreamGrant, TimeConstraint
from headgate.model.ids import client_id, grant_id
from headgate.model.instants import DAY_US
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_FIELDS_NAMED = 12
AGENTS = "/console/agents"


@dataclass(frozen=True, slots=True)
class StreamWords:
    """What a grant allows of one stream, in words."""

    stream: str
    sources: str
    fields: tuple[str, ...]
    more_fields: int
    times: str


@dataclass(frozen=True, slots=True)
class GrantWords:
    id: str
    state: GrantState
    streams: tuple[StreamWords, ...]
    since: str
    until: str
    is_single_use: bool
    today: int
    limit: int | None
    last_used: str

    @property
    def is_active(self) -> bool:
        """Whether the client can read under it now."""
        return self.state in {GrantState.ACTIVE, GrantState.CONSUMED}

    @property
    def left(self) -> int:
        """How many records are left for today."""
        return max((self.limit or 0) - self.today, 0)


@dataclass(frozen=True, slots=True)
class AgentCard:
    """One client."""

    id: str
    name: str
    path: str
    can_read: bool
    summary: str
    today: int
    last_used: str
    grants: tuple[GrantWords, ...]


@dataclass(frozen=True, slots=True)
class AgentsView:
    """Every client."""

    agents: tuple[AgentCard, ...]

    @property
    def active(self) -> int:
        """How many can read now."""
        return sum(agent.can_read for agent in self.agents)


def agent_path(client: str) -> str:
    """Return the address of a client's page."""
    return f"{AGENTS}/{quote(client, safe='')}"


async def show_all(console: Services, asked: OwnerRequest) -> HttpReply:
    """Show every client."""
    await console.pump.flush()
    names = await _names(console)
    view = AgentsView(tuple(_card(one, names) for one in await console.clients.overview()))
    stopped = asked.query.number("stopped")
    notice = "" if stopped is None else f"Stopped: {counted(stopped, 'grant')} ended."
    return page("agents.html", Frame("Agents", asked, "agents", notice), view)


async def show(console: Services, asked: OwnerRequest) -> HttpReply:
    """Show one client with its grants."""
    await console.pump.flush()
    client = await console.clients.client(client_id(asked.places["client"]))
    card = _card(client, await _names(console))
    return page("agent.html", Frame(card.name, asked, "agents"), card)


async def revoke(console: Services, asked: OwnerRequest) -> HttpReply:
    """End one grant."""
    await asked.form()
    await console.clients.revoke_grant(grant_id(asked.places["grant_id"]))
    return see_other(f"{AGENTS}?stopped=1")


async def stop(console: Services, asked: OwnerRequest) -> HttpReply:
    """End every grant of one client."""
    await asked.form()
    ended = await console.clients.stop(client_id(asked.places["client"]))
    return see_other(f"{AGENTS}?stopped={ended}")


async def stop_all(console: Services, asked: OwnerRequest) -> HttpReply:
    """End every grant of every client."""
    await asked.form()
    ended = await console.clients.stop_all()
    await console.gateway_callers.stop_all()
    return see_other(f"{AGENTS}?stopped={ended}")


async def _names(console: Services) -> dict[str, str]:
    connections = (await console.reads.catalog()).connections
    return {id_: one.label or one.connector_key for id_, one in connections.items()}


def _card(client: ClientOverview, names: dict[str, str]) -> AgentCard:
    grants = tuple(_grant(one, names) for one in client.grants)
    can_see = [stream for grant in grants if grant.is_active for stream in grant.streams]
    last = max((one.last_day for one in client.grants if one.last_day is not None), default=None)
    return AgentCard(
        id=client.client_id,
        name=client.name,
        path=agent_path(client.client_id),
        can_read=bool(client.active),
        summary=_summary(can_see),
        today=client.today,
        last_used=_last(last),
        grants=grants,
    )


def _summary(streams: list[StreamWords]) -> str:
    if not streams:
        return "Can read nothing now."
    parts = dict.fromkeys(f"{stream.stream} of {stream.sources}" for stream in streams)
    return f"Can read {'; '.join(parts)}."


def _grant(one: GrantOverview, names: dict[str, str]) -> GrantWords:
    grant = one.issued.grant
    return GrantWords(
        id=grant.id,
        state=one.state,
        streams=tuple(_stream(stream, names) for stream in grant.streams),
        since=day(grant.issued_at),
        until="until you revoke it" if grant.expires_at is None else f"until {day(grant.expires_at)}",
        is_single_use=grant.access_mode is AccessMode.SINGLE_USE,
        today=one.today,
        limit=one.issued.daily_records,
        last_used=_last(one.last_day),
    )


def _stream(stream: StreamGrant, names: dict[str, str]) -> StreamWords:
    sources = ", ".join(names.get(one, one) for one in stream.connection_ids)
    named = tuple(stream.fields[:_FIELDS_NAMED])
    return StreamWords(stream.name, sources, named, len(stream.fields) - len(named), _times(stream.time))


def _times(time: TimeConstraint | None) -> str:
    if time is None:
        return "from any time"
    since = "" if time.since is None else f"from {day(time.since)} on"
    until = "" if time.until is None else f"before {day(time.until)}"
    return " and ".join(filter(None, (since, until)))


def _last(last_day: int | None) -> str:
    return "not in the last 30 days" if last_day is None else day(last_day * DAY_US)
