"""The passphrase of a backup: asked for on a terminal, or read from a private file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from headgate.errors import ConfigInvalid
from headgate.home import read_private
from headgate.model.maintenance import LEAST_PASSPHRASE_CHARS

PassphraseFile = Annotated[
    Path | None,
    typer.Option(help="Read the passphrase from the first line of this private file.", metavar="FILE"),
]


def new_passphrase(file: Path | None) -> str:
    """Read a passphrase that will be needed again, and refuse one that is easy to guess."""
    found = _from_file(file) if file else _asked("Passphrase", confirm=True)
    if len(found) < LEAST_PASSPHRASE_CHARS:
        raise ConfigInvalid(
            f"A passphrase has at least {LEAST_PASSPHRASE_CHARS} characters.", hint="Choose several words."
        )
    return found


def known_passphrase(file: Path | None) -> str:
    """Read the passphrase of a backup."""
    return _from_file(file) if file else _asked("Passphrase of the backup", confirm=False)


def _from_file(file: Path) -> str:
    content = read_private(file.absolute())
    if content is None:
        raise ConfigInvalid(f"{file} does not exist.", hint="Name the file that holds the passphrase.")
    try:
        return content.decode().partition("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        raise ConfigInvalid(
            f"{file} holds no text.", hint="Name the file that holds the passphrase."
        ) from None


def _asked(question: str, *, confirm: bool) -> str:
    if not sys.stdin.isatty():
        raise ConfigInvalid(
            "There is no terminal to ask for the passphrase.", hint="Pass --passphrase-file FILE."
        )
    return typer.prompt(question, hide_input=True, confirmation_prompt=confirm, err=True)
