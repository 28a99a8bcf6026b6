"""``headgate clients``: OAuth clients that the owner registers, for programs that cannot register themselves."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from headgate.auth.clients import add_owner_client
from headgate.auth.oauth.clients import OAuthClient
from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, settings_of
from headgate.wiring import Services, now

app = typer.Typer(help="Register OAuth clients by hand.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Register OAuth clients by hand."""


@app.command()
def add(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name that the consent page shows.", metavar="NAME")],
    redirect: Annotated[list[str], typer.Option(help="Its redirect URI; may be repeated.", metavar="URI")],
    *,
    secret: Annotated[
        bool, typer.Option("--secret", help="Create a secret for it, and print it once.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Register a client, and print its id."""

    async def work(stores: Services) -> tuple[OAuthClient, str | None]:
        return await add_owner_client(stores.oauth_store, name, redirect, now=now(), has_secret=secret)

    client, text = with_stores(settings_of(context).settings, work)
    document = {"client_id": client.id, "client_secret": text, "redirect_uris": list(client.redirect_uris)}
    lines = [f"client_id  {client.id}", *([f"client_secret (shown only now)  {text}"] if text else [])]
    typer.echo(json.dumps(document) if as_json else "\n".join(lines))
