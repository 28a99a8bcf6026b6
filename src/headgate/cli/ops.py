"""``headgate ops``: inspect remote MCP servers, call their tools, approve their pins.

A token comes from a file that only its owner can read, never from the environment or the command line.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from headgate.cli.terminal import AsJson, group, many, printable, put, settings_of, table
from headgate.errors import CallError, ConfigInvalid, HeadgateError, InvalidRequest, NotFound, Unauthorized
from headgate.home import open_home, read_private
from headgate.mcp.client.from_mcp import ImportedOperations, ImportOptions, from_mcp
from headgate.mcp.client.pins import FilePins, PinStore
from headgate.mcp.client.servers import ServerEntry
from headgate.nearest import nearest
from headgate.operations.registration import expose
from headgate.operations.registry import Registry
from headgate.operations.spec import AccessControl
from headgate.operations.stubs import stub_module
from headgate.wiring import gateway_entries, server_importer

if TYPE_CHECKING:
    from headgate.mcp.gateway.hosted import ImportServer

app = group()

_T = TypeVar("_T")

Url = Annotated[str, typer.Argument(help="The server's streamable HTTP address.", metavar="URL")]
TokenFile = Annotated[
    Path | None,
    typer.Option("--token-file", help="A private file that holds the bearer token.", metavar="FILE"),
]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="A host that is allowed to have a private address.", metavar="HOST"),
]
Namespace = Annotated[str, typer.Option(help="The namespace of its operations.", metavar="NAME")]
OperationId = Annotated[str, typer.Argument(help="The operation's id or name.", metavar="ID")]

_FILE_HINT = "Put it alone into a file that only you can read (chmod 600), and name that with --token-file."
_WORDS = {"declared": "typed answer", "content_blocks": "content blocks", "unknown": "any answer"}
_NOTHING_PINNED = "Nothing is pinned yet; the first 'headgate ops list URL' pins the tools of a server."
_WAITS, _AWAY, _TOOL_FAILED, _NOT_THERE = 3, 4, 5, 6


@app.command()
def probe(
    context: typer.Context,
    url: Url,
    *,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    namespace: Namespace = "remote",
    as_json: AsJson = False,
) -> None:
    """Show what a server offers, and store nothing."""
    del context

    async def inspect(imported: ImportedOperations) -> dict[str, Any]:
        return imported.report()

    report = _with_server(inspect, _Server(url, token_file, allow_host, namespace), pins=None, skip_bad=True)
    put(report, _report_lines(report), as_json=as_json)


@app.command("list")
def list_operations(
    context: typer.Context,
    url: Url,
    *,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    namespace: Namespace = "remote",
    as_json: AsJson = False,
) -> None:
    """List a server's operations, one per line."""

    async def names(imported: ImportedOperations) -> list[dict[str, Any]]:
        return [
            {"id": tool.id, "title": tool.title, "description": tool.description} for tool in imported.tools
        ]

    rows = _with_server(names, _Server(url, token_file, allow_host, namespace), pins=_pins(context))
    lines = table([(row["id"], _line(row["description"])) for row in rows]) if rows else []
    put({"operations": rows}, lines, as_json=as_json)


@app.command()
def schema(
    context: typer.Context,
    url: Url,
    operation: OperationId,
    *,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    namespace: Namespace = "remote",
    as_json: AsJson = False,
) -> None:
    """Show the whole description of one operation, as JSON."""
    del as_json  # There is no other form.

    async def spec(imported: ImportedOperations) -> dict[str, Any]:
        return _find(imported, operation).spec.to_dict()

    document = _with_server(spec, _Server(url, token_file, allow_host, namespace), pins=_pins(context))
    put(document, (), as_json=True)


