"""Copies of a store under test, into the other engine and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from headgate.home import Home, home_in, open_home
from headgate.store.engines import commands
from tests import postgres
from tests.store.engines import Driven


def quiet(_done: int, _total: int) -> None:
    """Show no progress."""


def home_of(engine: str, directory: Path) -> Home:
    """Give a home as maintenance knows it, with its records where the engine under test puts them."""
    home = open_home(directory)
    url = postgres.database_url() if engine == "postgres" else ""
    return home_in(home, url, str(directory))


def copied(store: Driven, engine: str, name: str, progress: Callable[[int, int], None] = quiet) -> Driven:
    """Close a store, copy it into a new home of an engine, and open that."""
    store.close()
    directory = store.directory.with_name(name)
    commands.copy_store(home_of(store.engine, store.directory), home_of(engine, directory), progress)
    return Driven(engine, directory)
