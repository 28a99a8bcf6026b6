"""``headgate grants``: what the owner lets clients see."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.agent_programs.programs import PROGRAMS, HttpServer, shell_line
from headgate.auth.clients import GrantOverview
from headgate.auth.clock import now
from headgate.auth.credentials import home_credential_path, write_token
from headgate.auth.documents import in_words, issued_document
from headgate.auth.grants import Choice, Conditions, Issued, issue
from headgate.cli.grant_options import (
    DAYS,
    Budget,
    Confirmed,
    Connections,
    Days,
    Fields,
    Since,
    Streams,
    Until,
    read_budget,
    read_choice,
    read_days,
    read_option,
    refused_choice,
    with_ids,
)
from headgate.cli.homes import read_stores, use_stores
from headgate.cli.preview import ask_for_everything, show_preview
from headgate.cli.serve import cache_root_of
from headgate.cli.terminal import (
    AsJson,
    day_text,
    echo,
    group,
    many,
    put,
    require_home,
    settings_of,
    state_of,
    table,
)
from headgate.errors import InvalidAuthorizationDetails, NotFound
from headgate.model.ids import ClientId, client_id, grant_id
from headgate.model.instants import DAY_US, iso
from headgate.model.ledger import IssuedGrant
from headgate.wiring import Services, mcp_url

app = group()
_Grant = Annotated[str, typer.Argument(help="The grant's id, or a client's name.", metavar="GRANT")]


@app.command()
def create(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    *,
    client: Annotated[str, typer.Option(help="Who the grant is for.", metavar="NAME")],
    connection: Connections = None,
    stream: Streams = None,
    fields: Fields = None,
    since: Since = None,
    until: Until = None,
    days: Days = DAYS,
    budget: Budget = None,
    save: Annotated[
        bool, typer.Option("--save", help="Save the token for 'headgate mcp' instead of printing it.")
    ] = False,
    yes: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    """Show what a client would see, grant it, and print its token once."""
    settings = settings_of(context)
    # Parsed before anything is opened, so that a wrong option is reported as a usage error.
    name = read_option("client", client_id, client)
    choice = read_choice(connection, stream, fields, since, until)
    conditions = Conditions(name, days=read_days(days), daily_records=read_budget(budget))
    require_home(settings)
    if not as_json:
        show_preview(settings, choice, client, days)
    ask_for_everything(choice, is_confirmed=yes)
    issued = use_stores(settings, lambda stores: issue_choice(stores, choice, conditions))
    address, grant_ids = mcp_url(settings), [grant.id for grant in issued.grants]
    if save:
        path = save_token(context, client, issued, address)
        document: dict[str, Any] = {"saved": str(path), "grant_ids": grant_ids}
        lines = [f"Saved for 'headgate mcp' in {path}"]
    else:
        document = {
            "access_token": issued.access_token,
            "token_kind": issued.token_kind.value,
            "grant_ids": grant_ids,
            "package_id": issued.package_id,
            "mcp_url": address,
        }
        lines = _issued_lines(client, issued, address)
    put(document, lines, as_json=as_json, indent=None, context=context)


async def issue_choice(stores: Services, choice: Choice, conditions: Conditions) -> Issued:
    """Issue what a person chose on the command line."""
    catalog = await stores.catalog()
    if conditions.days is not None:
        stores.latest.refuse_clock_behind(now())
    named = with_ids(choice, catalog)
    try:
        return await issue(stores.ledger, named, conditions, catalog=catalog, now=now())
    except InvalidAuthorizationDetails as refusal:
        raise refused_choice(refusal, catalog, named) from None


def save_token(context: typer.Context, client: str, issued: Issued, address: str) -> Path:
    """Save the token in the file of its client, and say so if another one was there."""
    root = cache_root_of(state_of(context).environment)
    path = home_credential_path(root, settings_of(context).home, client)
    if path.exists():
        typer.echo(f"The token that was saved for {client} before is replaced; its grant goes on.", err=True)
    credential = {
        "access_token": issued.access_token,
        "token_type": "Bearer",
        "pdpp_token_kind": issued.token_kind.value,
    }
    write_token(path, address.removesuffix("/mcp"), credential, created_at=iso(now()))
    return path


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List every grant with dates, last use and budget."""

    async def work(stores: Services) -> list[tuple[dict[str, Any], GrantOverview]]:
        overviews = {
            grant.issued.grant.id: grant
            for client in await stores.clients.overview()
            for grant in client.grants
        }
        now = stores.judged_at()
        return [
            (issued_document(grant, now), overviews[grant.grant.id]) for grant in await stores.ledger.grants()
        ]

    grants = read_stores(context, work)
    heads = ("grant", "state", "client", "issued", "last used", "expires", "budget", "streams")
    lines = table([heads, *(_row(document, overview) for document, overview in grants)]) if grants else []
    put([document | _use(overview) for document, overview in grants], lines, as_json=as_json)
    if not (grants or as_json):
        echo(context, "There are no grants yet. See 'headgate grants create --help'.", err=True)


