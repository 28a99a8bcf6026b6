"""A writer: a thread that owns a writing connection and does jobs in turn. A file of SQLite has one in each process.

Jobs that wait together are committed together: each is whole by itself, one flush of the disk makes all of them
durable, and no job is reported as done before that. Small jobs, such as revocations, go before others that wait.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from headgate import memory
from headgate.errors import StorageFull, StorageReadOnly, StorageUnusable
from headgate.store.changes.stored_rows import ExactFilling
from headgate.store.changes.word_index import WordMerging
from headgate.store.sql.database import Database
from headgate.tasks import Supervisor

_JOBS_TOGETHER = 32
_WAITING_MOST = 256
#: How long no job must have come before idle tasks run, and how long they may delay the end of the program.
IDLE_SECONDS = 1.0
CLOSING_SECONDS = 1.0
#: Between two steps of an idle task, so that readers have the interpreter to themselves half of the time.
_PAUSE_SECONDS = 0.02
#: When to look again for what is due by the clock.
_AGAIN_SECONDS = 3600.0
#: How long a store counts as full after a job failed for want of room, if none is stored meanwhile.
FULL_SECONDS = 60.0
#: By which name failures of idle tasks are shown.
LOOP = "store maintenance"

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Done(Generic[_T]):
    value: _T


@dataclass(frozen=True, slots=True)
class _Failed:
    error: BaseException


def _attempt(database: WriterDatabase, work: Callable[[], _T]) -> _Done[_T] | _Failed:
    """Do something and return what came of it: the thread must not end because a job fails."""
    try:
        with database.translating():
            return _Done(work())
    except BaseException as error:  # noqa: BLE001 - it is raised again where the job was given in
        return _Failed(error)


@dataclass(frozen=True, slots=True)
class _Job(Generic[_T]):
    work: Callable[[WriterDatabase], _T]
    #: False for work that cannot share a transaction, such as a backup.
    in_transaction: bool
    done: asyncio.Future[_T]

    def settle(self, outcome: _Done[_T] | _Failed) -> None:
        """Deliver the outcome to the event loop that submitted the job."""
        if isinstance(outcome, _Failed):
            settle(self.done, partial(self.done.set_exception, outcome.error))
        else:
            settle(self.done, partial(self.done.set_result, outcome.value))


@dataclass(frozen=True, slots=True)
class _JobBatch:
    """Jobs that are committed by one transaction."""

    database: WriterDatabase
    jobs: Sequence[_Job[Any]]

    def run(self) -> None:
        """Do the jobs and report on each, once all of them are durable."""
        with memory.alone():
            whole = _attempt(self.database, self._commit)
        if isinstance(whole, _Done):
            for job, outcome in zip(self.jobs, whole.value, strict=True):
                job.settle(outcome)
        elif len(self.jobs) == 1 or self.database.is_lost:
            # With the connection the answer to the commit may be lost: jobs that were done must not be done again.
            for job in self.jobs:
                job.settle(whole)
        else:
            # A failure that undid the transaction has undone all jobs; in separate ones the others may succeed.
            for job in self.jobs:
                _JobBatch(self.database, [job]).run()

    def _commit(self) -> list[_Done[Any] | _Failed]:
        outcomes: list[_Done[Any] | _Failed] = []
        with self.database.writing():
            for job in self.jobs:
                outcome = _attempt(self.database, lambda job=job: self._in_savepoint(job))
                self._refuse_lost_transaction(outcome)
                outcomes.append(outcome)
        return outcomes

    def _in_savepoint(self, job: _Job[_T]) -> _T:
        """Do one job: if it fails it leaves nothing behind, and the others go on."""
        database = self.database
        waiting = len(database.texts.rows)
        database.run("SAVEPOINT job")
        try:
            value = job.work(database)
            database.run("RELEASE job")
        except BaseException:
            database.texts.forget_after(waiting)
            database.known_catalog = None
            # A full disk ends the whole transaction, and this savepoint with it.
            if database.in_transaction:
                database.run("ROLLBACK TO job")
                database.run("RELEASE job")
            raise
        return value

    def _refuse_lost_transaction(self, outcome: _Done[Any] | _Failed) -> None:
        """Stop when a failure has ended the whole transaction: the next job would run outside of any."""
        if not self.database.in_transaction:
            raise (
                outcome.error
                if isinstance(outcome, _Failed)
                else StorageUnusable("The transaction was lost.")
            )


class WriterDatabase(Database, Protocol):
    """A connection that the writer can own."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is under way; a failure may have ended it."""
        ...

    @property
    def is_lost(self) -> bool:
        """Whether a failure has ended the connection: what was not acknowledged may be done or not."""
        ...

    def translating(self) -> AbstractContextManager[None]:
        """Raise this program's errors in place of the driver's."""
        ...

    def tidy(self) -> None:
        """Do what is due after every few jobs."""

    def finish(self) -> None:
        """Close the connection after the last job."""


