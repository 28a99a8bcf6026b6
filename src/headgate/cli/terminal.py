"""What every command shares: global options, settings, and how results, counts, dates and failures are written."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from headgate.errors import ConfigInvalid, NotFound
from headgate.home import with_home
from headgate.model.instants import DAY_US, instant, iso
from headgate.settings import CONFIG_VARIABLE, Resolved, Settings, config_path, read_config, resolve

_AGO = re.compile(r"([1-9]\d{0,4})([hdw])")
_UNITS = {"h": DAY_US // 24, "d": DAY_US, "w": 7 * DAY_US}
_DAYS_AGO = {"today": 0, "yesterday": 1}
_KIB = 1024

#: The option of every command that can print JSON.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def group() -> typer.Typer:
    """Make a group of commands; its help stands in the table of commands."""
    app = typer.Typer(rich_markup_mode=None)
    # With a callback it is a group even if it has one command.
    app.callback()(lambda: None)
    return app


@contextmanager
def needs_extra(name: str) -> Generator[None]:
    """Guard an import that works only with an extra installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "headgate":
            raise
        raise ConfigInvalid(
            f"This command needs the '{name}' extra ({error.name} is not installed).",
            hint=f"Install it with: pip install 'headgate[{name}]'",
        ) from error


# Options and settings


@dataclass(frozen=True, slots=True)
class State:
    """The global options and the environment, as they were when the command started."""

    flags: Mapping[str, str | None]
    environment: Mapping[str, str]


def state_of(context: typer.Context) -> State:
    state = context.find_object(State)
    assert state is not None
    return state


def resolved_settings(context: typer.Context, **flags: str | None) -> Resolved:
    """Resolve the settings, with the flags of the command, and where each came from."""
    state = state_of(context)
    path = config_path(state.environment)
    file = read_config(path, required=CONFIG_VARIABLE in state.environment)
    return resolve({**state.flags, **flags}, state.environment, file, path)


def settings_of(context: typer.Context, **flags: str | None) -> Settings:
    """Return the settings of a command that runs and ends: it logs only warnings, unless a level was chosen."""
    resolved = resolved_settings(context, **flags)
    if resolved.origins["log_level"].kind == "default":
        return replace(resolved.settings, log_level="warning")
    return resolved.settings


def require_home(settings: Settings) -> Path:
    """Return the directory of the home, for commands that make no sense without one."""
    if not settings.home.exists():
        raise ConfigInvalid(
            f"There is no home at {settings.home} yet.",
            hint="Make one with 'headgate import PATH' or 'headgate', or name another with --home DIR.",
        )
    return settings.home


def connection_named(labels: Mapping[str, str], text: str) -> str:
    """Find the id of a connection by its id, or by its label whatever its case.

    Raises:
        NotFound: there is none, or more than one.
    """
    if text in labels:
        return text
    ids = [connection_id for connection_id, label in labels.items() if label.casefold() == text.casefold()]
    if len(ids) == 1:
        return ids[0]
    problem = f"{len(ids)} connections are called" if ids else "There is no connection"
    names = ", ".join(sorted(f"{printable(label, 60)} ({key})" for key, label in labels.items()))
    hint = f"Connections are {names}." if names else "See 'headgate sources list'."
    raise NotFound(f"{problem} '{text[:80]}'.", hint=hint)


def typed_instant(text: str, now: int) -> int | None:
    """Read a time; None if it is none. A day begins at midnight UTC, ``30d`` is thirty times 24 hours ago."""
    word = text.strip().lower()
    if word in _DAYS_AGO:
        return now // DAY_US * DAY_US - _DAYS_AGO[word] * DAY_US
    if ago := _AGO.fullmatch(word):
        return now - int(ago[1]) * _UNITS[ago[2]]
    return instant(text)


# Results


def echo(context: typer.Context, text: str, *, err: bool = False) -> None:
    """Print a text; commands in it are for the home that this one was given."""
    typer.echo(with_home(text, state_of(context).flags.get("home")), err=err)


def fail(message: str, hint: str, exit_code: int, home: str | None = None) -> NoReturn:
    """Print the message and the hint on one line of standard error, and exit."""
    text = with_home(" ".join(f"{message} {hint}".split()), home)
    typer.echo(f"headgate: {text}", err=True)
    sys.exit(exit_code)


def put(
    document: Any,
    lines: Iterable[str],
    *,
    as_json: bool,
    indent: int | None = 2,
    context: typer.Context | None = None,
) -> None:
    """Print a result: the document as JSON, or the lines for people; with a context, as ``echo`` does."""
    if as_json:
        typer.echo(json_text(document, indent=indent))
        return
    for line in lines:
        if context is None:
            typer.echo(line)
        else:
            echo(context, line)


def json_text(document: Any, *, indent: int | None = None) -> str:
    """Write a document as JSON; what is not Unicode, as names of files may be, is escaped."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=str)
    return text.encode("utf-8", "backslashreplace").decode()


def table(rows: Sequence[Sequence[str]], amounts: Sequence[int] = ()) -> list[str]:
    """Align the columns of rows; those that hold amounts to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.rjust(width) if column in amounts else text.ljust(width)
            for column, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def many(count: int, name: str, names: str = "") -> str:
    """Write a count with its noun: 1 record, 2 records."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {names or name + 's'}"


def size_text(count: float) -> str:
    """Write a number of bytes for people."""
    for unit in ("B", "KiB", "MiB"):
        if count < _KIB:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= _KIB
    return f"{count:.1f} GiB"


def day_text(moment: int | None) -> str:
    return "-" if moment is None else iso(moment)[:10]


def printable(value: object, most: int = 60) -> str:
    """Write a value on one line, without characters that a terminal would obey."""
    text = "" if value is None else str(value)
    visible = "".join(character if character.isprintable() else " " for character in text[: most + 1])
    return visible if len(text) <= most else f"{visible[: most - 1]}…"


# Progress


@contextmanager
def progress_note(text: str) -> Generator[None]:
    """Show a line on standard error while slow work runs, if it is a terminal; erase it at the end."""
    with status_line() as show:
        show(text)
        yield


@contextmanager
def progress_line(verb: str) -> Generator[Callable[[int, int], None]]:
    """Show the share of long work that is done, as a status line."""
    with status_line() as show:
        yield lambda done, total: show(f"{verb} {done * 100 // max(total, 1)} %")


@contextmanager
def status_line() -> Generator[Callable[[str], None]]:
    """Offer one line of standard error, if it is a terminal, that is written again and again; erase it at the end."""
    is_shown, last = sys.stderr.isatty(), ""

    def show(text: str) -> None:
        nonlocal last
        if is_shown and text != last:
            sys.stderr.write(f"\r{text.ljust(len(last))}")
            sys.stderr.flush()
            last = text

    try:
        yield show
    finally:
        if last:
            sys.stderr.write(f"\r{' ' * len(last)}\r")
            sys.stderr.flush()