@app.command()
def call(  # noqa: PLR0913 - one option each
    context: typer.Context,
    url: Url,
    operation: OperationId,
    *,
    text: Annotated[str, typer.Option("--input", help="The arguments, as JSON.", metavar="JSON")] = "{}",
    timeout: Annotated[float, typer.Option(help="The time limit.", metavar="SECONDS")] = 30.0,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    namespace: Namespace = "remote",
    as_json: AsJson = False,
) -> None:
    """Call one operation; print its data, or with --json its whole envelope. A tool's own failure ends with 5."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise InvalidRequest("The --input is not JSON.", hint="Quote it for the shell.") from error

    async def run(imported: ImportedOperations) -> dict[str, Any]:
        registration = expose(_find(imported, operation), access_control=AccessControl())
        envelope = await Registry([registration]).execute(registration.id, value, timeout_seconds=timeout)
        return envelope.to_dict()

    envelope = _with_server(run, _Server(url, token_file, allow_host, namespace), pins=_pins(context))
    put(envelope if as_json else envelope["data"], (), as_json=True)
    error = envelope.get("error")
    if error is not None:
        typer.echo(f"headgate: {error['code']}: {_line(error['message'])}", err=True)
        raise typer.Exit(_TOOL_FAILED)


@app.command()
def pins(
    context: typer.Context,
    url: Annotated[str | None, typer.Argument(help="A server to compare.", metavar="[URL]")] = None,
    *,
    approve: Annotated[
        list[str] | None,
        typer.Option("--approve", help="Approve the current form of this tool.", metavar="TOOL"),
    ] = None,
    approve_all: Annotated[
        bool, typer.Option("--approve-all", help="Approve the current form of every tool.")
    ] = False,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    as_json: AsJson = False,
) -> None:
    """Show pinned tools, and what has changed on a server.

    It ends with 3 while a change needs your approval.
    """
    store = _pins(context)
    if url is None:
        pinned = {server: sorted(store.read(server) or {}) for server in store.servers()}
        lines = [f"{server}  {len(tools)} pinned" for server, tools in pinned.items()] or [_NOTHING_PINNED]
        put({"servers": pinned}, lines, as_json=as_json, context=context)
        return

    async def compare(imported: ImportedOperations) -> dict[str, Any]:
        if approve or approve_all:
            imported.approve(*(() if approve_all else approve or ()))
        return imported.report()

    report = _with_server(compare, _Server(url, token_file, allow_host), pins=store)
    waiting = {"blocked": report["blocked"], "vanished": report["vanished"]}
    approved = [tool["tool"] for tool in report["tools"] if not tool["blocked"]]
    document = {"server": report["endpoint"], "pinned": approved, **waiting}
    put(document, _pin_lines(report), as_json=as_json)
    if waiting["blocked"]:
        raise typer.Exit(_WAITS)


@app.command()
def stubs(
    context: typer.Context,
    url: Url,
    *,
    token_file: TokenFile = None,
    allow_host: AllowHost = None,
    namespace: Namespace = "remote",
    as_json: AsJson = False,
) -> None:
    """Write a Python module with one typed function for each tool."""

    async def write(imported: ImportedOperations) -> str:
        return stub_module(tool.spec for tool in imported.tools)

    text = _with_server(write, _Server(url, token_file, allow_host, namespace), pins=_pins(context))
    typer.echo(json.dumps({"module": text}) if as_json else text, nl=as_json)


@app.command()
def status(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show the servers of the gateway: which can be reached, and what waits for your approval.

    It ends with 4 if a server cannot be reached, else with 3 if a change waits, else with 0.
    """
    states = asyncio.run(_states(context))
    lines = [line for state in states for line in _state_lines(state)] or ["The gateway has no servers."]
    put({"servers": [state.document for state in states]}, lines, as_json=as_json)
    raise typer.Exit(max((state.exit_code for state in states), default=0))


@app.command()
def check(
    context: typer.Context,
    names: Annotated[
        list[str],
        typer.Argument(help="Operations of the gateway (SERVER/TOOL), or servers.", metavar="NAME..."),
    ],
    *,
    as_json: AsJson = False,
) -> None:
    """Check that operations of the gateway can be called now, for use in scripts; nothing is called.

    It ends with 6 if there is no such operation, else with 4 if its server cannot be reached, else with 3 if it
    waits for your approval, else with 0.
    """
    wanted = [(name, *_named(name)) for name in names]
    states = {
        state.name: state for state in asyncio.run(_states(context, {server for _, server, _ in wanted}))
    }
    judged = [(name, *_judged(states.get(server), tool)) for name, server, tool in wanted]
    document = [{"name": name, "state": words, "exit_code": code} for name, code, words in judged]
    put({"checked": document}, table([(name, words) for name, _, words in judged]), as_json=as_json)
    raise typer.Exit(max(code for _, code, _ in judged))


def _named(name: str) -> tuple[str, str | None]:
    server, separator, tool = name.strip("/").partition("/")
    return server, tool if separator else None


@dataclass(frozen=True, slots=True)
class _ServerState:
    """A server of the gateway as it is now."""

    name: str
    url: str
    problem: str = ""
    operations: frozenset[str] = frozenset()
    #: By tool, the grade of what waits.
    blocked: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def exit_code(self) -> int:
        """How ``status`` ends because of it."""
        return _AWAY if self.problem else _WAITS if self.blocked else 0

    @property
    def document(self) -> dict[str, Any]:
        """The state as JSON."""
        state = "away" if self.problem else "waits" if self.blocked else "ready"
        return {
            "name": self.name,
            "url": self.url,
            "state": state,
            "operations": len(self.operations),
            "blocked": dict(self.blocked),
            **({"problem": self.problem} if self.problem else {}),
        }


async def _states(context: typer.Context, names: Collection[str] | None = None) -> list[_ServerState]:
    entries = [
        entry for entry in gateway_entries(settings_of(context)) if names is None or entry.name in names
    ]
    importer = server_importer(_pins(context))
    return list(await asyncio.gather(*(_state(entry, importer) for entry in entries)))


