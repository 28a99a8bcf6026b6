"""Narrow a grant: take away streams, fields, times, days and records; look at what would stay before it is done."""

from __future__ import annotations

from headgate.auth.consent import DURATIONS, MOST_DAYS, MOST_RECORDS, whole_number
from headgate.auth.narrowing import NarrowedStream, Narrowing, always_shown, narrow, terms_of_grant
from headgate.console.agents import AGENTS, agent_path
from headgate.console.formatting import day
from headgate.console.pages import Form, Frame, OwnerRequest, View, page, see_other
from headgate.console.samples import sample_table
from headgate.errors import InvalidRequest
from headgate.model.grant import StreamGrant
from headgate.model.ids import FieldName, StreamName, grant_id
from headgate.model.instants import DAY_US, instant
from headgate.model.ledger import IssuedGrant
from headgate.reading.preview import preview
from headgate.web.replies import HttpReply
from headgate.wiring import Services

_VIA = "console: narrow a grant"


async def show(console: Services, asked: OwnerRequest) -> HttpReply:
    """Show a grant, with what it shows now."""
    issued = await console.clients.grant(grant_id(asked.places["grant_id"]))
    return _page(asked, await _view(console, asked, issued, _as_it_is(issued)))


async def change(console: Services, asked: OwnerRequest) -> HttpReply:
    """Narrow a grant, or show what would stay of it."""
    form = await asked.form()
    issued = await console.clients.grant(grant_id(asked.places["grant_id"]))
    catalog = await console.reads.catalog()
    try:
        chosen = _chosen(form, issued, console.clock())
        narrowed = narrow(issued, chosen, catalog)
        if form.get("do") != "narrow":
            return _page(asked, await _view(console, asked, narrowed, form, issued))
        await console.clients.narrow_grant(issued, chosen, catalog)
    except InvalidRequest as error:
        problem = f"{error.message} {error.hint}"
        view = await _view(console, asked, issued, form, problem=problem)
        return _page(asked, view, status=error.status)
    return see_other(agent_path(issued.grant.client_id))


def _page(asked: OwnerRequest, view: View, status: int = 200) -> HttpReply:
    return page("narrow.html", Frame("Narrow a grant", asked, "agents"), view, status=status)


def _as_it_is(issued: IssuedGrant) -> Form:
    fields = {f"fields/{stream.name}": [*map(str, stream.fields)] for stream in issued.grant.streams}
    return Form({**fields, "keep": [str(stream.name) for stream in issued.grant.streams]})


def _chosen(form: Form, issued: IssuedGrant, now: int) -> Narrowing:
    days, daily = form.get("days"), form.get("daily_records").strip()
    streams = {
        stream.name: NarrowedStream(
            frozenset(map(FieldName, form.all(f"fields/{stream.name}"))), _since(form, stream.name)
        )
        for stream in issued.grant.streams
        if stream.name in form.all("keep")
    }
    records = whole_number(daily, MOST_RECORDS, "daily_records") if daily else None
    if records is not None and issued.daily_records is not None and records > issued.daily_records:
        raise InvalidRequest(
            f"The grant has {issued.daily_records:,} records a day already, and narrowing cannot raise that.",
            hint="Choose a smaller number, or leave it empty to keep the limit.",
            param="daily_records",
        )
    ends_at = now + whole_number(days, MOST_DAYS, "days") * DAY_US if days else None
    return Narrowing(streams, ends_at, records)


def _since(form: Form, stream: StreamName) -> int | None:
    text = form.get(f"since/{stream}").strip()
    at = instant(text) if text else None
    if text and at is None:
        raise InvalidRequest("The day must be written like 2026-01-31.", param="since")
    return at


async def _view(
    console: Services,
    asked: OwnerRequest,
    narrowed: IssuedGrant,
    form: Form,
    whole: IssuedGrant | None = None,
    *,
    problem: str = "",
) -> View:
    """Draw a grant that is shown, out of the whole one."""
    catalog, issued = await console.reads.catalog(), whole or narrowed
    terms = terms_of_grant(narrowed, catalog)
    stream_previews = await preview(console.reads, terms, asked.request.context.request_id, _VIA)
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
