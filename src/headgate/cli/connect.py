"""``headgate connect``: let an agent program on this machine read, with a grant and a token made for it alone.

``headgate doctor`` finds what keeps programs from connecting, and ``headgate try`` runs a tool as a client.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from headgate.agent_programs.merging import snippet, with_entry
from headgate.agent_programs.programs import (
    ENTRY,
    PROGRAMS,
    AgentProgram,
    HttpServer,
    StdioServer,
    program_of,
    shell_line,
)
from headgate.auth.clock import now
from headgate.auth.grants import Choice, Conditions, Issued
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
)
from headgate.cli.grants import issue_choice, save_token
from headgate.cli.homes import use_stores
from headgate.cli.preview import ask_for_everything, show_preview
from headgate.cli.serve import cache_root_of
from headgate.cli.terminal import AsJson, echo, many, put, require_home, settings_of, state_of
from headgate.doctor.judging import Finding
from headgate.doctor.probing import Examined, examine
from headgate.errors import Conflict, HeadgateError, NotFound, ResourceServerUnreachable
from headgate.home import write_private
from headgate.mcp.serve.looking import look, read_arguments
from headgate.mcp.serve.results import Outcome
from headgate.model.ids import ClientId, GrantId, RequestId, client_id, grant_id
from headgate.reading.home import ReadContext
from headgate.reading.local import LocalResourceServer
from headgate.reading.port import ReadAnswer
from headgate.reading.remote import RemoteResourceServer, http_client
from headgate.settings import CONFIG_VARIABLE, Settings
from headgate.wiring import Services, build_services, mcp_url, prepare, server_address


@dataclass(frozen=True, slots=True)
class _Connection:
    """One connection of a program: what goes into which file."""

    program: AgentProgram
    server: StdioServer | HttpServer
    file: Path

    @property
    def entry(self) -> dict[str, Any]:
        return self.program.entry(self.server)

    @property
    def snippet(self) -> str:
        return snippet(self.program.format, self.program.servers, ENTRY, self.entry)


def connect(  # noqa: PLR0913 - each is an option of the command
    context: typer.Context,
    program: Annotated[
        str | None,
        typer.Argument(help="A program such as claude-code; leave it out to list them.", metavar="PROGRAM"),
    ] = None,
    *,
    http: Annotated[
        bool,
        typer.Option(
            "--http", help="Connect to the running server instead of starting one for each session."
        ),
    ] = False,
    write: Annotated[
        bool,
        typer.Option(
            "--write", help="Write the program's configuration file, and keep a backup of the old one."
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Replace the grant that the program has now.")
    ] = False,
    connection: Connections = None,
    stream: Streams = None,
    fields: Fields = None,
    since: Since = None,
    until: Until = None,
    days: Days = DAYS,
    budget: Budget = None,
    yes: Confirmed = False,
    as_json: AsJson = False,
) -> None:
    """Connect an agent program: create its grant and configuration."""
    if program is None:
        _list_programs(context, as_json=as_json)
        return
    chosen, settings = program_of(program), settings_of(context)
    file = _file(context, chosen)
    choice = read_choice(connection, stream, fields, since, until)
    conditions = Conditions(ClientId(chosen.name), days=read_days(days), daily_records=read_budget(budget))
    # What cannot work is refused before anything is granted.
    tried = chosen.entry(HttpServer("", "") if http else StdioServer([""]))
    require_home(settings)
    if write:
        _merged(chosen, file, tried)
        _require_server(settings, is_http=http)
    if not again:
        _refuse_connected(settings, chosen)
    if not as_json:
        show_preview(settings, choice, chosen.title, days)
    ask_for_everything(choice, is_confirmed=yes)
    issued = _issue(settings, choice, conditions)
    connected = _connection(context, chosen, file, issued, is_http=http)
    backup = _write(connected) if write else None
    seen, warning = _check(settings, connected.server, issued.access_token)
    lines = _words(connected, issued, seen, backup, days, is_written=write)
    document = _document(connected, issued, is_written=write) | {"streams_seen": seen, "warning": warning}
    put(document, lines, as_json=as_json, indent=None, context=context)
    if warning and not as_json:
        echo(context, warning, err=True)


def _require_server(settings: Settings, *, is_http: bool) -> None:
    """Refuse to write an address at which the server of another home may answer."""
    if is_http and not server_address(settings):
        raise Conflict(
            f"No server of {settings.home} runs, so its address is not known.",
            hint="Start it with 'headgate serve' and repeat the command, or leave out --http.",
        )


def _refuse_connected(settings: Settings, program: AgentProgram) -> None:
    """Refuse to connect a program twice."""
    if older := use_stores(settings, lambda stores: _active_grants(stores, ClientId(program.name))):
        raise Conflict(
            f"{program.title} may read already, by {older[0]}.",
            hint=f"See 'headgate grants show {program.name}'; replace it with --again.",
        )


async def _active_grants(stores: Services, client: ClientId) -> list[GrantId]:
    at, granted = stores.judged_at(), await stores.ledger.grants()
    return [
        issued.grant.id
        for issued in granted
        if issued.grant.client_id == client and issued.state(at) == "active"
    ]


def _issue(settings: Settings, choice: Choice, conditions: Conditions) -> Issued:
    """Make the program's one grant; an earlier one ends."""

    async def work(stores: Services) -> Issued:
        older = await _active_grants(stores, conditions.client_id)
        issued = await issue_choice(stores, choice, conditions)
        for grant in older:
            await stores.ledger.revoke(grant, now())
        return issued

    return use_stores(settings, work)


