"""Narrow a grant: take away streams, fields, times, days and records; look at what would stay before it is done."""

from __future__ import annotations

from headgate.auth.consent import DURATIONS
from headgate.auth.narrowing import always_shown, read_narrowed, terms_of_grant
from headgate.console.agents import AGENTS, agent_path
from headgate.console.formatting import day
from headgate.console.pages import Form, Frame, OwnerRequest, View, page, see_other
from headgate.console.samples import sample_table
from headgate.errors import InvalidRequest
from headgate.model.grant import StreamGrant
from headgate.model.ids import FieldName, grant_id
from headgate.model.ledger import IssuedGrant
from headgate.reading.preview import preview
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_VIA = "console: narrow a grant"


async def show(console: Services, request: OwnerRequest) -> HttpReply:
    """Show a grant, with what it shows now."""
    issued = await console.clients.grant(grant_id(request.places["grant_id"]))
    return _page(request, await _view(console, request, issued, _as_it_is(issued)))


async def change(console: Services, request: OwnerRequest) -> HttpReply:
    """Narrow a grant, or show what would stay of it."""
    form = await request.form()
    issued = await console.clients.grant(grant_id(request.places["grant_id"]))
    catalog = await console.reads.catalog()
    try:
        narrowed = read_narrowed(issued, form.get, form.all, catalog, console.clock())
        if form.get("do") != "narrow":
            return _page(request, await _view(console, request, narrowed, form, issued))
        await console.clients.narrow_grant(issued, narrowed)
    except InvalidRequest as error:
        problem = f"{error.message} {error.hint}"
        view = await _view(console, request, issued, form, problem=problem)
        return _page(request, view, status=error.status)
    return see_other(agent_path(issued.grant.client_id))


def _page(request: OwnerRequest, view: View, status: int = 200) -> HttpReply:
    return page("narrow.html", Frame("Narrow a grant", request, "agents"), view, status=status)


def _as_it_is(issued: IssuedGrant) -> Form:
    fields = {f"fields/{stream.name}": [*map(str, stream.fields)] for stream in issued.grant.streams}
    return Form({**fields, "keep": [str(stream.name) for stream in issued.grant.streams]})


async def _view(
    console: Services,
    request: OwnerRequest,
    narrowed: IssuedGrant,
    form: Form,
    whole: IssuedGrant | None = None,
    *,
    problem: str = "",
) -> View:
    """Draw a grant that is shown, out of the whole one."""
    catalog, issued = await console.reads.catalog(), whole or narrowed
    terms = terms_of_grant(narrowed, catalog)
    stream_previews = await preview(console.reads, terms, request.web.context.request_id, _VIA)
    previews = {seen.stream.name: seen for seen in stream_previews}

    def stream(granted: StreamGrant) -> View:
        return View(
            name=granted.name,
            fields=granted.fields,
            chosen=frozenset(map(FieldName, form.all(f"fields/{granted.name}"))),
            always=always_shown(issued, granted, catalog),
            is_chosen=granted.name in form.all("keep"),
            since=form.get(f"since/{granted.name}"),
            seen=previews.get(granted.name),
        )

    grant = issued.grant
    names = await console.clients.names()
    return View(
        client=names.get(grant.client_id, grant.client_id),
        client_path=agent_path(grant.client_id),
        path=f"/console/grants/{grant.id}/narrow",
        until="until you revoke it" if grant.expires_at is None else f"until {day(grant.expires_at)}",
        streams=tuple(map(stream, grant.streams)),
        days=form.get("days"),
        daily_records=form.get("daily_records"),
        limit=issued.daily_records,
        problem=problem,
        durations=DURATIONS,
        samples=sample_table,
        agents_path=AGENTS,
    )
