"""Run a call: the checks in order, then the handler in a separate task, then the envelope.

This module has the side effects; the decisions are pure functions in ``steps``. A root request comes from outside, a
child request from the env of a composing handler, and only an env makes a request internal. Access control of a child
call uses the authority of the composing operation, and the child runs with the child's secrets.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias

import msgspec

from headgate.errors import CallError, UpstreamTimeout
from headgate.operations import steps
from headgate.operations.access import Identity
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.registration import HandlerRegistration, OperationContext, Prepared
from headgate.operations.running import RunningCall, RunningCalls, off_loop, timed_out
from headgate.operations.spec import parse_operation_id
from headgate.operations.steps import internal_failure, not_found, shown_failure


class Request(msgspec.Struct, frozen=True):
    """One call. A struct, because one is made for every call."""

    operation_id: str
    value: Any
    request_id: str
    identity: Identity | None = None
    caller: Identity | None = None
    parent: RunningCall | None = None
    deadline: float | None = None
    metadata: Mapping[str, Any] | None = None

    @property
    def is_internal(self) -> bool:
        """Whether another operation makes the call."""
        return self.parent is not None


def new_request_id() -> str:
    """Make a UUID of version 4."""
    return str(uuid.uuid4())


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
            prepared, value = await self._admit(request)
            call = self._open(request)
            context = self._context(prepared, request, call)
            result = await self.running.run(call, partial(_serve, prepared, value, context))
            envelope = steps.wrap(prepared, result, request_id=request.request_id, now_ms=self._now_ms())
        except CallError as error:
            _log_end(request, error.code)
            raise
        _log_end(request, "OK" if envelope.error is None else envelope.error.code)
        return envelope

    async def _admit(self, request: Request) -> tuple[Prepared, Any]:
        prepared = steps.check_visible(
            self._find(request.operation_id), request.operation_id, internal=request.is_internal
        )
        steps.check_access(prepared, request.identity, request.value)
        if prepared.input is None or prepared.input.is_light or not prepared.registration.provenance.is_leaf:
            return prepared, steps.check_input(prepared, request.value)
        # A foreign schema may take long to compile and to check.
        return prepared, await _checked_beside(prepared, request)

    def _open(self, request: Request) -> RunningCall:
        return self.running.open(RunningCall(request.request_id, request.parent, request.deadline))

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
            # Those of the operation that runs, never its parent's.
            capabilities=registration.capabilities,
            metadata=dict(request.metadata) if request.metadata else {},
            env=env,
            deadline=request.deadline,
        )


async def _checked_beside(prepared: Prepared, request: Request) -> Any:
    deadline = math.inf if request.deadline is None else request.deadline
    try:
        return await off_loop(deadline, steps.check_input, prepared, request.value)
    except UpstreamTimeout:
        raise timed_out() from None


async def _serve(prepared: Prepared, value: Any, context: OperationContext) -> Any:
    with _shown_failures(prepared, context):
        return await prepared.registration.handler(value, context)


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


Dispatch: TypeAlias = Callable[[Request], Awaitable[ResponseEnvelope]]


class ComposingEnv:
    """The env of one running call."""

    __slots__ = ("_caller", "_dispatch", "_parent", "_registration")

    def __init__(
        self,
        registration: HandlerRegistration,
        parent: RunningCall,
        *,
        caller: Identity | None,
        dispatch: Dispatch,
    ) -> None:
        self._registration = registration
        self._parent = parent
        self._caller = caller
        self._dispatch = dispatch

    async def execute(
        self,
        operation_id: str,
        value: Any = None,
        *,
        timeout_seconds: float | None = None,
    ) -> ResponseEnvelope:
        """Run an operation and return its envelope, also for an error result."""
        scope, authority = self._registration.scoped_env, self._registration.composition_authority
        if scope is None or not scope.allows(parse_operation_id(operation_id)):
            raise not_found(operation_id)
        request = Request(
            operation_id,
            value,
            new_request_id(),
            identity=None if authority is None else authority.as_identity(),
            caller=self._caller,
            parent=self._parent,
            deadline=earlier(self._parent.deadline, timeout_seconds),
        )
        return await self._dispatch(request)

    async def call(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> Any:
        """Run an operation and return its data, or raise its error."""
        envelope = await self.execute(operation_id, value, timeout_seconds=timeout_seconds)
        return envelope.unwrap()

    def __getattr__(self, namespace: str) -> Namespace:
        if namespace.startswith("_"):
            raise AttributeError(namespace)
        return Namespace(self, namespace)

    def __repr__(self) -> str:
        return f"<env of {self._registration.spec.id}>"


class Namespace:
    """The operations of one namespace, as attributes: short for ``env.call``."""

    __slots__ = ("_env", "_namespace")

    def __init__(self, env: ComposingEnv, namespace: str) -> None:
        self._env = env
        self._namespace = namespace

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if name.startswith("_"):
            raise AttributeError(name)
        return partial(self._env.call, f"{self._namespace}/{name}")


def earlier(deadline: float | None, timeout_seconds: float | None) -> float | None:
    """Return the earlier of two deadlines; a child never gets a later one."""
    if timeout_seconds is None:
        return deadline
    wanted = asyncio.get_running_loop().time() + timeout_seconds
    return wanted if deadline is None else min(deadline, wanted)
