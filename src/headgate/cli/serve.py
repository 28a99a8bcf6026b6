"""``headgate serve``: answer over HTTP; ``demo``: with an invented person's records; ``mcp``: over stdio; ``config``."""

from __future__ import annotations

import shlex
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, cast

import platformdirs
import typer

from headgate import __version__, memory
from headgate.agent_programs.programs import PROGRAMS, HttpServer, inspector_line, shell_line
from headgate.cli.terminal import (
    AsJson,
    group,
    needs_extra,
    progress_line,
    progress_note,
    put,
    resolved_settings,
    state_of,
    table,
)
from headgate.errors import ConfigInvalid
from headgate.home import Home
from headgate.settings import ALL_SETTINGS, Resolved

config_app = group()

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
    settings = resolved_settings(context, **flags).settings
    # The server's libraries are an extra, and slow to import: only this command needs them.
    with progress_note("Starting ..."), needs_extra("serve"):
        from headgate.hosting import run_server  # noqa: PLC0415

    def announce(address: str, home: Home, link: str | None) -> None:
        typer.echo(f"Headgate {__version__} serves {address}\n  home  {home.path}\n  stop  Ctrl-C")
        typer.echo(_console(address, link))

    run_server(settings, announce)


def serve_demo(
    context: typer.Context, *, host: Host = None, port: Port = None, workers: Workers = None
) -> None:
    """Start a server with an invented person's records."""
    memory.economise()
    with progress_note("Starting ..."), needs_extra("serve"):
        from headgate.cli.demonstration import make_demo  # noqa: PLC0415 - as above
        from headgate.hosting import run_server  # noqa: PLC0415 - as above
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as directory:
        flags = {"home": f"{directory}/home", "host": host, "port": port, "workers": workers}
        settings = resolved_settings(context, **flags).settings
        with progress_line("Writing an invented person's year:") as show:
            demo = make_demo(settings, show)

        def announce(address: str, home: Home, link: str | None) -> None:
            typer.echo(_demo_words(HttpServer(f"{address}/mcp", demo.token), demo.records, home.path, link))

        run_server(settings, announce)


def _console(address: str, link: str | None) -> str:
    if link is None:
        return f"  console  {address}/console"
    return (
        f"  console  {link}\n           opens once, within 15 minutes, and asks for a password of your choice"
    )


def _demo_words(server: HttpServer, records: int, home: Path, link: str | None) -> str:
    from headgate.sources.demo.filling import OWNER, QUESTIONS  # noqa: PLC0415 - only the demonstration needs it

    address = server.url.removesuffix("/mcp")
    programs = [
        (program.title, shell_line(program, server) or _connect_line(program.name, home, program.url_member))
        for program in PROGRAMS.values()
    ]
    lines = [
        f"Headgate {__version__} serves an invented year of {OWNER} at {address}",
        f"  {records:,} records: two mail accounts, calendar, chat, bank and notes. All of it is invented.",
        _console(address, link),
        f"  MCP URL  {server.url}",
        f"  token    {server.token}",
        "Connect one of these:",
        *(f"  {title:<14}  {line}" for title, line in [*programs, ("Inspector", inspector_line(server))]),
        "Ask, for instance:",
        *(f"  - {question}" for question in QUESTIONS),
        "See what was read, and stop it, in the console or in another terminal:",
        f"  headgate --home {home} audit list",
        f"  headgate --home {home} grants revoke demo-agent",
        "  stop     Ctrl-C; everything shown here is deleted",
    ]
    return "\n".join(lines)


def _connect_line(name: str, home: Path, url_member: str | None) -> str:
    """Write our command that writes the file of a program that has no command for it."""
    line = f"headgate --home {home} connect {name} --yes --write"
    return line if url_member is None else f"{line} --http"


# Over standard input and output


def mcp(
    context: typer.Context,
    *,
    provider_url: Annotated[
        str | None, typer.Option(help="Read from this resource server instead of the home.", metavar="URL")
    ] = None,
    cache_root: Annotated[
        Path | None, typer.Option(help="The directory of saved tokens.", metavar="DIR")
    ] = None,
    client: Annotated[
        str | None, typer.Option(help="Read with the token that was saved for this client.", metavar="NAME")
    ] = None,
    server_name: Annotated[
        str | None, typer.Option(help="The server name that the client sees.", metavar="NAME")
    ] = None,
) -> None:
    """Serve one agent over stdio, with its saved token."""
    environment = state_of(context).environment
    # Imported step by step: a session that cannot begin is refused before the slow libraries are loaded.
    with needs_extra("mcp"):
        from headgate.auth import credentials  # noqa: PLC0415
    credentials.refuse_owner_environment(environment)
    address = provider_url or environment.get("PDPP_PROVIDER_URL")
    root = cache_root or cache_root_of(environment)
    # The clock of this process: headgate.wiring would bring the whole server along.
    now = int(time.time())  # noqa: TID251
    if address:
        try:
            provider = credentials.provider_address(address)
        except ConfigInvalid as error:
            raise typer.BadParameter(error.message) from error
        path = credentials.credential_path(root, provider)
        content = '{"credential": {"access_token": "TOKEN"}}'
        hint = f"Put {content} into {path}, with a token granted at {provider}."
    else:
        provider, home = "", resolved_settings(context).settings.home
        path = (
            credentials.only_credential_path(root, home)
            if client is None
            else credentials.home_credential_path(root, home, client)
        )
        hint = f"Run: headgate grants create --client {shlex.quote(client or 'NAME')} --save"
    token = credentials.read_token(path, now_seconds=now, hint=hint)
    name = server_name or environment.get("PDPP_MCP_SERVER_NAME")
    with needs_extra("mcp" if provider else "serve"):
        from headgate.mcp.serve.results import SERVER_NAME, ServerIdentity  # noqa: PLC0415

        identity = ServerIdentity(__version__, name or SERVER_NAME)
        if provider:
            from headgate.mcp.serve.remote import run_remote  # noqa: PLC0415

            run_remote(provider, token, identity)
        else:
            from headgate.stdio import run_stdio  # noqa: PLC0415

            run_stdio(resolved_settings(context).settings, token, identity)


def cache_root_of(environment: Mapping[str, str]) -> Path:
    """Return the directory of granted tokens."""
    return Path(environment.get("PDPP_CACHE_ROOT") or platformdirs.user_config_dir("headgate"))


# The settings that a server would have


@config_app.command("show")
def show_settings(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show every setting, its value, and where the value came from."""
    resolved = resolved_settings(context)
    document = {
        setting.name: {
            "value": _plain(resolved, setting.name),
            "origin": resolved.origins[setting.name].kind,
            "place": resolved.origins[setting.name].place or None,
        }
        for setting in ALL_SETTINGS
    }
    put(document, table([_row(resolved, setting.name) for setting in ALL_SETTINGS]), as_json=as_json)
    for name in resolved.unknown_variables:
        typer.echo(f"headgate: {name} is set in the environment but is no setting.", err=True)


def _plain(resolved: Resolved, name: str) -> int | str | list[str]:
    value: object = getattr(resolved.settings, name)
    if isinstance(value, frozenset):
        return sorted(map(str, cast("frozenset[object]", value)))
    return value if isinstance(value, int | str) else str(value)


def _row(resolved: Resolved, name: str) -> tuple[str, str, str]:
    value, origin = _plain(resolved, name), resolved.origins[name]
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return name, text, f"{origin.kind} ({origin.place})" if origin.place else origin.kind
