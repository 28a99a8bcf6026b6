"""Running calls: one task for each, in a tree, so that aborting a call aborts its children; and work beside the loop.

A task is cancelled at most once, so that the end of a parent does not interrupt the clean-up of a child.

Work on what a server sent runs in threads. They share one interpreter, so this keeps the loop free only because no
single step of the work is long: the limits bound every parse, compilation and check. The threads are few and used for
nothing else, so that a server that makes work delays at most the answers of other servers. Work of many steps pauses
between them: see ``let_loop_run``.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeAlias, TypeVar

from headgate.errors import CallError, UpstreamTimeout

Work: TypeAlias = Callable[[], Awaitable[Any]]
_CANCELLED = "CANCELLED"


def _no_children() -> dict[str, RunningCall]:
    return {}


@dataclass(slots=True, eq=False)
class RunningCall:
    """One running call, and its outcome once it is settled."""

    request_id: str
    parent: RunningCall | None = None
    deadline: float | None = None
    children: dict[str, RunningCall] = field(default_factory=_no_children)
    task: asyncio.Task[None] | None = None
    #: Done when the task is, however it ended.
    settled: asyncio.Future[None] | None = None
    result: Any = None
    error: BaseException | None = None
    #: Why it was aborted: an error code, or the cancellation of its caller.
    ended_by: str | None = None
    is_closed: bool = False


class RunningCalls:
    """The calls of one registry that have started and not ended."""

    def __init__(self) -> None:
        self._calls: dict[str, RunningCall] = {}

    @property
    def request_ids(self) -> tuple[str, ...]:
        """The ids of the running calls, oldest first."""
        return tuple(self._calls)

    def open(self, call: RunningCall) -> RunningCall:
        """Enter a call."""
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

    async def run(self, call: RunningCall, work: Work) -> Any:
        """Run the work in a new task and return its result.

        Raises:
            CallError: the work failed, was aborted or ran out of time.
        """
        loop = asyncio.get_running_loop()
        settled = call.settled = loop.create_future()
        call.task = loop.create_task(self._work(call, work))
        late = None
        if call.deadline is not None:
            late = loop.call_at(call.deadline, self.end_tree, call, "TIMEOUT")
        try:
            await settled
        except asyncio.CancelledError:
            self.end_tree(call, _CANCELLED)
            if not call.task.done():
                await asyncio.wait({call.task})
            raise
        finally:
            if late is not None:
                late.cancel()
        return _outcome(call)

    def abort(self, request_id: str) -> tuple[str, ...]:
        """Abort a call and its children; return the aborted ids in order."""
        call = self._calls.get(request_id)
        return () if call is None else self.end_tree(call, "ABORTED")

    def end_tree(self, call: RunningCall, reason: str) -> tuple[str, ...]:
        """Abort a call, its deepest dependents first."""
        live = [node for node in _dependents_first(call) if not (node.ended_by or node.is_closed)]
        for node in live:
            node.ended_by = reason if node is call else "ABORTED"
            if node.task is not None:
                node.task.cancel()
                # A task that is cancelled before its first step never reaches the end of _work.
                node.task.add_done_callback(lambda _, node=node: self._close(node))
        return tuple(node.request_id for node in live)

    async def _work(self, call: RunningCall, work: Work) -> None:
        try:
            call.result = await work()
        except asyncio.CancelledError as error:
            call.error = error
            raise
        except BaseException as error:  # noqa: BLE001 - raised where the call is awaited
            call.error = error
        finally:
            self._close(call)

    def _close(self, call: RunningCall) -> None:
        if call.is_closed:
            return
        call.is_closed = True
        del self._calls[call.request_id]
        if call.parent is not None:
            call.parent.children.pop(call.request_id, None)
        for child in tuple(call.children.values()):
            self.end_tree(child, "ABORTED")
        if call.settled is not None and not call.settled.done():
            call.settled.set_result(None)


def _outcome(call: RunningCall) -> Any:
    """Return the result of a settled call."""
    if call.ended_by is None and call.error is None:
        return call.result
    if call.ended_by == "TIMEOUT":
        raise timed_out()
    if call.ended_by is not None or call.error is None or isinstance(call.error, asyncio.CancelledError):
        raise CallError("ABORTED", "The call was aborted.")
    if call.deadline is not None and call.deadline <= asyncio.get_running_loop().time():
        # Other failures at the deadline follow from it, so the timeout is reported.
        raise timed_out() from call.error
    raise call.error


def timed_out() -> CallError:
    """Build the error of a call that took too long."""
    return CallError("TIMEOUT", "The call took longer than it was given.")


def _dependents_first(call: RunningCall) -> Iterator[RunningCall]:
    for child in call.children.values():
        yield from _dependents_first(child)
    yield call


_P = ParamSpec("_P")
_T = TypeVar("_T")
_THREADS = ThreadPoolExecutor(max_workers=2, thread_name_prefix="headgate-upstream")
_PAUSE_SECONDS = 0.0001


async def off_loop(deadline: float, work: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Run a function in a thread, and wait for it until a time on the loop's clock.

    Raises:
        UpstreamTimeout: it was not done in time; what it returns later is dropped.
    """
    running = asyncio.get_running_loop().run_in_executor(_THREADS, lambda: work(*args, **kwargs))
    try:
        async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
            return await running
    except TimeoutError:
        raise UpstreamTimeout("The answer could not be read in time.") from None


def let_loop_run() -> None:
    """Pause in a thread, between two steps of long work, for long enough that the loop can go on.

    Compiling a schema gives the interpreter up for a moment and takes it back before the loop has woken. Each such
    moment starts the loop's wait anew, so without pauses the loop waits until the work is done.
    """
    time.sleep(_PAUSE_SECONDS)
