"""How to connect an agent: one recommended path for each client."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.console.pages import Frame, OwnerRequest, page, part
from headgate.console.services import ConsoleServices
from headgate.web.replies import HttpReply


@dataclass(frozen=True, slots=True)
class ConnectView:
    """Where agents connect, and which have."""

    url: str
    agents: tuple[tuple[str, bool], ...]


async def show(console: ConsoleServices, asked: OwnerRequest) -> HttpReply:
    """Show how to connect; the list of agents that have is asked for again every few seconds."""
    url = console.facts.mcp_url
    agents = tuple(
        (one.client_id, any(g.last_day is not None for g in one.active))
        for one in console.clients.overview()
        if one.active
    )
    view = ConnectView(url, agents)
    if asked.is_partial:
        return part("connected.html", asked, view)
    return page("connect.html", Frame("Connect an agent", asked, "connect"), view)
