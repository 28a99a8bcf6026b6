"""Run a coroutine of a command on the open store and ledger of its home."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from headgate.cli.extras import needs_extra
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
