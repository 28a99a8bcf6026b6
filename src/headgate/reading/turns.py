"""Turns for long reads: a few run at a time, and clients take turns, so that none waits behind all reads of another."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from contextlib import suppress
from types import TracebackType

from headgate.errors import RateLimited
from headgate.model.grant import Access

AT_ONCE = 2
MOST_WAITING = 32


class FairTurns:
    """Hands out turns; where several clients wait, each gets one before any gets a second."""

    __slots__ = ("_running", "_waiting")

    def __init__(self) -> None:
        self._running = 0
        #: By client, in the order in which they are served.
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    def of(self, access: Access) -> Turn:
        """Return the turn of a request, to be held while it reads."""
        return Turn(self, access.client_id or access.subject_id)

    async def take(self, client: str) -> None:
        """Wait for a turn."""
        if self._running < AT_ONCE:
            self._running += 1
            return
        queue = self._waiting.setdefault(client, deque())
        if len(queue) >= MOST_WAITING:
            raise RateLimited(
                f"{MOST_WAITING} searches or computations of this client are waiting already.",
                hint="Wait for their answers before you send more.",
                data={"retry_after_seconds": 1},
            )
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # It was given in the moment in which it was given up.
                self.give_back()
            else:
                self._leave(client, turn)
            raise

    def _leave(self, client: str, turn: asyncio.Future[None]) -> None:
        """Take a read that its caller left out of the queue: it does not count among those that wait."""
        queue = self._waiting.get(client, deque())
        with suppress(ValueError):
            queue.remove(turn)
        if not queue:
            self._waiting.pop(client, None)

    def give_back(self) -> None:
        """End a turn, and give it to the client that has waited longest for its next one."""
        while self._waiting:
            client, queue = next(iter(self._waiting.items()))
            turn = queue.popleft()
            self._waiting.move_to_end(client)
            if not queue:
                del self._waiting[client]
            if not turn.done():
                turn.set_result(None)
                return
        self._running -= 1


class Turn:
    """The block in which a request has its turn."""

    __slots__ = ("_client", "_turns")

    def __init__(self, turns: FairTurns, client: str) -> None:
        self._turns = turns
        self._client = client

    async def __aenter__(self) -> None:
        await self._turns.take(self._client)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._turns.give_back()
