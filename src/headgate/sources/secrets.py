"""Secrets by reference: settings name where a secret is, and it is looked up when it is needed.

A reference is ``env:NAME``, ``file:PATH`` or ``keyring:SERVICE/USER``. The environment is found only where the program
hands it over: nothing here reads it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.errors import ConfigInvalid
from headgate.home import read_private
from headgate.operations.secrets import Secret

FORMS = "env:NAME, file:PATH or keyring:SERVICE/USER"
_KINDS = frozenset({"env", "file", "keyring"})


def check_reference(reference: str) -> None:
    """Check that a setting names where a secret is, and is not the secret itself."""
    kind, _, where = reference.partition(":")
    if kind not in _KINDS or not where:
        raise ConfigInvalid(
            f"A secret is named as {FORMS}.", hint="Store the secret there, not in the setting."
        )


def _from_keyring(service: str, user: str) -> str | None:
    try:
        keyring: Any = importlib.import_module("keyring")
    except ModuleNotFoundError:
        raise ConfigInvalid(
            "The keyring package is not installed.", hint="Install it with: pip install keyring"
        ) from None
    return keyring.get_password(service, user)


@dataclass(frozen=True, slots=True)
class Secrets:
    #: The variables that references may name; none unless the program hands them over.
    environment: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    read_file: Callable[[Path], bytes | None] = read_private
    read_keyring: Callable[[str, str], str | None] = _from_keyring

    def find(self, reference: str) -> Secret:
        check_reference(reference)
        kind, _, where = reference.partition(":")
        if kind == "env":
            value = self.environment.get(where)
        elif kind == "file":
            content = self.read_file(Path(where).expanduser())
            value = None if content is None else content.decode("utf-8", "replace").strip()
        else:
            service, _, user = where.rpartition("/")
            value = self.read_keyring(service or where, user)
        if not value:
            raise ConfigInvalid(f"{reference} holds no secret.", hint="Store it there, then try again.")
        return Secret(value)
