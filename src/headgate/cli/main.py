"""The ``headgate`` command: global options, command groups, and exit codes.

Exit codes are contract and documented in docs/reference/cli.md.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperGroup

from headgate import __version__
from headgate.cli.terminal import State, fail, needs_extra
from headgate.errors import HeadgateError

#: How the parser of options words it.
_NO_NUMBER = "Input should be a valid integer, unable to parse string as an integer"
EXIT_FAILED = 1
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130


class CommandEntry(NamedTuple):
    """Where a command or a group of commands is, and its line in the list of commands."""

    module: str
    name: str
    help: str
    extra: str = "serve"


#: In the order of the help.
COMMANDS = {
    "connect": CommandEntry(
        "connect", "connect", "Connect an agent program: create its grant and configuration."
    ),
    "doctor": CommandEntry("connect", "doctor", "Find what keeps agents from connecting, and how to fix it."),
    "import": CommandEntry(
        "imports", "import_files", "Import files: mail, calendars, chats, bank, notes, tables."
    ),
    "export": CommandEntry(
        "sources", "export", "Export the records and files of a connection to a directory."
    ),
    "search": CommandEntry("search", "search", "Search your own records."),
    "watch": CommandEntry("imports", "watch", "Import the files that arrive in a directory, until Ctrl-C."),
    "stop-all": CommandEntry("owner", "stop_all", "Revoke every grant of every agent, at once."),
    "try": CommandEntry(
        "connect", "try_tool", "Run a tool as a client, and print exactly what it would see."
    ),
    "serve": CommandEntry("serve", "serve", "Start the server, and serve until Ctrl-C or SIGTERM."),
    "demo": CommandEntry("serve", "serve_demo", "Start a server with an invented person's records."),
    "mcp": CommandEntry("serve", "mcp", "Serve one agent over stdio, with its saved token."),
    "config": CommandEntry("serve", "config_app", "Show the settings."),
    "grants": CommandEntry("grants", "app", "Create, list and revoke grants: what clients may see."),
    "owner": CommandEntry("owner", "app", "Create owner tokens, and reset the password."),
    "clients": CommandEntry("owner", "clients_app", "Register OAuth clients by hand."),
    "rules": CommandEntry("rules", "app", "Hide records from every client."),
    "audit": CommandEntry("audit", "app", "Show and check the audit log: what was read and refused."),
    "ops": CommandEntry("ops", "app", "Use the tools of remote MCP servers.", extra="mcp"),
    "store": CommandEntry("store", "app", "Show, back up, check and erase the store."),
    "keys": CommandEntry("owner", "keys_app", "List and rotate keys."),
    "sources": CommandEntry("sources", "app", "Manage imported data, and accounts to fetch from."),
    "service": CommandEntry("service", "app", "Start Headgate when you log in (systemd)."),
}
# Every command takes it from here.
_CONTEXT: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class _Commands(Mapping[str, Any]):
    """The commands by name; a command's module is imported when the command is looked up."""

    def __init__(self, others: Mapping[str, Any]) -> None:
        self._loaded = dict(others)

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, COMMANDS[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*COMMANDS, *self._loaded]))

    def __len__(self) -> int:
        return len(COMMANDS.keys() | self._loaded.keys())


def _load(name: str, entry: CommandEntry) -> Any:
    """Import a command; one that needs a package that is not installed names the extra."""
    with needs_extra(entry.extra):
        member = getattr(importlib.import_module(f"headgate.cli.{entry.module}"), entry.name)
    if isinstance(member, typer.Typer):
        command = typer.main.get_group(member)
        command.help = entry.help
    else:
        alone = typer.Typer(rich_markup_mode=None, add_completion=False)
        alone.command(name)(member)
        command = typer.main.get_command(alone)
    command.name = name
    command.context_settings = _CONTEXT
    return command


class _LazyGroup(TyperGroup):
    """The group of all commands: its help is written, and a command is run, without importing the others."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands: Any = _Commands(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands from their table."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


app = typer.Typer(
    name="headgate",
    cls=_LazyGroup,
    help="Let AI agents read the parts of your data that you allow, and log every read.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings=_CONTEXT,
)


def _version(is_wanted: bool) -> None:  # noqa: FBT001 - typer calls it so
    if is_wanted:
        typer.echo(f"headgate {__version__}")
        raise typer.Exit


@app.command("version", hidden=True)
def version_() -> None:
    """Print the version."""
    typer.echo(f"headgate {__version__}")


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    *,
    home: Annotated[
        Path | None,
        typer.Option(help="The directory that holds your records, grants and log.", metavar="DIR"),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Let AI agents read the parts of your data that you allow, and log every read."""
    del version
    context.obj = State(flags={"home": None if home is None else str(home)}, environment=dict(os.environ))
    if context.invoked_subcommand is None:
        with needs_extra("serve"):
            from headgate.cli.serve import serve_home  # noqa: PLC0415 - only where no command is named

        serve_home(context)


def _sentence(error: typer.TyperException) -> str:
    """Return the message of a usage error, with the option or argument at fault."""
    tell: Callable[[], str] = getattr(error, "format_message", error.__str__)
    text = tell().replace(_NO_NUMBER, "it must be a whole number")
    return text if text.endswith("?") else f"{text.rstrip('.')}."


def _given_home(words: Sequence[str]) -> str | None:
    """Find the option that names the home; it stands before the command."""
    for number, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name == "--home":
            return value if equals else next(iter(words[number + 1 :]), None)
        if not word.startswith("-"):
            break
    return None


def run() -> None:
    """Run the command and end the process with its exit code."""
    command = typer.main.get_command(app)
    try:
        outcome = command.main(prog_name="headgate", standalone_mode=False)
    except typer.TyperException as error:
        context: typer.Context | None = getattr(error, "ctx", None)
        where = context.command_path if context else "headgate"
        fail(_sentence(error), f"See '{where} --help'.", EXIT_USAGE)
    except HeadgateError as error:
        fail(error.message, error.hint, error.exit_code, _given_home(sys.argv[1:]))
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(EXIT_INTERRUPTED)
    except OSError as error:
        # A file or directory that a command needs; no command expects more than it checks itself.
        name = "" if error.filename is None else f"{error.filename}: "
        fail(
            f"{name}{error.strerror or error}.", "Check that it exists and that you may use it.", EXIT_FAILED
        )
    sys.exit(outcome if isinstance(outcome, int) else 0)
