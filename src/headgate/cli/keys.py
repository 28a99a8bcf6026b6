"""``headgate keys``: the keys with which cursors and handles are sealed."""

from __future__ import annotations

import json

import typer

from headgate.auth.keys import load_ring, rotate_ring
from headgate.cli.terminal import AsJson, settings_of
from headgate.home import open_home
from headgate.model.sealed import KeyRing

app = typer.Typer(help="List and rotate keys.", rich_markup_mode=None)


@app.callback()
def _noun() -> None:
    """List and rotate keys."""


@app.command("list")
def list_(context: typer.Context, *, as_json: AsJson = False) -> None:
    """List the keys for cursors and handles.

    The first one seals new ones. The keys themselves are not shown.
    """
    found = _document(load_ring(open_home(settings_of(context).settings.home)))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    for one in found:
        typer.echo(f"{one['id']}  {one['use']}")


@app.command()
def rotate(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Start using a new key for cursors and handles.

    What the last key sealed can still be opened; what the key before it sealed cannot.

    It takes effect at once, in a running server too.
    """
    home = open_home(settings_of(context).settings.home)
    ended = load_ring(home).previous
    found = _document(rotate_ring(home))
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    typer.echo(f"{found[0]['id']} seals from now on; {found[1]['id']} opens what it sealed.")
    if ended is not None:
        typer.echo(f"{ended.id.hex()} has ended: cursors and handles that it sealed are refused.")


def _document(ring: KeyRing) -> list[dict[str, str]]:
    previous = [] if ring.previous is None else [{"id": ring.previous.id.hex(), "use": "opens"}]
    return [{"id": ring.current.id.hex(), "use": "seals and opens"}, *previous]
