"""Run a coroutine of a command on the open store and ledger of its home."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import typer

from headgate.cli.terminal import connection_named, settings_of
from headgate.model.ids import ConnectionId
from headgate.model.record import Connection
from headgate.settings import Settings
from headgate.wiring import Services, open_stores

_T = TypeVar("_T")


def use_stores(where: typer.Context | Settings, work: Callable[[Services], Awaitable[_T]]) -> _T:
    """Open the store and ledger, run the work on them, and close them."""
    settings = where if isinstance(where, Settings) else settings_of(where)

    async def run() -> _T:
        async with open_stores(settings) as stores:
            return await work(stores)

    return asyncio.run(run())


def read_stores(context: typer.Context, work: Callable[[Services], Awaitable[_T]]) -> _T:
    """Run work that changes nothing: a home that is not there is read as an empty one, and is not created."""
    settings = settings_of(context)
    if settings.home.exists():
        return use_stores(settings, work)
    with tempfile.TemporaryDirectory(prefix="headgate-") as directory:
        return use_stores(replace(settings, home=Path(directory) / "home"), work)


async def find_connection(stores: Services, text: str) -> Connection:
    """Find a connection by its id or its name."""
    connections = {connection.id: connection for connection in await stores.store.connections()}
    labels = {
        str(key): connection.display_name or connection.connector_key
        for key, connection in connections.items()
    }
    return connections[ConnectionId(connection_named(labels, text))]
