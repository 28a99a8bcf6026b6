"""The ``headgate`` command: global options, command groups, and exit codes.

Exit codes are contract and documented in docs/reference/cli.md.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate import __version__
from headgate.cli import (
    audit,
    clients,
    config,
    connect,
    doctor,
    export,
    grants,
    imports,
    keys,
    mcp,
    ops,
    owner,
    rules,
    serve,
    service,
    sources,
    store,
    trying,
    watch,
)
from headgate.cli.terminal import State, fail
from headgate.errors import HeadgateError

#: How the parser of options words it.
_NO_NUMBER = "Input should be a valid integer, unable to parse string as an integer"
EXIT_FAILED = 1
EXIT_USAGE = 64
EXIT_INTERRUPTED = 130

app = typer.Typer(
    name="headgate",
    help="Let AI agents read the parts of your data that you allow, and log every read.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # Every command takes it from here.
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(config.app, name="config")
app.add_typer(grants.app, name="grants")
app.add_typer(owner.app, name="owner")
app.add_typer(clients.app, name="clients")
app.add_typer(rules.app, name="rules")
app.add_typer(audit.app, name="audit")
app.add_typer(ops.app, name="ops")
app.add_typer(store.app, name="store")
app.add_typer(keys.app, name="keys")
app.add_typer(sources.app, name="sources")
app.add_typer(service.app, name="service")
app.command("connect")(connect.connect)
app.command("doctor")(doctor.doctor)
app.command("import")(imports.import_files)
app.command("export")(export.export)
app.command("watch")(watch.watch)
app.command("stop-all")(owner.stop_all)
app.command("try")(trying.try_tool)
app.command("serve")(serve.serve)
app.command("demo")(serve.serve_demo)
app.command("mcp")(mcp.mcp)


def _version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    if asked:
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
        serve.serve_home(context)


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
