"""What machines let each other know through the database: uses of limits, and the latest time."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import psycopg

from headgate.store.postgres.database import HomePlace, PostgresDatabase, translated
from headgate.store.postgres.dialect import SQL

_T = TypeVar("_T")
_EXCHANGES_BETWEEN_REMOVALS = 60


class PostgresSharing:
    """Implements `headgate.store.sharing.MachineSharing`, in a thread with one connection."""

    def __init__(self, place: HomePlace) -> None:
        self._database = PostgresDatabase(place)
        self._latest_time = place.latest_time
        self._exchanges = itertools.count()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="headgate-sharing")

    @property
    def latest_time(self) -> int:
        """The latest time that a machine has seen, as far as this one knows."""
        return self._latest_time.value

    async def raise_latest_time(self, at: int) -> None:
        """Let every machine know a time, from its next admission on."""
        await self._do(lambda: self._database.run(SQL["raise_latest_time"], (at,)))
        self._latest_time.note(at)

    async def exchange_uses(
        self, uses: Mapping[bytes, int], watched: Collection[bytes]
    ) -> Mapping[bytes, int]:
        """Add uses of limits to those of other machines; gives for each watched name how often all have used it."""
        return await self._do(lambda: self._exchange(uses, watched))

    def _exchange(self, uses: Mapping[bytes, int], watched: Collection[bytes]) -> dict[bytes, int]:
        if uses:
            self._database.many(SQL["add_limit_uses"], [*uses.items()])
        if next(self._exchanges) % _EXCHANGES_BETWEEN_REMOVALS == 0:
            self._database.run(SQL["delete_old_limit_uses"])
            self._database.run(SQL["delete_full_buckets"])
        return dict(self._database.all(SQL["limit_uses"], (list(watched),))) if watched else {}

    async def take(self, name: bytes, *, rate: float, burst: float) -> bool:
        """Take one from a bucket that all machines share; False when it holds none."""
        return bool(await self._do(lambda: self._database.all(SQL["take_from_bucket"], (name, burst, rate))))

    async def _do(self, work: Callable[[], _T]) -> _T:
        """Run statements in the thread; again if the connection was lost since the last ones."""

        def do() -> _T:
            with translated():
                try:
                    return work()
                except psycopg.OperationalError:
                    if not self._database.is_lost:
                        raise
                return work()

        return await asyncio.get_running_loop().run_in_executor(self._thread, do)

    async def close(self) -> None:
        """Close the connection."""
        await asyncio.to_thread(self._thread.shutdown)
        self._database.finish()
