"""``headgate owner``: what speaks for the owner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import typer

from headgate.cli.stores import with_stores
from headgate.cli.terminal import AsJson, settings_of

if TYPE_CHECKING:
    from headgate.wiring import HomeStores

app = typer.Typer(help="Speak for the owner.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Speak for the owner."""


@app.command()
def token(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Make a token that may do everything, and print it once."""

    async def work(stores: HomeStores) -> str:
        from headgate.auth.grants import issue_owner_token  # noqa: PLC0415 - needs the extra
        from headgate.wiring import now  # noqa: PLC0415 - needs the extra

        return await issue_owner_token(stores.ledger, now=now())

    made = with_stores(settings_of(context).settings, work)
    typer.echo(json.dumps({"access_token": made}) if as_json else made)
