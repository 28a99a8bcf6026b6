"""Supervise background loops: each goes on after any failure, logs it once, backs off, and shows it until it works again.

A loop that ends in silence looks like one that has nothing to do. So every loop of the program, in a task or in a
thread, reports here; the owner's pages and ``/readyz`` show what is failing.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.telemetry import get_logger

FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 5.0, 300.0

#: Does a part of a loop's work, and returns how many seconds later to go on.
Step = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Trouble:
    """What a loop last failed with. The words are for the owner; the code alone is for everybody."""

    loop: str
    #: Which of several loops of that name, for the owner alone; empty: there is one.
    subject: str
    code: str
    message: str
    #: How often the loop has failed in a row.
    count: int


class Supervisor:
    """Knows which loops of this process fail now. Threads and tasks may use it at once."""

    __slots__ = ("_lock", "_sleep", "_troubles")

    def __init__(self, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._sleep = sleep
        self._lock = threading.Lock()
        self._troubles: dict[tuple[str, str], Trouble] = {}

    def troubles(self) -> tuple[Trouble, ...]:
        """Return what fails now, in the order of the loops' names."""
        with self._lock:
            return tuple(self._troubles[name] for name in sorted(self._troubles))

    def worked(self, loop: str, subject: str = "") -> None:
        """Note that a step of a loop succeeded."""
        with self._lock:
            self._troubles.pop((loop, subject), None)

    def failed(
        self, loop: str, error: Exception, *, subject: str = "", most_seconds: float = LAST_PAUSE_SECONDS
    ) -> float:
        """Note a failure, log it with its traceback unless it is the one of before, and return how long to wait."""
        code, message = _described(error)
        with self._lock:
            before = self._troubles.get((loop, subject))
            count = 1 if before is None else before.count + 1
            self._troubles[loop, subject] = Trouble(loop, subject, code, message, count)
        if before is None or before.code != code:
            get_logger().warning("loop_failed", loop=loop, subject=subject, code=code, exc_info=error)
        return min(FIRST_PAUSE_SECONDS * 2 ** min(count - 1, 16), most_seconds)

    async def keep(
        self, loop: str, step: Step, *, subject: str = "", most_seconds: float = LAST_PAUSE_SECONDS
    ) -> None:
        """Repeat a step until cancelled; after failures it waits longer each time, up to a bound."""
        while True:
            try:
                pause = await step()
            except Exception as error:  # noqa: BLE001 - a loop that ends in silence is worse than any failure
                pause = self.failed(loop, error, subject=subject, most_seconds=most_seconds)
            else:
                self.worked(loop, subject)
            await self._sleep(pause)

    def start(
        self, loop: str, step: Step, *, subject: str = "", most_seconds: float = LAST_PAUSE_SECONDS
    ) -> asyncio.Task[None]:
        return asyncio.create_task(
            self.keep(loop, step, subject=subject, most_seconds=most_seconds), name=f"headgate: {loop}"
        )


async def stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a loop, if there is one, and wait for its end."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _described(error: Exception) -> tuple[str, str]:
    if isinstance(error, HeadgateError):
        return error.code, error.message
    # The words of an exception that is not ours may quote a record or a token.
    return "unexpected", f"{type(error).__name__}; the log has where it came from."
