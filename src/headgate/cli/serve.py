"""``headgate serve``: answer on HTTP until stopped; ``headgate demo``: the same with an invented person's records."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from headgate import __version__, memory
from headgate.agent_programs.programs import PROGRAMS, HttpServer, inspector_line, shell_line
from headgate.cli.terminal import needs_extra, progress_line, progress_note, settings_of
from headgate.home import Home

Host = Annotated[str | None, typer.Option(help="The address to listen on.", metavar="ADDRESS")]
Port = Annotated[
    str | None, typer.Option(help="The port to listen on; 0 chooses a free one.", metavar="PORT")
]
Workers = Annotated[str | None, typer.Option(help="The number of server processes.", metavar="N")]


def serve(
    context: typer.Context,
    *,
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="A proxy with https forwards requests to this server.")
    ] = False,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Serve an invented person's records from a home that is deleted at the end."
        ),
    ] = False,
) -> None:
    """Start the server, and serve until Ctrl-C or SIGTERM."""
    if demo:
        serve_demo(context, host=host, port=port, workers=workers)
        return
    serve_home(context, host=host, port=port, workers=workers, behind_proxy="true" if behind_proxy else None)


def serve_home(context: typer.Context, **flags: str | None) -> None:
    """Serve the home of the settings; it is created if it is not there."""
    memory.economise()
    settings = settings_of(context, **flags).settings
    # The server's libraries are an extra, and slow to import: only this command needs them.
    with progress_note("Starting ..."), needs_extra("serve"):
        from headgate.hosting import run_server  # noqa: PLC0415
    run_server(settings, lambda address, home, link: typer.echo(_words(address, home, link)))


def serve_demo(
    context: typer.Context,
    *,
    host: Host = None,
    port: Port = None,
    workers: Workers = None,
) -> None:
    """Start a server with an invented person's records."""
    memory.economise()
    with progress_note("Starting ..."), needs_extra("serve"):
        from headgate.hosting import run_server  # noqa: PLC0415 - as above
        from headgate.wiring import make_demo  # noqa: PLC0415 - as above
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as directory:
        settings = settings_of(context, home=f"{directory}/home", host=host, port=port, workers=workers)
        with progress_line("Writing an invented person's year:") as show:
            demo = make_demo(settings.settings, show)

        def announce(address: str, home: Home, link: str | None) -> None:
            typer.echo(_demo_words(HttpServer(f"{address}/mcp", demo.token), demo.records, home.path, link))

        run_server(settings.settings, announce)


def _words(address: str, home: Home, link: str | None) -> str:
    lines = [f"Headgate {__version__} serves {address}", f"  home  {home.path}", "  stop  Ctrl-C"]
    return "\n".join([*lines, _console(link) if link else f"  console  {address}/console"])


def _console(link: str) -> str:
    return (
        f"  console  {link}\n           opens once, within 15 minutes, and asks for a password of your choice"
    )


def _demo_words(server: HttpServer, records: int, home: Path, link: str | None) -> str:
    from headgate.sources.demo.filling import OWNER, QUESTIONS  # noqa: PLC0415 - only the demonstration needs it

    address = server.url.removesuffix("/mcp")
    lines = [
        f"Headgate {__version__} serves an invented year of {OWNER} at {address}",
        f"  {records:,} records: two mail accounts, calendar, chat, bank and notes. All of it is invented.",
        _console(link) if link else f"  console  {address}/console",
        f"  MCP URL  {server.url}",
        f"  token    {server.token}",
        "Connect one of these:",
        *(f"  {title:<14}  {line}" for title, line in _client_lines(server, home)),
        "Ask, for instance:",
        *(f"  - {question}" for question in QUESTIONS),
        "See what was read, and stop it, in the console or in another terminal:",
        f"  headgate --home {home} audit list",
        f"  headgate --home {home} grants revoke demo-agent",
        "  stop     Ctrl-C; everything shown here is deleted",
    ]
    return "\n".join(lines)


def _client_lines(server: HttpServer, home: Path) -> list[tuple[str, str]]:
    """Write one line for each program: its command, or ours that writes its file."""
    lines = [
        (
            program.title,
            shell_line(program, server)
            or _connect_line(program.name, home, is_http=program.url_member is not None),
        )
        for program in PROGRAMS.values()
    ]
    return [*lines, ("Inspector", inspector_line(server))]


def _connect_line(name: str, home: Path, *, is_http: bool) -> str:
    line = f"headgate --home {home} connect {name} --yes --write"
    return f"{line} --http" if is_http else line
