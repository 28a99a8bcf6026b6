"""``headgate owner``: owner tokens and the password."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headgate.auth.clients import token_mark
from headgate.auth.gateway import stop_callers
from headgate.auth.grants import issue_owner_token
from headgate.auth.sessions import fresh_link
from headgate.cli.stores import with_stores, with_stores_if_any
from headgate.cli.terminal import AsJson, many, settings_of
from headgate.errors import InvalidRequest
from headgate.model.grant import OwnerScope
from headgate.model.instants import iso
from headgate.wiring import Services, mcp_url, now, welcome_url

app = typer.Typer(help="Create owner tokens, and reset the password.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """Create owner tokens, and reset the password."""


@app.command()
def reset(
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Reset the password, and print a link to set a new one.

    It also removes the passkeys and ends every session.
    """
    settings = settings_of(context).settings
    _ask_to_reset(settings.home, is_confirmed=yes)

    async def work(stores: Services) -> str:
        secret, link = fresh_link(stores.judged_at())
        await stores.ledger.owner.reset(link)
        stores.log_command("headgate owner reset")
        return welcome_url(mcp_url(settings).removesuffix("/mcp"), secret)

    made = with_stores(settings, work)
    if as_json:
        typer.echo(json.dumps({"link": made}))
        return
    typer.echo(f"The password and the passkeys of {settings.home} are removed, and every session has ended.")
    typer.echo(f"{made}\nopens once, within 15 minutes, while the server runs")


def _ask_to_reset(home: Path, *, is_confirmed: bool) -> None:
    """Ask before anything ends."""
    if is_confirmed:
        return
    what = f"the password and the passkeys of {home}, and ends every session"
    if not sys.stdin.isatty():
        raise InvalidRequest(f"This removes {what}.", hint="Confirm it with --yes.")
    typer.confirm(f"This removes {what}. Go on?", abort=True, err=True)


@app.command()
def token(
    context: typer.Context,
    *,
    name: Annotated[str | None, typer.Option(help="A name for the token.", metavar="NAME")] = None,
    scope: Annotated[
        Literal["metrics", "ingest", "all"], typer.Option(help="What it may be used for.")
    ] = "all",
    days: Annotated[
        int | None,
        typer.Option(help="Days until the token expires; by default it never does.", metavar="N", min=1),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create an owner token, and print it once.

    Without --scope the token may do everything.
    """

    async def work(stores: Services) -> str:
        limited = None if scope == "all" else OwnerScope(scope)
        return await issue_owner_token(stores.ledger, now=now(), name=name, scope=limited, days=days)

    made = with_stores(settings_of(context).settings, work)
    typer.echo(json.dumps({"access_token": made}) if as_json else made)


@app.command()
def tokens(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List your active tokens."""

    async def work(stores: Services) -> list[dict[str, Any]]:
        return [
            {
                "mark": token_mark(one),
                "name": one.name,
                "scope": "all" if one.scope is None else one.scope.value,
                "issued_at": iso(one.issued_at),
                "expires_at": None if one.expires_at is None else iso(one.expires_at),
            }
            for one in await stores.clients.owner_tokens()
        ]

    found = with_stores_if_any(settings_of(context).settings, work)
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for one in found:
        end = one["expires_at"] or "no end"
        typer.echo(f"{one['mark']}  {one['name'] or '-'}  {one['scope']}  since {one['issued_at']}  {end}")


@app.command("revoke-token")
def revoke_token(
    context: typer.Context,
    mark: Annotated[
        str, typer.Argument(help="The mark of the token in 'headgate owner tokens'.", metavar="MARK")
    ],
) -> None:
    """Revoke one of your tokens, at once."""

    async def work(stores: Services) -> None:
        await stores.clients.revoke_owner_token(mark)

    with_stores(settings_of(context).settings, work)
    typer.echo(f"{mark} is revoked.")


def stop_all(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Revoke every grant of every agent, at once."""

    async def work(stores: Services) -> int:
        await stop_callers(stores.oauth_store)
        return await stores.clients.stop_all()

    ended = with_stores(settings_of(context).settings, work)
    typer.echo(json.dumps({"ended": ended}) if as_json else f"{many(ended, 'grant')} ended.")
