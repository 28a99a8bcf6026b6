"""Run a coroutine of a command on the open store and ledger of its home."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from headgate.settings import Settings
from headgate.wiring import Services, open_stores

_T = TypeVar("_T")


def with_stores(settings: Settings, work: Callable[[Services], Awaitable[_T]]) -> _T:
    """Open the store and ledger, run the work on them, and close them."""

    async def run() -> _T:
        async with open_stores(settings) as stores:
            return await work(stores)

    return asyncio.run(run())


def with_stores_if_any(settings: Settings, work: Callable[[Services], Awaitable[_T]]) -> _T:
    """Run work that changes nothing: a home that is not there is read as an empty one, and is not created."""
    if settings.home.exists():
        return with_stores(settings, work)
    with tempfile.TemporaryDirectory(prefix="headgate-") as directory:
        return with_stores(replace(settings, home=Path(directory) / "home"), work)
