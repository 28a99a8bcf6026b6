"""``headgate serve``: answer on HTTP until stopped."""

from __future__ import annotations

import tempfile
from typing import Annotated

import typer

from headgate import __version__, memory
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
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy with https stands before this server.")
    ] = False,
    demo: Annotated[
        bool,
        typer.Option("--demo", help="Serve an invented person's records from a home that is thrown away."),
    ] = False,
) -> None:
    """Serve the home over HTTP until Ctrl-C or SIGTERM."""
    memory.economise()
    if demo:
        _serve_demo(context, host=host, port=port, workers=workers)
        return
    proxy = "true" if behind_proxy else None
    settings = settings_of(context, host=host, port=port, workers=workers, behind_proxy=proxy).settings
    # The server's libraries are an extra, and slow to import: only this command needs them.
    with needs_extra("serve"):
        from headgate.hosting import run_server  # noqa: PLC0415
    run_server(settings, _announce, _show_link)


def _announce(address: str, home: Home) -> None:
    typer.echo(f"Headgate {__version__} serves {address}\n  home  {home.path}\n  stop  Ctrl-C")


def _show_link(link: str) -> None:
    typer.echo(
        f"  console  {link}\n           opens once, within 15 minutes, and asks for a password of your choice"
    )


def _serve_demo(context: typer.Context, **flags: str | None) -> None:
    with needs_extra("serve"):
        from headgate.hosting import run_server  # noqa: PLC0415 - as above
        from headgate.wiring import make_demo  # noqa: PLC0415 - as above
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as directory:
        settings = settings_of(context, home=f"{directory}/home", **flags).settings
        demo = make_demo(settings)
        run_server(settings, lambda address, _home: typer.echo(_demo_words(address, demo.token)), _show_link)


def _demo_words(address: str, token: str) -> str:
    url = f"{address}/mcp"
    return f"""\
Headgate {__version__} serves an invented person's mail and chat at {address}
  MCP URL    {url}
  token      {token}
  Claude     claude mcp add --transport http headgate {url} --header "Authorization: Bearer {token}"
  Inspector  npx @modelcontextprotocol/inspector --cli --server-url {url} --transport http \\
               --method tools/list --header "Authorization: Bearer {token}"
Ask, for instance:
  - What was agreed in the minutes of the meeting on the bridge?
  - Who wrote most of my mail, and in which month?
  - Is there anything about the boat, in mail or in chat?
  stop       Ctrl-C; everything shown here is thrown away"""
