"""The one writer: a thread that owns the writing connection and takes jobs in turn.

Jobs that wait together are committed together: each is whole by itself, all are made durable by one flush of
the disk, and nobody is told that a job is done before that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import apsw

from headgate.errors import StorageUnusable
from headgate.store.sqlite.database import BUSY_MS, Database, translate_errors
from headgate.store.sqlite.maintenance.snapshot import Snapshot

WAL_BYTES = 32 * 1024 * 1024
WAL_BYTES_MOST = 48 * 1024 * 1024
_LOG_WAIT_MS = 1000
_JOBS_TOGETHER = 32
_WAITING_MOST = 256
#: How long nobody must have asked for anything before idle tasks run, and how long they may keep the
#: program from ending.
IDLE_SECONDS = 1.0
CLOSING_SECONDS = 1.0
#: Between two steps of an idle task, so that readers have the interpreter to themselves half of the time.
_BREATH_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class _Job:
    work: Callable[[Database], Any]
    #: False for work that cannot share a transaction, such as a backup.
    in_transaction: bool
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[Any]


#: What a job gave, or why it failed.
_Outcome = tuple[Any, BaseException | None]


class IdleTask(Protocol):
    """What is done in small steps when nobody asks for anything."""

    def plan(self, database: Database) -> bool:
        """Say whether there is anything to do."""
        ...

    def step(self, database: Database) -> bool:
        """Do a little of it; says whether more is left."""
        ...


class Writer:
    """Takes jobs from any event loop and does them on its own thread."""

    is_able = True

    def __init__(self, database: Database, *, idle_tasks: Sequence[IdleTask] = ()) -> None:
        self._database = database
        self._waiting: deque[_Job] = deque()
        self._news = threading.Condition()
        self._is_closing = False
        self._idle_tasks: Sequence[IdleTask] = (Snapshot(), *idle_tasks)
        #: How long to wait for a job before idle tasks run; None: there is nothing to do.
        self._patience: float | None = IDLE_SECONDS
        self._thread = threading.Thread(target=self._work, name="headgate-writer", daemon=True)
        self._thread.start()

    async def run(self, work: Callable[[Database], Any], *, in_transaction: bool = True) -> Any:
        """Do one job and give its outcome once it is durable.

        Raises:
            StorageUnusable: or one of its kinds; then nothing of the job was kept.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        with self._news:
            if self._is_closing:
                raise StorageUnusable("The store is closed.")
            if len(self._waiting) >= _WAITING_MOST:
                raise StorageUnusable("Too many writes are waiting.", hint="Try again in a moment.")
            self._waiting.append(_Job(work, in_transaction, loop, done))
            self._news.notify()
        # A caller that goes away leaves its job to be done: it shares a transaction with others.
        return await asyncio.shield(done)

    async def run_alone(self, work: Callable[[Database], Any]) -> Any:
        """Do one job in a transaction that it shares with no other.

        For work that writes index rows before it is done: among them would be those of jobs beside it, and
        they would be undone with it.

        Raises:
            StorageUnusable: or one of its kinds; then nothing of the job was kept.
        """

        def whole(database: Database) -> Any:
            with database.writing():
                return work(database)

        return await self.run(whole, in_transaction=False)

    @property
    def is_settled(self) -> bool:
        """Whether all that idle time is used for has been done."""
        return self._patience is None

    async def close(self) -> None:
        """Finish the jobs that wait, then empty the log into the file."""
        with self._news:
            self._is_closing = True
            self._news.notify()
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (jobs := self._next_jobs()) or not self._is_closing:
            if jobs:
                self._do(jobs)
            else:
                self._patience = _BREATH_SECONDS if self._do_idle_step() else None
            self._shorten_log()
        end = time.monotonic() + CLOSING_SECONDS
        while self._do_idle_step() and time.monotonic() < end:
            pass
        self._outcome(lambda: _close(self._database))

    def _do(self, jobs: list[_Job]) -> None:
        if jobs[0].in_transaction:
            self._together(jobs)
        else:
            _settle(jobs[0], self._outcome(lambda: jobs[0].work(self._database)))
        self._patience = IDLE_SECONDS

    def _do_idle_step(self) -> bool:
        """Use idle time for one step; a job that comes in waits for no more than that. False: all is done."""

        def one_step() -> bool:
            due = next((task for task in self._idle_tasks if task.plan(self._database)), None)
            if due is not None:
                due.step(self._database)
            return due is not None

        did, _ = self._outcome(one_step)
        return bool(did)

    def _next_jobs(self) -> list[_Job]:
        """Wait for a job, and take along those that can share its transaction. None: idle, or time to end."""
        with self._news:
            self._news.wait_for(lambda: self._waiting or self._is_closing, self._patience)
            jobs = [self._waiting.popleft()] if self._waiting else []
            while jobs and self._can_share(jobs):
                jobs.append(self._waiting.popleft())
            return jobs

    def _can_share(self, jobs: list[_Job]) -> bool:
        if not self._waiting or len(jobs) == _JOBS_TOGETHER:
            return False
        return jobs[0].in_transaction and self._waiting[0].in_transaction

    def _together(self, jobs: list[_Job]) -> None:
        outcomes, failure = self._attempt(jobs)
        if failure is not None and len(jobs) > 1:
            # What one of them met has undone the work of all; alone, the others may do.
            for job in jobs:
                self._together([job])
            return
        for index, job in enumerate(jobs):
            _settle(job, outcomes[index] if failure is None else (None, failure))

    def _attempt(self, jobs: list[_Job]) -> tuple[list[_Outcome], BaseException | None]:
        """Do jobs in one transaction; says what undid it, if something did."""
        outcomes: list[_Outcome] = []

        def all_of_them() -> None:
            with self._database.writing():
                for job in jobs:
                    outcomes.append(self._outcome(lambda job=job: self._alone(job)))
                    self._refuse_lost_transaction(outcomes[-1])

        _, failure = self._outcome(all_of_them)
        return outcomes, failure

    def _refuse_lost_transaction(self, outcome: _Outcome) -> None:
        """Stop when a failure has ended the whole transaction: the next job would run outside of any."""
        if not self._database.db.in_transaction:
            raise outcome[1] or StorageUnusable("The transaction was lost.")

    def _alone(self, job: _Job) -> Any:
        """Do one job of several: if it fails it leaves nothing behind, and the others go on."""
        database = self._database
        waiting = len(database.texts.rows)
        database.run("SAVEPOINT job")
        try:
            value = job.work(database)
            database.run("RELEASE job")
        except BaseException:
            database.texts.forget_after(waiting)
            # A full disk ends the whole transaction, and this savepoint with it.
            if database.db.in_transaction:
                database.run("ROLLBACK TO job")
                database.run("RELEASE job")
            raise
        return value

    def _outcome(self, work: Callable[[], Any]) -> _Outcome:
        try:
            with translate_errors(self._database):
                return work(), None
        except BaseException as failure:  # noqa: BLE001 - it is handed to whoever asked
            return None, failure

    def _shorten_log(self) -> None:
        log = Path(f"{self._database.path}-wal")
        size = log.stat().st_size if log.exists() else 0
        if size >= WAL_BYTES:
            self._outcome(lambda: self._database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE))
        if size >= WAL_BYTES_MOST:
            self._outcome(lambda: _start_log_anew(self._database))


def _start_log_anew(database: Database) -> None:
    """Wait a moment for readers to let go of the log; they come back to it at once, but at its beginning."""
    database.run(f"PRAGMA busy_timeout={_LOG_WAIT_MS}")
    try:
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
    finally:
        database.run(f"PRAGMA busy_timeout={BUSY_MS}")


def _close(database: Database) -> None:
    # Whoever waits here for readers keeps the writers of other processes waiting as well.
    database.run(f"PRAGMA busy_timeout={_LOG_WAIT_MS}")
    try:
        database.db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        database.db.close()


def _settle(job: _Job, outcome: _Outcome) -> None:
    value, failure = outcome

    def tell() -> None:
        if job.done.cancelled():
            return
        if failure is None:
            job.done.set_result(value)
        else:
            job.done.set_exception(failure)

    # The loop may be gone when the program ends while a job is still being done.
    if not job.loop.is_closed():
        job.loop.call_soon_threadsafe(tell)