async def _state(entry: ServerEntry, importer: ImportServer) -> _ServerState:
    url = entry.public_url
    try:
        async with await importer(entry) as imported:
            blocked = {name: change.grade for name, change in imported.blocked.items()}
            names = frozenset(item.local_name for item in imported if item.meta["mcp"]["tool"] not in blocked)
            return _ServerState(entry.name, url, "", names, blocked)
    except HeadgateError as error:
        return _ServerState(entry.name, url, f"{error.message} {error.hint}".strip())


def _judged(state: _ServerState | None, tool: str | None) -> tuple[int, str]:
    if state is None:
        return _NOT_THERE, "there is no such server"
    if state.problem:
        return _AWAY, f"its server cannot be reached: {_line(state.problem)}"
    if tool is None:
        return state.exit_code, "a change waits for your approval" if state.blocked else "ready"
    if tool in state.operations:
        return 0, "ready"
    if tool in state.blocked:
        return _WAITS, f"waits for your approval ({state.blocked[tool]})"
    near = nearest(tool, sorted(state.operations))
    return _NOT_THERE, "there is no such operation" + (f"; nearest: {', '.join(near)}" if near else "")


def _state_lines(state: _ServerState) -> list[str]:
    if state.problem:
        return [f"{state.name}  away: {_line(state.problem)}"]
    waiting = [f"  {grade:<9} {name}" for name, grade in sorted(state.blocked.items())]
    return [f"{state.name}  {many(len(state.operations), 'operation')}, {state.url}", *waiting]


@dataclass(frozen=True, slots=True)
class _Server:
    """The options that every command takes about the server it calls."""

    url: str
    token_file: Path | None
    allow_host: list[str] | None
    namespace: str = "remote"


def _with_server(
    use: Callable[[ImportedOperations], Awaitable[_T]],
    server: _Server,
    *,
    pins: PinStore | None,
    skip_bad: bool = False,
) -> _T:
    """Import a server, use it, and end the session."""
    options = ImportOptions(
        allowed_hosts=frozenset(server.allow_host or ()), on_bad_tool="skip" if skip_bad else "fail"
    )

    async def run() -> _T:
        imported = await from_mcp(
            server.url, server.namespace, _token(server.token_file), pins=pins, options=options
        )
        async with imported:
            return await use(imported)

    try:
        return asyncio.run(run())
    except Unauthorized as error:
        if server.token_file is None:
            raise Unauthorized("The server wants a token.", hint=_FILE_HINT) from error
        raise
    except CallError as error:
        if error.code == "tool_definition_changed":
            error.hint = f"See what changed with: headgate ops pins {server.url}"
        raise


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    content = read_private(path)
    if content is None:
        raise ConfigInvalid(f"{path} is not there.", hint=_FILE_HINT)
    token = content.decode("utf-8", "replace").strip()
    if not token:
        raise ConfigInvalid(f"{path} holds no token.", hint="Put the bearer token alone into the file.")
    return token


def _pins(context: typer.Context) -> FilePins:
    return FilePins(open_home(settings_of(context).home).pins)


def _find(imported: ImportedOperations, operation: str) -> Any:
    for tool in imported.tools:
        if operation in {tool.id, tool.local_name}:
            return tool
    raise NotFound(f"The server has no tool called {operation!a}.", hint="See 'headgate ops list'.")


def _report_lines(report: dict[str, Any]) -> list[str]:
    who = report["serverInfo"] or {"name": "a server without a name", "version": ""}
    return [
        f"{_line(who['name'])} {_line(who['version'])}".strip(),
        f"  endpoint  {report['endpoint']}",
        f"  protocol  {report['protocolVersion']}",
        *(
            f"  tool      {tool['tool']} ({_WORDS.get(tool['outputKind'], tool['outputKind'])})"
            for tool in report["tools"]
        ),
        *(f"  note      {tool['tool']}: {_line(note)}" for tool in report["tools"] for note in tool["notes"]),
        *(
            f"  skipped   {_line(skipped['tool'])}: {_line(skipped['reason'])}"
            for skipped in report["skipped"]
        ),
    ]


def _pin_lines(report: dict[str, Any]) -> list[str]:
    lines = [f"pinned    {tool['tool']}" for tool in report["tools"] if not tool["blocked"]]
    for change in report["blocked"]:
        lines.append(f"{change['grade']:<9} {change['tool']}")
        lines += [
            f"          {_line(detail['pointer'] or '/')}  {_line(detail['message'])}"
            for detail in change.get("changes", ())
        ]
    lines += [f"vanished  {name}" for name in report["vanished"]]
    if report["blocked"]:
        lines.append("Blocked until you approve: add --approve TOOL for one of them, --approve-all for all.")
    return lines


def _line(text: str) -> str:
    """Make a foreign text safe for one line of a terminal."""
    return printable(" ".join(text.split()), 200)
