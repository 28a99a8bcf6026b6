"""What every command shares: global options, the --json option, failure lines and progress lines."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from headgate.errors import ConfigInvalid
from headgate.home import with_home
from headgate.model.instants import DAY_US, instant
from headgate.settings import CONFIG_VARIABLE, Resolved, Settings, config_path, read_config, resolve


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


_AGO = re.compile(r"([1-9]\d{0,4})([hdw])")
_UNITS = {"h": DAY_US // 24, "d": DAY_US, "w": 7 * DAY_US}
_DAYS_AGO = {"today": 0, "yesterday": 1}


def typed_instant(text: str, now: int) -> int | None:
    """Read a time; None if it is none. A day begins at midnight UTC, ``30d`` is thirty times 24 hours ago."""
    word = text.strip().lower()
    if word in _DAYS_AGO:
        return now // DAY_US * DAY_US - _DAYS_AGO[word] * DAY_US
    if ago := _AGO.fullmatch(word):
        return now - int(ago[1]) * _UNITS[ago[2]]
    return instant(text)


#: The option of every command that can print JSON.
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@dataclass(frozen=True, slots=True)
class State:
    """The global options and the environment, as they were when the command started."""

    flags: Mapping[str, str | None]
    environment: Mapping[str, str]


def settings_of(context: typer.Context, **flags: str | None) -> Resolved:
    """Resolve the settings for a command, its own flags included."""
    state = context.find_object(State)
    assert state is not None
    path = config_path(state.environment)
    file = read_config(path, required=CONFIG_VARIABLE in state.environment)
    return resolve({**state.flags, **flags}, state.environment, file, path)


def home_option(context: typer.Context) -> str | None:
    """Return the home that the command was given."""
    state = context.find_object(State)
    return None if state is None else state.flags.get("home")


def echo(context: typer.Context, text: str, *, err: bool = False) -> None:
    """Print a text; commands in it are for the home that this one was given."""
    typer.echo(with_home(text, home_option(context)), err=err)


def fail(message: str, hint: str, exit_code: int, home: str | None = None) -> NoReturn:
    """Print the message and the hint on one line of standard error, and exit."""
    text = with_home(" ".join(f"{message} {hint}".split()), home)
    typer.echo(f"headgate: {text}", err=True)
    sys.exit(exit_code)


def json_text(
    document: Any, *, indent: int | None = None, default: Callable[[object], str] | None = None
) -> str:
    """Write a document as JSON; what is not Unicode, as names of files may be, is escaped."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, default=default)
    return text.encode("utf-8", "backslashreplace").decode()


def many(count: int, name: str, names: str = "") -> str:
    """Write a count with its noun: 1 record, 2 records."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {names or name + 's'}"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align the columns of rows, the first of which names them."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


@contextmanager
def progress_note(text: str) -> Generator[None]:
    """Show a line on standard error while slow work runs, if it is a terminal; erase it at the end."""
    is_shown = sys.stderr.isatty()
    if is_shown:
        sys.stderr.write(text)
        sys.stderr.flush()
    try:
        yield
    finally:
        if is_shown:
            sys.stderr.write(f"\r{' ' * len(text)}\r")
            sys.stderr.flush()


@contextmanager
def progress_line(verb: str) -> Generator[Callable[[int, int], None]]:
    """Show the progress of long work on one line of standard error, if it is a terminal; erase it at the end."""
    is_shown = sys.stderr.isatty()
    last = ""

    def show(done: int, total: int) -> None:
        nonlocal last
        text = f"{verb} {done * 100 // max(total, 1)} %"
        if is_shown and text != last:
            last = text
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()

    try:
        yield show
    finally:
        if last:
            sys.stderr.write(f"\r{' ' * len(last)}\r")


def require_home(settings: Settings) -> Path:
    """Return the directory of the home, for commands that make no sense without one."""
    if not settings.home.exists():
        raise ConfigInvalid(
            f"There is no home at {settings.home} yet.",
            hint="Make one with 'headgate import PATH' or 'headgate', or name another with --home DIR.",
        )
    return settings.home
