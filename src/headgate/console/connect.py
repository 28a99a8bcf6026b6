"""How to connect an agent: one recommended way for each program, and a dot that turns green when it has read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from headgate.auth.clients import ClientOverview
from headgate.console.agents import agent_path
from headgate.console.pages import Frame, OwnerRequest, View, page, part
from headgate.web.replies import HttpReply
from headgate.wiring import Services


@dataclass(frozen=True, slots=True)
class Way:
    """The way to connect one program."""

    id: str
    program: str
    steps: str
    #: What to copy.
    text: str
    #: Parts of the names under which it registers, in small letters.
    known_as: tuple[str, ...]
    #: Whether it runs elsewhere, and so needs an address that the world can reach.
    is_remote: bool = False


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show how to connect; the dots and the list are asked for again every few seconds."""
    await console.pump.flush()
    url = console.mcp_url
    agents = [client for client in await console.clients.overview() if client.active]
    view = View(
        url=url,
        ways=tuple((way, _state(way, agents)) for way in _ways(url)),
        agents=tuple(
            View(name=agent.name, path=agent_path(agent.client_id), has_read=_has_read(agent))
            for agent in agents
        ),
        is_public=url.startswith("https://"),
    )
    if request.is_partial:
        return part("connected.html", request, view)
    return page("connect.html", Frame("Connect an agent", request, "connect"), view)


def _state(way: Way, agents: Sequence[ClientOverview]) -> str:
    """Return how far a program is: nothing, ``waits`` for its first read, or ``good``."""
    matching = [agent for agent in agents if _is_way(way, agent)]
    if any(map(_has_read, matching)):
        return "good"
    return "waits" if matching else ""


def _is_way(way: Way, agent: ClientOverview) -> bool:
    name = agent.name.casefold().replace("-", " ")
    return any(name.startswith(prefix) for prefix in way.known_as)


def _has_read(agent: ClientOverview) -> bool:
    return any(grant.last_day is not None for grant in agent.active)


def _ways(url: str) -> tuple[Way, ...]:
    cursor = json.dumps({"mcpServers": {"headgate": {"url": url}}})
    code = json.dumps({"name": "headgate", "type": "http", "url": url})
    return (
        Way(
            "claude",
            "Claude on the web, desktop or phone",
            "Settings, Connectors, Add custom connector; paste this address.",
            url,
            ("claude",),
            is_remote=True,
        ),
        Way(
            "chatgpt",
            "ChatGPT",
            "Settings, Apps and connectors, Create; paste this address.",
            url,
            ("chatgpt", "openai"),
            is_remote=True,
        ),
        Way(
            "claude-code",
            "Claude Code",
            "Run this; then type /mcp inside Claude Code to sign in.",
            f"claude mcp add --transport http headgate {url}",
            ("claude code",),
        ),
        Way(
            "codex",
            "Codex",
            "Run this; it opens the browser.",
            f"codex mcp add headgate --url {url}",
            ("codex",),
        ),
        Way("cursor", "Cursor", "Put this into ~/.cursor/mcp.json.", cursor, ("cursor",)),
        Way(
            "vs-code",
            "VS Code",
            "Run this.",
            f"code --add-mcp '{code}'",
            ("visual studio code", "vs code", "vscode"),
        ),
        Way(
            "other",
            "Anything else that speaks MCP",
            "Give it the address above, or create a token on the server.",
            "headgate grants create --client NAME --days 30",
            (),
        ),
    )