def _list_programs(context: typer.Context, *, as_json: bool) -> None:
    rows = [
        {"name": program.name, "title": program.title, "file": str(_file(context, program))}
        for program in PROGRAMS.values()
    ]
    put(rows, (f"{row['name']:<15} {row['title']:<15} {row['file']}" for row in rows), as_json=as_json)
    if not as_json:
        echo(context, "Connect one with 'headgate connect NAME'.", err=True)


def _connection(
    context: typer.Context, program: AgentProgram, file: Path, issued: Issued, *, is_http: bool
) -> _Connection:
    settings, environment = settings_of(context), state_of(context).environment
    address = mcp_url(settings)
    if is_http:
        return _Connection(program, HttpServer(address, issued.access_token), file)
    save_token(context, program.name, issued, address)
    executable = shutil.which("headgate") or str(Path(sys.executable).with_name("headgate"))
    moved = ["--cache-root", str(cache_root_of(environment))] if "PDPP_CACHE_ROOT" in environment else []
    command = [executable, "--home", str(settings.home), "mcp", "--client", program.name, *moved]
    variables = {name: environment[name] for name in (CONFIG_VARIABLE,) if name in environment}
    return _Connection(program, StdioServer(command, variables), file)


def _file(context: typer.Context, program: AgentProgram) -> Path:
    return program.file(sys.platform, Path.home(), state_of(context).environment)


def _merged(program: AgentProgram, file: Path, entry: dict[str, Any]) -> tuple[Path, bytes | None, str]:
    """Read the program's file; return its path, its content and what it becomes."""
    # A link to a file elsewhere stays a link.
    path = file.resolve()
    before = path.read_bytes() if path.exists() else None
    text = program.new_file if before is None else before.decode()
    return path, before, with_entry(program.format, text, program.servers, ENTRY, entry)


def _write(connected: _Connection) -> Path | None:
    """Put the entry into the program's file, and return the copy of the file as it was."""
    path, before, after = _merged(connected.program, connected.file, connected.entry)
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = path.with_name(f"{path.name}.before-headgate")
    if before is not None:
        write_private(backup, before)
    write_private(path, after.encode())
    return None if before is None else backup


def _check(settings: Settings, server: StdioServer | HttpServer, token: str) -> tuple[int, str | None]:
    """Read as the program will, and count the streams as it does; the second value says what is missing."""
    if isinstance(server, HttpServer) and not server_address(settings):
        # Not tried: at the address that is configured, the server of another home may answer.
        return 0, f"No server of {settings.home} runs yet: start it with 'headgate serve'."
    try:
        reading = _over_http(server) if isinstance(server, HttpServer) else _in_home(settings, token)
        rows = asyncio.run(reading).body()["data"]
        return len({(row["connector_key"], row["name"]) for row in rows}), None
    except ResourceServerUnreachable:
        return 0, "No server answers there yet: start it with 'headgate serve'."
    except HeadgateError as error:
        return 0, f"The connection does not work yet: {error.message} {error.hint}"


