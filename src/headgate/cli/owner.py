"""``headgate owner``, ``clients``, ``keys`` and ``stop-all``: the owner's tokens, password, clients and keys."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from headgate.auth.clients import add_owner_client, token_mark
from headgate.auth.clock import now
from headgate.auth.gateway import stop_callers
from headgate.auth.grants import issue_owner_token
from headgate.auth.keys import KeyRing, load_ring, rotate_ring
from headgate.auth.oauth.clients import OAuthClient
from headgate.auth.sessions import fresh_link
from headgate.cli.homes import read_stores, use_stores
from headgate.cli.terminal import AsJson, Yes, group, many, put, settings_of
from headgate.errors import InvalidRequest, NotFound
from headgate.home import open_home
from headgate.model.grant import OwnerScope
from headgate.model.ids import client_id
from headgate.model.instants import iso
from headgate.operations.spec import parse_operation_id
from headgate.wiring import Services, gateway_entries, mcp_url, welcome_url

app, clients_app, keys_app = group(), group(), group()


@app.command()
def reset(context: typer.Context, *, yes: Yes = False, as_json: AsJson = False) -> None:
    """Reset the password, and print a link to set a new one.

    It also removes the passkeys and ends every session.
    """
    settings = settings_of(context)
    _ask_to_reset(settings.home, is_confirmed=yes)

    async def work(stores: Services) -> str:
        secret, link = fresh_link(stores.judged_at())
        await stores.ledger.owner.reset(link)
        stores.log_command("headgate owner reset")
        return welcome_url(mcp_url(settings).removesuffix("/mcp"), secret)

    link = use_stores(settings, work)
    lines = [
        f"The password and the passkeys of {settings.home} are removed, and every session has ended.",
        f"{link}\nopens once, within 15 minutes, while the server runs",
    ]
    put({"link": link}, lines, as_json=as_json, indent=None)


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

    text = use_stores(context, work)
    put({"access_token": text}, [text], as_json=as_json, indent=None)


@app.command()
def tokens(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List your active tokens."""

    async def work(stores: Services) -> list[dict[str, Any]]:
        return [
            {
                "mark": token_mark(entry),
                "name": entry.name,
                "scope": "all" if entry.scope is None else entry.scope.value,
                "issued_at": iso(entry.issued_at),
                "expires_at": None if entry.expires_at is None else iso(entry.expires_at),
            }
            for entry in await stores.clients.owner_tokens()
        ]

    rows = read_stores(context, work)
    lines = [
        f"{row['mark']}  {row['name'] or '-'}  {row['scope']}  since {row['issued_at']}  {row['expires_at'] or 'no end'}"
        for row in rows
    ]
    put(rows, lines, as_json=as_json)


@app.command("revoke-token")
def revoke_token(
    context: typer.Context,
    mark: Annotated[
        str, typer.Argument(help="The mark of the token in 'headgate owner tokens'.", metavar="MARK")
    ],
) -> None:
    """Revoke one of your tokens, at once."""
    use_stores(context, lambda stores: stores.clients.revoke_owner_token(mark))
    typer.echo(f"{mark} is revoked.")


def stop_all(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Revoke every grant of every agent, at once."""

    async def work(stores: Services) -> int:
        await stop_callers(stores.oauth_store)
        return await stores.clients.stop_all()

    ended = use_stores(context, work)
    put({"ended": ended}, [f"{many(ended, 'grant')} ended."], as_json=as_json, indent=None)


# Clients that the owner registers: programs that cannot register themselves, and callers of the gateway


@clients_app.command("create")
def create_client(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The name that the console shows.", metavar="NAME")],
    *,
    redirect: Annotated[
        list[str] | None, typer.Option(help="Its redirect URI; may be repeated.", metavar="URI")
    ] = None,
    secret: Annotated[
        bool, typer.Option("--secret", help="Create a secret for it, and print it once.")
    ] = False,
    gateway: Annotated[
        bool, typer.Option("--gateway", help="Let it call remote tools; print its token once.")
    ] = False,
    server: Annotated[
        list[str] | None,
        typer.Option(help="With --gateway: everything of this server, by default of each.", metavar="NAME"),
    ] = None,
    operation: Annotated[
        list[str] | None, typer.Option(help="With --gateway: this operation.", metavar="ID")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Register a program: an OAuth client with --redirect, or a caller of the gateway with --gateway."""
    if gateway == bool(redirect):
        raise InvalidRequest(
            "Name either --redirect or --gateway.", hint="See 'headgate clients create --help'."
        )
    if gateway:
        token = _create_caller(context, name, server or (), operation or ())
        put({"name": name, "access_token": token}, [token], as_json=as_json, indent=None)
        return

    async def work(stores: Services) -> tuple[OAuthClient, str | None]:
        return await add_owner_client(stores.oauth_store, name, redirect or [], now=now(), has_secret=secret)

    client, text = use_stores(context, work)
    document = {"client_id": client.id, "client_secret": text, "redirect_uris": list(client.redirect_uris)}
    lines = [f"client_id  {client.id}", *([f"client_secret (shown only now)  {text}"] if text else [])]
    put(document, lines, as_json=as_json, indent=None)


def _create_caller(
    context: typer.Context, name: str, servers: Sequence[str], operations: Sequence[str]
) -> str:
    """Let a program call remote tools; return its token, which reads no record."""
    known = {entry.name for entry in gateway_entries(settings_of(context))}
    named = {*servers, *(parse_operation_id(operation)[0] for operation in operations)}
    if strange := sorted(named - known):
        raise NotFound(
            f"The gateway has no server {strange[0]!a}.",
            hint=f"It has: {', '.join(sorted(known)) or 'none'}.",
        )
    chosen = servers or (() if operations else sorted(known))

    async def work(stores: Services) -> str:
        await stores.gateway_callers.allow(name, chosen, operations)
        stores.log_command("headgate clients create --gateway")
        return await stores.gateway_callers.make_token(client_id(name))

    return use_stores(context, work)


# The keys with which cursors and handles are sealed


@keys_app.command("list")
def list_keys(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the keys for cursors and handles.

    The first one seals new ones. The keys themselves are not shown.
    """
    keys = _keys_document(load_ring(open_home(settings_of(context).home)))
    put(keys, [f"{key['id']}  {key['use']}" for key in keys], as_json=as_json)


@keys_app.command()
def rotate(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Start using a new key for cursors and handles.

    What the last key sealed can still be opened; what the key before it sealed cannot.

    It takes effect at once, in a running server too.
    """
    home = open_home(settings_of(context).home)
    ended = load_ring(home).previous
    keys = _keys_document(rotate_ring(home))
    lines = [f"{keys[0]['id']} seals from now on; {keys[1]['id']} opens what it sealed."]
    if ended is not None:
        lines.append(f"{ended.id.hex()} has ended: cursors and handles that it sealed are refused.")
    put(keys, lines, as_json=as_json)


def _keys_document(ring: KeyRing) -> list[dict[str, str]]:
    previous = [] if ring.previous is None else [{"id": ring.previous.id.hex(), "use": "opens"}]
    return [{"id": ring.current.id.hex(), "use": "seals and opens"}, *previous]
