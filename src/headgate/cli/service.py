"""``headgate service``: start Headgate with the owner's session, by a systemd user unit.

Headgate starts no other program, so the unit is written and linked here, and systemd is asked by the owner.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import platformdirs
import typer

from headgate.cli.terminal import AsJson, group, put, settings_of
from headgate.errors import ConfigInvalid
from headgate.wiring import served_address

_UNIT = "headgate.service"
_TEXT = """\
[Unit]
Description=Headgate, which lets AI agents read what its owner granted
After=network.target

[Service]
ExecStart={command}
Restart=on-failure
RestartSec=2
UMask=0077
NoNewPrivileges=true

[Install]
WantedBy=default.target
"""

app = group()


@app.command()
def install(context: typer.Context) -> None:
    """Write a systemd user unit that serves this home, and enable it."""
    _refuse_other_systems()
    unit, link = _places()
    home = settings_of(context).home.expanduser().absolute()
    command = _command_line(*_program(), "--home", str(home), "serve")
    unit.parent.mkdir(parents=True, exist_ok=True)
    unit.write_text(_TEXT.format(command=command), encoding="utf-8")
    link.parent.mkdir(parents=True, exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(Path("..") / _UNIT)
    typer.echo(
        f"Wrote {unit}; Headgate starts when you log in.\n"
        "  start it now          systemctl --user daemon-reload && systemctl --user start headgate\n"
        "  without a log-in too  loginctl enable-linger"
    )


@app.command()
def status(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Show whether the unit is installed, and the server address."""
    unit, link = _places()
    document = {
        "unit": str(unit),
        "installed": unit.is_file(),
        "enabled": link.is_symlink(),
        "address": served_address(settings_of(context).home),
    }
    state = "installed" if document["installed"] else "not installed; run 'headgate service install'"
    if document["installed"] and not document["enabled"]:
        state = "installed, but disabled; run 'systemctl --user enable headgate'"
    lines = [f"unit     {unit}: {state}", f"serving  {document['address'] or 'no'}"]
    put(document, lines, as_json=as_json, indent=None, context=context)


@app.command()
def remove() -> None:
    """Remove the unit.

    A running server keeps running until you stop it.
    """
    unit, link = _places()
    link.unlink(missing_ok=True)
    if not unit.exists():
        typer.echo("No unit is installed.")
        return
    unit.unlink()
    typer.echo(f"Removed {unit}.\n  stop it now  systemctl --user stop headgate")


def _places() -> tuple[Path, Path]:
    """Return where the unit is, and the link that enables it."""
    units = platformdirs.user_config_path("systemd") / "user"
    return units / _UNIT, units / "default.target.wants" / _UNIT


def _program() -> tuple[str, ...]:
    """Return the command by which this program was started, wherever systemd looks from."""
    started = Path(sys.argv[0]).absolute()
    return (str(started),) if started.stem == "headgate" else (sys.executable, "-m", "headgate")


def _command_line(*words: str) -> str:
    """Quote words for systemd, which has its own rules: `%` and `$` have a meaning even in quotes."""
    return " ".join(f'"{word}"' if _needs_quotes(word) else word for word in map(_escaped, words))


def _escaped(word: str) -> str:
    if not word.isprintable():
        raise ConfigInvalid(f"A unit cannot name {word!r}.", hint="Choose another home with --home DIR.")
    for mark, written in (("\\", "\\\\"), ('"', '\\"'), ("%", "%%"), ("$", "$$")):
        word = word.replace(mark, written)
    return word


def _needs_quotes(word: str) -> bool:
    return any(mark in word for mark in " '\"\\;")


def _refuse_other_systems() -> None:
    if not Path("/run/systemd/system").is_dir() and shutil.which("systemctl") is None:
        raise ConfigInvalid(
            "This machine has no systemd.", hint="Start 'headgate serve' with what your system has for that."
        )
