"""Run a coroutine of a command on the open store and ledger of its home."""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from headgate.cli.extras import needs_extra
from headgate.errors import ConfigInvalid
from headgate.settings import Settings

if TYPE_CHECKING:
    from headgate.wiring import HomeStores

_T = TypeVar("_T")


def with_stores(settings: Settings, work: Callable[[HomeStores], Awaitable[_T]]) -> _T:
    """Open the store and ledger, run the work on them, and close them."""
    # Slow to import, and the store's libraries are an extra.
    import asyncio  # noqa: PLC0415

    with needs_extra("serve"):
        from headgate.wiring import open_stores  # noqa: PLC0415

    async def run() -> _T:
        async with open_stores(settings) as stores:
            return await work(stores)

    return asyncio.run(run())


def with_stores_if_any(settings: Settings, work: Callable[[HomeStores], Awaitable[_T]]) -> _T:
    """Run work that changes nothing: a home that is not there is read as an empty one, and is not created."""
    if settings.home.exists():
        return with_stores(settings, work)
    with tempfile.TemporaryDirectory(prefix="headgate-") as directory:
        return with_stores(replace(settings, home=Path(directory) / "home"), work)


def require_home(settings: Settings) -> Path:
    """Return the directory of the home, for commands that make no sense without one.

    Raises:
        ConfigInvalid: it does not exist.
    """
    if not settings.home.exists():
        raise ConfigInvalid(
            f"There is no home at {settings.home} yet.",
            hint="Make one with 'headgate import PATH' or 'headgate', or name another with --home DIR.",
        )
    return settings.home
