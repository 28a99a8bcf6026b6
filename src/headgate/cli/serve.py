"""``headgate serve``: answer on HTTP until stopped."""

from __future__ import annotations

from typing import Annotated

import typer

from headgate import __version__
from headgate.cli.extras import needs_extra
from headgate.cli.terminal import settings_of
from headgate.home import Home


def serve(
    context: typer.Context,
    *,
    host: Annotated[str | None, typer.Option(help="The address to listen on.", metavar="ADDRESS")] = None,
    port: Annotated[
        str | None, typer.Option(help="The port to listen on; 0 takes any.", metavar="PORT")
    ] = None,
    workers: Annotated[str | None, typer.Option(help="How many processes serve.", metavar="N")] = None,
) -> None:
    """Serve the home over HTTP until Ctrl-C or SIGTERM."""
    settings = settings_of(context, host=host, port=port, workers=workers).settings
    # The server's libraries are an extra, and slow to import: only this command needs them.
    with needs_extra("serve"):
        from headgate.wiring import run_server  # noqa: PLC0415
    run_server(settings, _announce)


def _announce(address: str, home: Home) -> None:
    typer.echo(f"Headgate {__version__} serves {address}\n  home  {home.path}\n  stop  Ctrl-C")
