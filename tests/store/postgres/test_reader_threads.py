"""The threads that read: how many there are, and what becomes of reads that fail, end early or are left."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from headgate.errors import StorageUnusable
from headgate.store.engines.postgres_readers import WAITING_MOST, PostgresReader, ReaderThreads
from headgate.store.postgres.migrate import open_place
from tests import postgres

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(postgres.programs() is None, reason="PostgreSQL is not installed"),
]
_PROCESS = "SELECT pg_backend_pid() WHERE :home > 0"


@asynccontextmanager
async def _threads(place: Path, count: int) -> AsyncGenerator[ReaderThreads]:
    made = ReaderThreads(open_place(postgres.database_url(), str(place)), "reads", count)
    try:
        yield made
    finally:
        await asyncio.to_thread(made.close)


def _process(reader: PostgresReader) -> int:
    return reader.database.value(_PROCESS)


class _Held:
    """Reads that are kept in their threads until they are let go."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self.let_go = threading.Event()
        self.ended = 0

    def read(self, reader: PostgresReader) -> int:
        self._loop.call_soon_threadsafe(self.has_begun.set)
        assert self.let_go.wait(60)
        self.ended += 1
        return _process(reader)


async def test_reads_one_after_the_other_use_one_connection_and_reads_at_once_one_each(
    tmp_path: Path,
) -> None:
    async with _threads(tmp_path, 3) as threads:
        assert len({await threads.read(_process) for _ in range(10)}) == 1
        together = threading.Barrier(3, timeout=60)

        def read(reader: PostgresReader) -> int:
            together.wait()
            return _process(reader)

        assert len(set(await asyncio.gather(*(threads.read(read) for _ in range(3))))) == 3
        # However many there are, no more connections are made.
        assert len(set(await asyncio.gather(*(threads.read(_process) for _ in range(50))))) <= 3


async def test_a_read_that_its_caller_left_ends_in_its_thread_and_the_next_is_done(tmp_path: Path) -> None:
    unexpected: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unexpected.append(context))
    async with _threads(tmp_path, 1) as threads:
        held = _Held()
        left = asyncio.create_task(threads.read(held.read))
        await held.has_begun.wait()
        left.cancel()
        with pytest.raises(asyncio.CancelledError):
            await left
        following = asyncio.create_task(threads.read(_process))
        held.let_go.set()
        assert await following > 0
        assert held.ended == 1
    assert unexpected == []


async def test_reads_that_their_callers_left_before_their_turn_are_never_done(tmp_path: Path) -> None:
    async with _threads(tmp_path, 1) as threads:
        held = _Held()
        begun = asyncio.create_task(threads.read(held.read))
        await held.has_begun.wait()
        for _ in range(2):
            waiting = [asyncio.create_task(threads.read(held.read)) for _ in range(WAITING_MOST - 1)]
            await asyncio.sleep(0)
            # As many wait as may, so that one more is refused, until their callers leave.
            with pytest.raises(StorageUnusable):
                await threads.read(_process)
            for one in waiting:
                one.cancel()
            await asyncio.wait(waiting)
        following = asyncio.create_task(threads.read(_process))
        held.let_go.set()
        assert await begun == await following
        assert held.ended == 1


async def test_the_failure_of_a_read_is_its_callers_alone(tmp_path: Path) -> None:
    class Failure(BaseException):
        """Not one of the program's errors."""

    def fail(reader: PostgresReader) -> int:
        raise Failure

    async with _threads(tmp_path, 1) as threads:
        first = await threads.read(_process)
        with pytest.raises(Failure):
            await threads.read(fail)
        assert await threads.read(_process) == first


async def test_closing_waits_for_what_was_asked_for(tmp_path: Path) -> None:
    async with _threads(tmp_path, 1) as threads:
        held = _Held()
        asked = [asyncio.create_task(threads.read(held.read)) for _ in range(3)]
        await held.has_begun.wait()
        closing = asyncio.create_task(asyncio.to_thread(threads.close))
        held.let_go.set()
        assert len(await asyncio.gather(*asked)) == 3
        await closing


async def test_a_thread_outlives_the_loop_of_its_caller(tmp_path: Path) -> None:
    async with _threads(tmp_path, 1) as threads:
        begun, let_go = threading.Event(), threading.Event()

        def read(reader: PostgresReader) -> int:
            begun.set()
            assert let_go.wait(60)
            return _process(reader)

        async def ask_and_leave() -> None:
            asked = asyncio.create_task(threads.read(read))
            await asyncio.to_thread(begun.wait, 60)
            asked.cancel()

        await asyncio.to_thread(lambda: asyncio.run(ask_and_leave()))
        let_go.set()
        assert await asyncio.wait_for(threads.read(_process), 60) > 0
