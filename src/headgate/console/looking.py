"""See as this agent sees: any of the six tools, run under the agent's grants, with the exact text and structure."""

from __future__ import annotations

import json

from headgate.auth.clients import ClientOverview
from headgate.console.agents import AGENTS, agent_path
from headgate.console.formatting import day
from headgate.console.pages import Form, Frame, OwnerRequest, View, page
from headgate.errors import InvalidArgument, NotFound
from headgate.mcp.serve.call import TOOL_HANDLERS
from headgate.mcp.serve.looking import look, read_arguments
from headgate.model.ids import client_id, grant_id
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_MOST_ARGUMENTS = 50


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show the form."""
    client = await console.clients.client(client_id(request.places["client"]))
    return _page(request, _view(client, Form({})))


async def run(console: Services, request: OwnerRequest) -> HttpReply:
    """Run a tool as the agent, and show what it would be shown."""
    form = await request.form()
    client = await console.clients.client(client_id(request.places["client"]))
    chosen, tool = form.get("grant"), form.get("tool")
    try:
        arguments = read_arguments(tool, _lines(form.get("arguments")))
        granted = client.readable(grant_id(chosen) if chosen else None)
    except (InvalidArgument, NotFound) as error:
        view = _view(client, form, problem=f"{error.message} {error.hint}")
        return _page(request, view, status=error.status)
    access = await console.admission.access_as(granted)
    address = console.mcp_url.removesuffix("/mcp")
    outcome = await look(console.reads, access, tool, arguments, address)
    structure = json.dumps(outcome.whole()["structuredContent"], ensure_ascii=False, indent=2)
    view = _view(client, form, text=outcome.text, structure=structure, is_error=outcome.is_error)
    return _page(request, view)


def _page(request: OwnerRequest, view: View, status: int = 200) -> HttpReply:
    return page("look.html", Frame(f"As {view.client} sees", request, "agents"), view, status=status)


def _lines(text: str) -> list[str]:
    """Cut what was typed into arguments: one to a line, or one JSON object over several."""
    if text.lstrip().startswith("{"):
        return [text.strip()]
    return [line.strip() for line in text.splitlines() if line.strip()][:_MOST_ARGUMENTS]


def _view(
    client: ClientOverview,
    form: Form,
    *,
    text: str = "",
    structure: str = "",
    is_error: bool = False,
    problem: str = "",
) -> View:
    return View(
        client=client.name,
        path=f"{agent_path(client.client_id)}/look",
        agent_path=agent_path(client.client_id),
        tools=tuple(TOOL_HANDLERS),
        grants=tuple(
            View(
                id=grant.issued.grant.id,
                words=f"{day(grant.issued.grant.issued_at)}: {', '.join(part.name for part in grant.issued.grant.streams)}",
            )
            for grant in client.active
        ),
        grant=form.get("grant"),
        tool=form.get("tool", "schema"),
        arguments=form.get("arguments"),
        text=text,
        structure=structure,
        is_error=is_error,
        problem=problem,
        agents_path=AGENTS,
    )
