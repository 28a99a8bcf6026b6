"""How much one remote server may cost: bytes, seconds, calls, pages; and the turns of the calls to it.

A server that fails again and again is left alone for a while, so that its callers fail at once instead of waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import anyio

from headgate.errors import (
    AdapterError,
    UpstreamBusy,
    UpstreamRefused,
    UpstreamSuspended,
    UpstreamTimeout,
    UpstreamUnreachable,
)

#: Of the ``_meta`` of one tool or one result.
MAX_META_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds for one server."""

    #: Bytes of one response, of its whole event stream, or of all tools that are listed.
    max_bytes: int = 8 * 1024 * 1024
    #: JSON values in one response, or in all tools that are listed; an object counts as four, a list as two.
    max_values: int = 100_000
    #: Content blocks in one result.
    max_blocks: int = 10_000
    #: Events in the stream of one response.
    max_events: int = 1000
    connect_seconds: float = 5.0
    #: Silence, before the first byte or between two. Common servers send a comment line every 15 s.
    idle_seconds: float = 20.0
    #: From the call to the last byte; a caller can only allow less.
    total_seconds: float = 60.0
    #: Discovery: pages of the tool list, and tools on all of them.
    max_pages: int = 100
    max_tools: int = 1000
    #: Patterns in the schemas of all tools that are listed; further ones are not checked here.
    max_patterns: int = 256
    #: Questions of a tool in one call, and rounds of questions, when the import answers questions.
    max_questions: int = 10
    #: Characters of the state that a tool sends with a question and expects back.
    max_state_chars: int = 64 * 1024
    #: Calls running at once, and calls waiting for their turn.
    concurrency: int = 8
    queue: int = 64
    #: Failures in a row after which calls are suspended, and for how long.
    failures: int = 5
    suspend_seconds: float = 30.0


_SERVER_FAULT = 500
#: A timeout counts as a failure of the server only when the caller allowed at least this much.
_FAIR_SECONDS = 1.0


class Breaker:
    """Suspends calls after some failures in a row; after a pause it lets one call through as a trial."""

    def __init__(
        self, failures: int, suspend_seconds: float, clock: Callable[[], float] | None = None
    ) -> None:
        self._limit = failures
        self._suspend_seconds = suspend_seconds
        self._clock = clock or asyncio.get_running_loop().time
        self._failures = 0
        self._suspended_until: float | None = None
        self._is_on_trial = False

    @contextmanager
    def watch(self, deadline: float) -> Generator[None]:
        """Let a call through, and learn from how it ends whether the server works."""
        started = self._clock()
        self._check(started)
        try:
            yield
        except AdapterError as error:
            self._count(error, has_fair_time=deadline - started >= _FAIR_SECONDS)
            raise
        except BaseException:
            # A cancelled call proves nothing.
            self._is_on_trial = False
            raise
        self._reset()

    def _check(self, now: float) -> None:
        if self._suspended_until is None:
            return
        if self._is_on_trial or now < self._suspended_until:
            wait = max(0.0, self._suspended_until - now)
            raise UpstreamSuspended(details={"retry_after": round(wait, 3)})
        self._is_on_trial = True

    def _count(self, error: AdapterError, *, has_fair_time: bool) -> None:
        details: Mapping[str, Any] = error.details or {}
        has_server_fault = isinstance(error, UpstreamRefused) and details.get("status", 0) >= _SERVER_FAULT
        if isinstance(error, UpstreamTimeout) and not has_fair_time:
            self._is_on_trial = False
        elif has_server_fault or isinstance(error, UpstreamUnreachable | UpstreamTimeout):
            self._is_on_trial = False
            self._failures += 1
            if self._failures >= self._limit:
                self._suspended_until = self._clock() + self._suspend_seconds
        else:
            # The server answered, if only with an error.
            self._reset()

    def _reset(self) -> None:
        self._failures = 0
        self._suspended_until = None
        self._is_on_trial = False


class CallQueue:
    """Lets a few calls to one server run at a time."""

    def __init__(self, limits: Limits) -> None:
        self._slots = asyncio.Semaphore(limits.concurrency)
        self._capacity = limits.concurrency + limits.queue
        self._admitted = 0
        self._breaker = Breaker(limits.failures, limits.suspend_seconds)

    @asynccontextmanager
    async def turn(self, deadline: float) -> AsyncGenerator[None]:
        """Wait for a free slot, hold it, and judge the server by how the call ends."""
        if self._admitted >= self._capacity:
            raise UpstreamBusy
        self._admitted += 1
        try:
            async with held(self._slots, deadline, late="The call waited too long for its turn."):
                # Only now, so that calls which waited behind failing ones are refused instead of failing too.
                with self._breaker.watch(deadline):
                    yield
        finally:
            self._admitted -= 1


@asynccontextmanager
async def held(lock: asyncio.Semaphore | asyncio.Lock, deadline: float, *, late: str) -> AsyncGenerator[None]:
    """Hold a lock, if it is free by a time on the loop's clock.

    Raises:
        UpstreamTimeout: it was not free in time.
    """
    with anyio.CancelScope(deadline=deadline) as scope:
        await lock.acquire()
    if scope.cancelled_caught:
        raise UpstreamTimeout(late)
    try:
        yield
    finally:
        lock.release()
