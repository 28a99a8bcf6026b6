"""Run a call: the checks in order, then the handler in a separate task, then the envelope.

This module has the side effects; the decisions are pure functions in ``steps`` and ``failures``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import aclosing, contextmanager
from functools import partial
from typing import Any, cast

from headgate.errors import CallError, UpstreamTimeout
from headgate.operations import steps
from headgate.operations.context import OperationContext
from headgate.operations.env import ComposingEnv
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.failures import internal_failure, shown_failure
from headgate.operations.prepared import Prepared
from headgate.operations.registration import Handler, StreamHandler
from headgate.operations.request import Request
from headgate.operations.running import RunningCall, RunningCalls, outcome, timed_out
from headgate.operations.worker import off_loop

_log = logging.getLogger("headgate.operations")


class _ComposedContext(OperationContext, frozen=True, kw_only=True):
    """The context of a call that another operation makes."""

    @property
    def internal(self) -> bool:
        return True


class Dispatcher:
    """Runs requests against the operations that a lookup function finds."""

    __slots__ = ("_find", "_now_ms", "running")

    def __init__(self, find: Callable[[str], Prepared | None], now_ms: Callable[[], int]) -> None:
        self._find = find
        self._now_ms = now_ms
        self.running = RunningCalls()

    async def execute(self, request: Request) -> ResponseEnvelope:
        """Run one request to its envelope."""
        try:
            prepared, value = await self._admit(request, streaming=False)
            call = self._open(request)
            context = self._context(prepared, request, call)
            result = await self.running.run(call, partial(_serve, prepared, value, context))
            envelope = steps.wrap(prepared, result, request_id=request.request_id, now_ms=self._now_ms())
        except CallError as error:
            _log_end(request, error.code)
            raise
        _log_end(request, "OK" if envelope.error is None else envelope.error.code)
        return envelope

    async def subscribe(
        self, request: Request, idle_timeout_seconds: float | None
    ) -> AsyncGenerator[ResponseEnvelope]:
        """Run one subscription; each result comes in a separate envelope."""
        prepared, value = await self._admit(request, streaming=True)
        call = self._open(request)
        results: asyncio.Queue[Any] = asyncio.Queue(maxsize=1)
        context = self._context(prepared, request, call)
        work = partial(_pump, prepared, value, context, results=results)
        self.running.start(call, work)
        try:
            async for result in _drain(call, results, idle_timeout_seconds):
                yield steps.wrap(prepared, result, request_id=request.request_id, now_ms=self._now_ms())
        finally:
            await self.running.leave(call)

    async def _admit(self, request: Request, *, streaming: bool) -> tuple[Prepared, Any]:
        found = self._find(request.operation_id)
        prepared = steps.check_visible(found, request.operation_id, internal=request.is_internal)
        steps.check_type(prepared, streaming=streaming)
        steps.check_access(prepared, request.identity, request.value)
        if prepared.input is None or prepared.input.is_light or not prepared.registration.provenance.is_leaf:
            return prepared, steps.check_input(prepared, request.value)
        # A foreign schema may take long to compile and to check.
        return prepared, await _checked_beside(prepared, request)

    def _open(self, request: Request) -> RunningCall:
        return self.running.open(
            RunningCall(request.request_id, request.parent, request.abort_policy, request.deadline)
        )

    def _context(self, prepared: Prepared, request: Request, call: RunningCall) -> OperationContext:
        registration = prepared.registration
        env = None
        if not registration.provenance.is_leaf:
            env = ComposingEnv(registration, call, caller=request.caller, dispatch=self.execute)
        kind = _ComposedContext if request.is_internal else OperationContext
        return kind(
            request.request_id,
            request.parent.request_id if request.parent else None,
            identity=request.identity,
            caller=request.caller,
            forwarded_for=request.forwarded_for,
            # Those of the operation that runs, never its parent's.
            capabilities=registration.capabilities,
            metadata=dict(request.metadata) if request.metadata else {},
            env=env,
            abort_policy=request.abort_policy,
            deadline=request.deadline,
        )


async def _checked_beside(prepared: Prepared, request: Request) -> Any:
    deadline = math.inf if request.deadline is None else request.deadline
    try:
        return await off_loop(deadline, steps.check_input, prepared, request.value)
    except UpstreamTimeout:
        raise timed_out() from None


async def _serve(prepared: Prepared, value: Any, context: OperationContext) -> Any:
    handler = cast("Handler", prepared.registration.handler)
    with _shown_failures(prepared, context):
        return await handler(value, context)


async def _pump(
    prepared: Prepared, value: Any, context: OperationContext, *, results: asyncio.Queue[Any]
) -> None:
    """Run a subscription's handler, never further ahead than one result."""
    handler = cast("StreamHandler", prepared.registration.handler)
    with _shown_failures(prepared, context):
        async with aclosing(cast("AsyncGenerator[Any]", handler(value, context))) as stream:
            async for result in stream:
                await results.put(result)


async def _drain(
    call: RunningCall, results: asyncio.Queue[Any], idle_timeout_seconds: float | None
) -> AsyncIterator[Any]:
    """Yield results until the producing task has ended and its last result was yielded."""
    assert call.task is not None
    while True:
        while not results.empty():
            yield results.get_nowait()
        if call.task.done():
            outcome(call)
            return
        getter = asyncio.ensure_future(results.get())
        try:
            await asyncio.wait(
                {getter, call.task}, timeout=idle_timeout_seconds, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            has_result = getter.done() or not getter.cancel()
        if has_result:
            yield getter.result()
        elif not call.task.done():
            raise timed_out()


@contextmanager
def _shown_failures(prepared: Prepared, context: OperationContext) -> Generator[None]:
    """Turn what a handler raises into a failure that its caller may see."""
    try:
        yield
    except CallError as error:
        shown = shown_failure(prepared, error)
        if shown is error:
            raise
        raise shown from error
    except Exception as error:
        failed = type(error).__qualname__
        _log.error("%s (request %s) failed: %s", prepared.spec.id, context.request_id, failed)
        raise internal_failure() from error


def _log_end(request: Request, code: str) -> None:
    if _log.isEnabledFor(logging.DEBUG):
        parent = request.parent.request_id if request.parent else "-"
        _log.debug(
            "call %s parent %s of %s: %s", request.request_id, parent, ascii(request.operation_id), code
        )