class IdleTask(Protocol):
    """What is done in small steps when there are no jobs."""

    #: What it is about, for the owner who reads that it fails.
    name: str

    def plan(self, database: Database) -> bool:
        """Return whether there is anything to do."""
        ...

    def step(self, database: Database) -> bool:
        """Do a little of it; returns whether more is left."""
        ...


class IdleTurn(Protocol):
    """Which of several processes does the idle tasks of a store."""

    #: When a process that has nothing to do, or no turn, looks again.
    again_seconds: float

    def is_held(self) -> bool:
        """Return whether it is the turn of this process."""
        ...

    def end(self) -> None:
        """Leave the tasks to another process."""


class Writer:
    """Takes jobs from any event loop and does them in its thread."""

    def __init__(
        self,
        database: WriterDatabase,
        *,
        idle_tasks: Sequence[IdleTask] = (),
        has_room: Callable[[], bool] | None = None,
        turn: IdleTurn | None = None,
        supervisor: Supervisor | None = None,
    ) -> None:
        self._database = database
        self._supervisor = supervisor or Supervisor()
        #: None: no other process runs idle tasks, or all may.
        self._turn = turn
        #: None: how much room there is cannot be measured from here.
        self._has_room = has_room
        self._waiting: deque[_Job[Any]] = deque()
        self._small: deque[_Job[Any]] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._idle_tasks: Sequence[IdleTask] = (WordMerging(), ExactFilling(), *idle_tasks)
        #: When tasks that failed are tried again.
        self._tried_again: dict[str, float] = {}
        #: How long to wait for a job before idle tasks run.
        self._idle_wait = IDLE_SECONDS
        self._is_settled = False
        #: When a job last failed because there was no room, if none was stored since.
        self._full_at = -math.inf
        self._thread = threading.Thread(target=self._work, name="headgate-writer", daemon=True)
        self._thread.start()

    @property
    def is_able(self) -> bool:
        """Whether anything can be stored; where room cannot be measured, whether none was refused for want of it lately."""
        if self._has_room is not None:
            return self._has_room()
        return time.monotonic() - self._full_at >= FULL_SECONDS

    def refuse_without_room(self) -> None:
        """Refuse what needs disk space, if only that is left which reading and revocation need."""
        if self._has_room is not None and not self._has_room():
            raise StorageFull

    async def run(
        self, work: Callable[[WriterDatabase], _T], *, in_transaction: bool = True, is_small: bool = False
    ) -> _T:
        """Do one job and return its result once it is durable.

        A job that is small is done also where the disk has no room for others.
        """
        if not is_small:
            self.refuse_without_room()
        done: asyncio.Future[_T] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self._is_closing:
                raise StorageUnusable("The store is closed.")
            queue = self._small if is_small else self._waiting
            if len(queue) >= _WAITING_MOST:
                raise StorageUnusable("Too many writes are waiting.", hint="Try again in a moment.")
            queue.append(_Job(work, in_transaction, done))
            self._changed.notify()
        # A caller that goes away leaves its job to be done: it shares a transaction with others.
        try:
            value = await asyncio.shield(done)
        except StorageFull:
            self._full_at = time.monotonic()
            raise
        if not is_small:
            self._full_at = -math.inf
        return value

    async def run_alone(self, work: Callable[[WriterDatabase], _T], *, is_small: bool = False) -> _T:
        """Do one job in a transaction that it shares with no other.

        For work that writes index rows before it is done: among them would be those of jobs beside it, and
        they would be undone with it.
        """

        def whole(database: WriterDatabase) -> _T:
            with database.writing():
                return work(database)

        return await self.run(whole, in_transaction=False, is_small=is_small)

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing left for idle tasks to do."""
        return self._is_settled

    async def close(self) -> None:
        """Finish the jobs that wait, then close the connection."""
        with self._changed:
            self._is_closing = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        while (jobs := self._next_jobs()) or not self._is_closing:
            if jobs:
                self._is_settled, self._idle_wait = False, IDLE_SECONDS
                self._do(jobs)
            else:
                has_more = self._do_idle_step()
                self._is_settled = not has_more and not self._tried_again
                self._idle_wait = _PAUSE_SECONDS if has_more else self._seconds_to_next_try()
            _attempt(self._database, self._database.tidy)
        end = time.monotonic() + CLOSING_SECONDS
        while self._do_idle_step() and time.monotonic() < end:
            pass
        if self._turn is not None:
            _attempt(self._database, self._turn.end)
        _attempt(self._database, self._database.finish)

    def _do(self, jobs: list[_Job[Any]]) -> None:
        if jobs[0].in_transaction:
            _JobBatch(self._database, jobs).run()
            return
        (job,) = jobs
        job.settle(_attempt(self._database, lambda: job.work(self._database)))

    def _do_idle_step(self) -> bool:
        """Do one step of an idle task, for which a new job waits. False: all are done, or failing, or it is another's turn.

        A task that fails waits, longer each time, and those after it have their turn.
        """
        if self._has_room is not None and not self._has_room():
            return False
        for task in self._idle_tasks:
            if self._tried_again.get(task.name, -math.inf) > time.monotonic():
                continue
            outcome = _attempt(self._database, partial(self._idle_step, task))
            if isinstance(outcome, _Done):
                self._tried_again.pop(task.name, None)
                self._supervisor.worked(LOOP, task.name)
                if outcome.value is not None:
                    return outcome.value
            elif isinstance(outcome.error, Exception):
                seconds = self._supervisor.failed(LOOP, outcome.error, subject=task.name)
                self._tried_again[task.name] = time.monotonic() + seconds
        return False

    def _idle_step(self, task: IdleTask) -> bool | None:
        """Do a step of a task; returns whether it is this process's turn, or None where there is nothing to do."""
        if not task.plan(self._database):
            return None
        if self._turn is not None and not self._turn.is_held():
            return False
        with memory.alone():
            task.step(self._database)
        return True

    def _seconds_to_next_try(self) -> float:
        """Return how long to wait for a job where no task has anything to do."""
        again = _AGAIN_SECONDS if self._turn is None else self._turn.again_seconds
        return min([again, *(max(0.0, at - time.monotonic()) for at in self._tried_again.values())])

    def _next_jobs(self) -> list[_Job[Any]]:
        """Wait for a job, and take along those that can share its transaction. Empty: idle, or time to end."""
        with self._changed:
            self._changed.wait_for(lambda: self._small or self._waiting or self._is_closing, self._idle_wait)
            queue = self._small or self._waiting
            jobs = [queue.popleft()] if queue else []
            while queue and len(jobs) < _JOBS_TOGETHER and jobs[0].in_transaction and queue[0].in_transaction:
                jobs.append(queue.popleft())
            return jobs


def settle(result: asyncio.Future[Any], give: Callable[[], None]) -> None:
    """Set a future's result from another thread, unless it was cancelled."""

    def give_unless_done() -> None:
        if not result.done():
            give()

    # The loop may be gone when the program ends while a thread is still at work, and its callers with it.
    with suppress(RuntimeError):
        result.get_loop().call_soon_threadsafe(give_unless_done)


class NoWriter:
    """Takes the place of the writer where a store can only be read, and refuses every job with the reason.

    Lost permissions and file systems that were mounted for reading alone look the same from here; a disk that was full
    when the file was opened is another reason.
    """

    is_able = False
    is_settled = True

    def __init__(self, reason: type[StorageReadOnly | StorageFull] = StorageReadOnly) -> None:
        self._reason = reason

    def refuse_without_room(self) -> NoReturn:
        raise self._reason

    async def run(self, work: Callable[[Database], Any], **_how: bool) -> NoReturn:
        del work
        raise self._reason

    run_alone = run

    async def close(self) -> None:
        """There is nothing to finish."""
