"""What an import gives before it has happened: it runs when it is awaited, entered, or entered without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from headgate.errors import AdapterConfigInvalid


class _Closable(Protocol):
    async def aclose(self) -> None: ...


_T = TypeVar("_T", bound=_Closable)
_R = TypeVar("_R")


class Opening(Awaitable[_T], Generic[_T]):
    """Opens something when it is awaited, or for the length of an ``async with`` block."""

    def __init__(self, start: Callable[[], Coroutine[Any, Any, _T]]) -> None:
        self._start = start
        self._opened: _T | None = None

    def __await__(self) -> Generator[Any, None, _T]:
        return self._start().__await__()

    async def __aenter__(self) -> _T:
        self._opened = await self._start()
        return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            await self._opened.aclose()


class LoopRunner:
    """Runs coroutines for code without an event loop, in a loop that is open as long as the block."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self
        raise AdapterConfigInvalid("An event loop is running here: use from_mcp instead of from_mcp_sync.")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run a coroutine to its end."""
        return self._runner.run(work)
