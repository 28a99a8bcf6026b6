"""Results that a thread gives to a coroutine that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any


def settle(result: asyncio.Future[Any], give: Callable[[], None]) -> None:
    """Give a result from any thread, in the event loop that waits for it; not to one that was cancelled."""

    def give_unless_done() -> None:
        if not result.done():
            give()

    # The loop may be gone when the program ends while a thread is still at work, and its callers with it.
    with suppress(RuntimeError):
        result.get_loop().call_soon_threadsafe(give_unless_done)
