"""``headgate grants``: what the owner lets clients see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.agent_programs.programs import PROGRAMS, HttpServer, shell_line
from headgate.auth.clients import GrantOverview
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
from headgate.cli.grant_preview import ask_for_everything, show_preview
from headgate.cli.mcp import cache_root_of
from headgate.cli.stores import with_stores, with_stores_if_any
from headgate.cli.terminal import AsJson, State, echo, many, require_home, settings_of, table
from headgate.errors import InvalidAuthorizationDetails, NotFound
from headgate.model.ids import (
    ClientId,
    client_id,
    grant_id,
)
from headgate.model.instants import DAY_US, iso
from headgate.model.ledger import IssuedGrant
from headgate.wiring import Services, mcp_url, now

app = typer.Typer(help="Create, list and revoke grants: what clients may see.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Create, list and revoke grants: what clients may see."""


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
    settings = settings_of(context).settings
    # Parsed before anything is opened, so that a wrong option is reported as a usage error.
    name, choice = (
        read_option("client", client_id, client),
        read_choice(connection, stream, fields, since, until),
    )
    daily, days = read_budget(budget), read_days(days)
    require_home(settings)
    if not as_json:
        show_preview(settings, choice, client, days)
    ask_for_everything(choice, is_confirmed=yes)

    async def work(stores: Services) -> Issued:
        return await issue_choice(stores, choice, Conditions(name, days=days, daily_records=daily))

    issued = with_stores(settings, work)

    if save:
        path = save_token(context, client, issued, mcp_url(settings))
        document = {"saved": str(path), "grant_ids": [grant.id for grant in issued.grants]}
        if as_json:
            typer.echo(json.dumps(document))
        else:
            echo(context, f"Saved for 'headgate mcp' in {path}")
        return
    address = mcp_url(settings)
    if as_json:
        typer.echo(json.dumps(_issued(issued, address)))
    else:
        echo(context, _issued_text(client, issued, address))


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
    state: State = context.obj
    root = cache_root_of(state.environment)
    path = home_credential_path(root, settings_of(context).settings.home, client)
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

    found = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps([document | _use(overview) for document, overview in found], indent=2))
        return
    if not found:
        echo(context, "There are no grants yet. See 'headgate grants create --help'.", err=True)
        return
    heads = ("grant", "state", "client", "issued", "last used", "expires", "budget", "streams")
    for line in table([heads, *(_row(document, overview) for document, overview in found)]):
        typer.echo(line)


def _use(overview: GrantOverview) -> dict[str, Any]:
    day = overview.last_day
    return {
        "last_used_on": None if day is None else iso(day * DAY_US)[:10],
        "records_today": overview.today,
    }


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
def show(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id, or a client's name.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Describe in words what a grant allows."""

    async def work(stores: Services) -> str:
        now, found = stores.judged_at(), await _named(stores, grant)
        if as_json:
            documents = [issued_document(one, now) for one in found]
            return json.dumps(documents[0] if found[0].grant.id == grant else documents, indent=2)
        labels: dict[str, str] = {
            connection.id: connection.display_name or connection.id
            for connection in await stores.store.connections()
        }
        words = [in_words(one, labels, now) for one in found]
        if found[0].grant.id == grant:
            return words[0]
        texts = (f"{one.grant.id}: {text}" for one, text in zip(found, words, strict=True))
        return "\n".join([f"'{grant}' is a client with {many(len(found), 'grant')}:", *texts])

    typer.echo(with_stores_if_any(settings_of(context).settings, work))


@app.command()
def revoke(
    context: typer.Context,
    grant: Annotated[str, typer.Argument(help="The grant's id, or a client's name.", metavar="GRANT")],
    *,
    as_json: AsJson = False,
) -> None:
    """Revoke a grant, or every grant of a client.

    The client is refused from its next request on.
    """

    async def work(stores: Services) -> list[str]:
        found = await _named(stores, grant)
        active = [one for one in found if one.grant.id == grant or one.revoked_at is None]
        for one in active:
            await stores.ledger.revoke(one.grant.id, now())
        return [one.grant.id for one in active]

    ended = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps({"revoked": True, "grant_id": grant, "grant_ids": ended}))
    elif ended == [grant]:
        typer.echo(f"{grant} is revoked.")
    elif ended:
        typer.echo(f"{grant} can no longer read anything: {many(len(ended), 'grant')} revoked.")
    else:
        typer.echo(f"{grant} had no active grant.")


async def _named(stores: Services, name: str) -> list[IssuedGrant]:
    """Find a grant by its id, or the grants of a client."""
    one = await stores.ledger.grant(grant_id(name))
    if one is not None:
        return [one]
    found = [each for each in await stores.ledger.grants() if each.grant.client_id == ClientId(name)]
    if not found:
        raise NotFound(f"There is no grant or client '{name}'.", hint="See 'headgate grants list'.")
    return found


def _issued(issued: Issued, url: str) -> dict[str, Any]:
    return {
        "access_token": issued.access_token,
        "token_kind": issued.token_kind.value,
        "grant_ids": [grant.id for grant in issued.grants],
        "package_id": issued.package_id,
        "mcp_url": url,
    }


def _issued_text(client: str, issued: Issued, url: str) -> str:
    lines = [f"grant  {grant.id}" for grant in issued.grants]
    if issued.package_id is not None:
        lines.append(f"package  {issued.package_id}")
    return "\n".join(
        [
            *lines,
            f"connect to  {url}",
            f"token (shown only now)  {issued.access_token}",
            *_client_lines(client, HttpServer(url, issued.access_token)),
            f"end it with  headgate grants revoke {client}",
        ]
    )


def _client_lines(client: str, server: HttpServer) -> list[str]:
    """Write what the client needs, if it is a program that is known."""
    program = PROGRAMS.get(client)
    if program is None:
        return [f"the client sends  Authorization: Bearer {server.token}"]
    line = shell_line(program, server)
    return [
        f"run once  {line}" if line else f"or write its file with  headgate connect {client} --again --write"
    ]