def _use(overview: GrantOverview) -> dict[str, Any]:
    day = overview.last_day
    return {"last_used_on": None if day is None else day_text(day * DAY_US), "records_today": overview.today}


def _row(document: dict[str, Any], overview: GrantOverview) -> tuple[str, ...]:
    daily = document["daily_records"]
    return (
        document["grant_id"],
        document["state"],
        document["client"]["client_id"],
        document["issued_at"][:10],
        _use(overview)["last_used_on"] or "-",
        (document["expires_at"] or "never")[:10],
        "-" if daily is None else f"{overview.today:,} of {daily:,} today",
        ", ".join(stream["name"] for stream in document["streams"]),
    )


@app.command()
def show(context: typer.Context, grant: _Grant, *, as_json: AsJson = False) -> None:
    """Describe in words what a grant allows."""

    async def work(stores: Services) -> tuple[Any, list[str]]:
        now, grants = stores.judged_at(), await _named(stores, grant)
        labels: dict[str, str] = {
            connection.id: connection.display_name or connection.id
            for connection in await stores.store.connections()
        }
        documents = [issued_document(issued, now) for issued in grants]
        words = [in_words(issued, labels, now) for issued in grants]
        if grants[0].grant.id == grant:
            return documents[0], words
        texts = (f"{issued.grant.id}: {text}" for issued, text in zip(grants, words, strict=True))
        return documents, [f"'{grant}' is a client with {many(len(grants), 'grant')}:", *texts]

    document, lines = read_stores(context, work)
    put(document, lines, as_json=as_json)


@app.command()
def revoke(context: typer.Context, grant: _Grant, *, as_json: AsJson = False) -> None:
    """Revoke a grant, or every grant of a client.

    The client is refused from its next request on.
    """

    async def work(stores: Services) -> list[str]:
        grants = await _named(stores, grant)
        active = [
            issued.grant.id for issued in grants if issued.grant.id == grant or issued.revoked_at is None
        ]
        for active_id in active:
            await stores.ledger.revoke(active_id, now())
        return list(active)

    ended = read_stores(context, work)
    if ended == [grant]:
        text = f"{grant} is revoked."
    elif ended:
        text = f"{grant} can no longer read anything: {many(len(ended), 'grant')} revoked."
    else:
        text = f"{grant} had no active grant."
    put({"revoked": True, "grant_id": grant, "grant_ids": ended}, [text], as_json=as_json, indent=None)


async def _named(stores: Services, name: str) -> list[IssuedGrant]:
    """Find a grant by its id, or the grants of a client."""
    by_id = await stores.ledger.grant(grant_id(name))
    if by_id is not None:
        return [by_id]
    grants = [issued for issued in await stores.ledger.grants() if issued.grant.client_id == ClientId(name)]
    if not grants:
        raise NotFound(f"There is no grant or client '{name}'.", hint="See 'headgate grants list'.")
    return grants


def _issued_lines(client: str, issued: Issued, url: str) -> list[str]:
    """Write the token, and what the client needs if it is a program that is known."""
    program, server = PROGRAMS.get(client), HttpServer(url, issued.access_token)
    if program is None:
        then = f"the client sends  Authorization: Bearer {server.token}"
    elif line := shell_line(program, server):
        then = f"run once  {line}"
    else:
        then = f"or write its file with  headgate connect {client} --again --write"
    return [
        *(f"grant  {grant.id}" for grant in issued.grants),
        *([] if issued.package_id is None else [f"package  {issued.package_id}"]),
        f"connect to  {url}",
        f"token (shown only now)  {issued.access_token}",
        then,
        f"end it with  headgate grants revoke {client}",
    ]
