"""The queue in front of one server: how many calls run, how many wait, and when it is left alone.

One server's trouble stays its own: a lane belongs to one import and is shared by nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from headgate.errors import UpstreamBusy, UpstreamSuspended
from headgate.mcp.client.limits import Limits


class Breaker:
    """Counts failures in a row, and says when a server may be tried again."""

    def __init__(self, failures: int, suspend_seconds: float) -> None:
        self._limit = failures
        self._suspend_seconds = suspend_seconds
        self._failures = 0
        self._closed_until: float | None = None
        self._trying = False

    def check(self, now: float) -> None:
        """Let a call pass; after the pause, one alone as a trial.

        Raises:
            UpstreamSuspended: the server is left alone for now.
        """
        if self._closed_until is None:
            return
        if self._trying or now < self._closed_until:
            wait = max(0.0, self._closed_until - now)
            raise UpstreamSuspended(details={"retry_after": round(wait, 3)})
        self._trying = True

    def succeeded(self) -> None:
        """Forget the failures."""
        self._failures = 0
        self._closed_until = None
        self._trying = False

    def failed(self, now: float) -> None:
        """Count one failure more."""
        self._failures += 1
        self._trying = False
        if self._failures >= self._limit:
            self._closed_until = now + self._suspend_seconds

    def gave_up(self) -> None:
        """End a trial that proved nothing, because the caller went away."""
        self._trying = False


class CallQueue:
    """Calls to one server, a few at a time."""

    def __init__(self, limits: Limits) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._room = limits.concurrency + limits.queue
        self._inside = 0
        self.breaker = Breaker(limits.failures, limits.suspend_seconds)

    @asynccontextmanager
    async def enter(self) -> AsyncGenerator[None]:
        """Wait for a turn.

        Raises:
            UpstreamBusy: too many wait already.
            UpstreamSuspended: the server is left alone for now.
        """
        if self._inside >= self._room:
            raise UpstreamBusy
        self._inside += 1
        try:
            async with self._slots:
                # Asked when the turn comes: whoever waited behind the failures need not repeat them.
                self.breaker.check(asyncio.get_running_loop().time())
                yield
        finally:
            self._inside -= 1
