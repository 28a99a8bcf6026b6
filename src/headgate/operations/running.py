"""The calls that are under way: one task for each, in a tree, so that ending one can end all it has started.

Every task is cancelled at most once, so that a handler's clean-up is never cut short by its parent's end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from headgate.errors import CallError
from headgate.operations.context import AbortPolicy

_CANCELLED = "CANCELLED"


def _no_children() -> dict[str, RunningCall]:
    return {}


@dataclass(slots=True, eq=False)
class RunningCall:
    """One call under way."""

    request_id: str
    parent: RunningCall | None = None
    abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS
    deadline: float | None = None
    children: dict[str, RunningCall] = field(default_factory=_no_children)
    task: asyncio.Task[Any] | None = None
    #: Why it was ended early: a code, or that whoever waited for it was cancelled.
    ended_by: str | None = None
    is_closed: bool = False

    def end(self, reason: str) -> None:
        """Cancel the task, once."""
        if self.ended_by is None and not self.is_closed:
            self.ended_by = reason
            if self.task is not None:
                self.task.cancel()


class RunningCalls:
    """All calls of one registry that have begun and not ended."""

    def __init__(self) -> None:
        self._calls: dict[str, RunningCall] = {}

    @property
    def request_ids(self) -> tuple[str, ...]:
        """The calls under way, oldest first."""
        return tuple(self._calls)

    def open(self, call: RunningCall) -> RunningCall:
        """Enter a call.

        Raises:
            CallError: its id is taken, its parent has ended, or its time is over before it began.
        """
        if call.request_id in self._calls:
            raise CallError("INVALID_INPUT", "A call with this request id is under way.")
        parent = call.parent
        if parent is not None and (parent.is_closed or parent.ended_by):
            raise CallError("ABORTED", "The call that composes this one has ended.")
        if call.deadline is not None and call.deadline <= asyncio.get_running_loop().time():
            raise timed_out()
        self._calls[call.request_id] = call
        if parent is not None:
            parent.children[call.request_id] = call
        return call

    def start(self, call: RunningCall, work: Coroutine[Any, Any, Any]) -> asyncio.Future[None]:
        """Run the work in a task of its own; the future is done when the task is, however it ended."""
        loop = asyncio.get_running_loop()
        settled: asyncio.Future[None] = loop.create_future()
        task = call.task = loop.create_task(work)
        timer = None
        if call.deadline is not None:
            timer = loop.call_at(call.deadline, self.end_tree, call, "TIMEOUT")
        task.add_done_callback(partial(self._close, call, timer, settled))
        return settled

    async def run(self, call: RunningCall, work: Coroutine[Any, Any, Any]) -> Any:
        """Run the work to its end and give its result.

        Raises:
            CallError: the work failed, was aborted or ran out of time.
        """
        settled = self.start(call, work)
        try:
            await settled
        except asyncio.CancelledError:
            await self.leave(call)
            raise
        return outcome(call)

    async def leave(self, call: RunningCall) -> None:
        """End a call whose caller is going away, and see it out; or let it run on, if its parent says so."""
        if call.parent is not None and call.parent.abort_policy is AbortPolicy.CONTINUE_RUNNING:
            return
        self.end_tree(call, _CANCELLED)
        if call.task is not None and not call.task.done():
            await asyncio.wait({call.task})

    def abort(self, request_id: str) -> tuple[str, ...]:
        """End a call and what it has started; give the ids in the order in which they were ended."""
        call = self._calls.get(request_id)
        return () if call is None else self.end_tree(call, "ABORTED")

    def end_tree(self, call: RunningCall, reason: str) -> tuple[str, ...]:
        """End a call, the deepest of its dependents first."""
        ended = [one for one in _dependents_first(call) if one.ended_by is None]
        for one in ended:
            one.end(reason if one is call else "ABORTED")
        return tuple(one.request_id for one in ended)

    def _close(
        self,
        call: RunningCall,
        timer: asyncio.TimerHandle | None,
        settled: asyncio.Future[None],
        task: asyncio.Task[Any],
    ) -> None:
        if timer is not None:
            timer.cancel()
        call.is_closed = True
        del self._calls[call.request_id]
        if call.parent is not None:
            call.parent.children.pop(call.request_id, None)
        if call.abort_policy is AbortPolicy.ABORT_DEPENDENTS:
            for child in tuple(call.children.values()):
                self.end_tree(child, "ABORTED")
        if not task.cancelled():
            # Looked at here, because the one who waited may be gone.
            task.exception()
        if not settled.done():
            settled.set_result(None)


def outcome(call: RunningCall) -> Any:
    """Give what a settled call came to.

    Raises:
        CallError: it failed, was aborted or ran out of time.
    """
    task = call.task
    assert task is not None
    if call.ended_by == "TIMEOUT":
        raise timed_out()
    if call.ended_by is not None or task.cancelled():
        raise CallError("ABORTED", "The call was aborted.")
    error = task.exception()
    if error is None:
        return task.result()
    if call.deadline is not None and call.deadline <= task.get_loop().time():
        # Whatever failed first when the time ran out, this is why.
        raise timed_out() from error
    raise error


def timed_out() -> CallError:
    """Make the error of a call that took too long."""
    return CallError("TIMEOUT", "The call took longer than it was given.")


def _dependents_first(call: RunningCall) -> Iterator[RunningCall]:
    if call.abort_policy is AbortPolicy.ABORT_DEPENDENTS:
        for child in call.children.values():
            yield from _dependents_first(child)
    yield call
