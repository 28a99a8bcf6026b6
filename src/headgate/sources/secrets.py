"""Secrets of live sources: settings hold a reference, and the secret is looked up when it is needed."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headgate.errors import ConfigInvalid
from headgate.home import read_private
from headgate.operations.secrets import Secret

FORMS = "env:NAME, file:PATH or keyring:SERVICE/USER"


def check_reference(reference: str) -> None:
    """Check that a setting names where a secret is, and is not the secret itself.

    Raises:
        ConfigInvalid: it has another form.
    """
    kind, _, where = reference.partition(":")
    if kind not in _PLACES or not where:
        raise ConfigInvalid(
            f"A secret is named as {FORMS}.", hint="Store the secret there, not in the setting."
        )


def find_secret(reference: str) -> Secret:
    """Look up a secret by its reference.

    Raises:
        ConfigInvalid: the reference has another form, or nothing is there.
    """
    check_reference(reference)
    kind, _, where = reference.partition(":")
    found = _PLACES[kind](where)
    if not found:
        raise ConfigInvalid(f"{reference} holds no secret.", hint="Store it there, then try again.")
    return Secret(found)


def _in_file(where: str) -> str | None:
    content = read_private(Path(where).expanduser())
    return None if content is None else content.decode("utf-8", "replace").strip()


def _in_keyring(where: str) -> str | None:
    try:
        keyring: Any = importlib.import_module("keyring")
    except ModuleNotFoundError:
        raise ConfigInvalid(
            "The keyring package is not installed.", hint="Install it with: pip install keyring"
        ) from None
    service, _, user = where.rpartition("/")
    return keyring.get_password(service or where, user)


def _in_environment(where: str) -> str | None:
    return os.environ.get(where)


_PLACES: Mapping[str, Callable[[str], str | None]] = {
    "env": _in_environment,
    "file": _in_file,
    "keyring": _in_keyring,
}