async def _over_http(server: HttpServer) -> ReadAnswer:
    async with http_client(server.token) as client:
        return await RemoteResourceServer(server.url.removesuffix("/mcp"), client).streams()


async def _in_home(settings: Settings, token: str) -> ReadAnswer:
    services = build_services(settings, prepare(settings))
    async with services.running():
        read = ReadContext(await services.admission.admit(token), RequestId("req_connect"), "connect")
        return await LocalResourceServer(services.reads, read).streams()


def _document(connected: _Connection, issued: Issued, *, is_written: bool) -> dict[str, Any]:
    return {
        "program": connected.program.name,
        "file": str(connected.file),
        "written": is_written,
        "servers_member": connected.program.servers,
        "entry": connected.entry,
        "grant_ids": [grant.id for grant in issued.grants],
    }


def _words(
    connected: _Connection, issued: Issued, seen: int, backup: Path | None, days: int, *, is_written: bool
) -> list[str]:
    title = connected.program.title
    grants = ", ".join(grant.id for grant in issued.grants)
    lines = [f"{title} may read for {days} days (grants: {grants})."]
    if is_written:
        copied = f" (the file as it was: {backup})" if backup else ""
        lines.append(f"Written to {connected.file}{copied}. {connected.program.then}")
    elif (line := shell_line(connected.program, connected.server)) is not None:
        lines += ["Run this once:", "", line, ""]
    else:
        lines += [
            f"Add this to {connected.file}, or repeat the command with --again --write:",
            "",
            connected.snippet,
            "",
        ]
    if seen:
        lines.append(f"Tried as {title}: it sees {many(seen, 'stream')}.")
    lines.append("Then ask it: What may you read?")
    lines.append(f"End it with: headgate grants revoke {connected.program.name}")
    return lines


_LEVELS = {"good": "ok", "warning": "note", "problem": "FAULT"}


def doctor(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Find what keeps agents from connecting, and how to fix it.

    It checks files, tokens, the clock, the tools and the metadata that agents see. It ends with 1 on a fault.
    """
    settings, root = settings_of(context), cache_root_of(state_of(context).environment)
    findings = list(examine(Examined(settings, server_address(settings), root, now())))
    put([asdict(finding) for finding in findings], map(_line, findings), as_json=as_json, context=context)
    if any(finding.level == "problem" for finding in findings):
        raise typer.Exit(1)


def _line(finding: Finding) -> str:
    advice = f"\n       {finding.advice}" if finding.advice else ""
    return f"{_LEVELS[finding.level]:<5}  {finding.text}{advice}"


def try_tool(
    context: typer.Context,
    tool: Annotated[str, typer.Argument(help="One of the six tools, such as search.", metavar="TOOL")],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(help="The arguments: a JSON object, or NAME=VALUE.", metavar="[ARGUMENT]..."),
    ] = None,
    *,
    client: Annotated[str, typer.Option("--as", help="The client.", metavar="CLIENT")],
    grant: Annotated[
        str | None, typer.Option(help="Use this grant; by default the newest.", metavar="GRANT")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run a tool as a client, and print exactly what it would see.

    The log lists it as your own read, and it does not count against the client's budget. --json prints the whole
    result, with its structure.
    """
    settings = settings_of(context)

    values = read_arguments(tool, arguments or [])

    async def work() -> Outcome:
        services = build_services(settings, prepare(settings))
        async with services.running():
            try:
                named = await services.clients.client(client_id(client))
                granted = named.readable(grant_id(grant) if grant else None)
            except NotFound as error:
                raise NotFound(error.message, hint="See 'headgate grants list'.") from None
            access = await services.admission.access_as(granted)
            address = mcp_url(settings).removesuffix("/mcp")
            return await look(services.reads, access, tool, values, address)

    done = asyncio.run(work())
    put(done.whole() if as_json else None, [done.text], as_json=as_json)
