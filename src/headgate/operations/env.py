"""Calls that a composing handler makes to other operations.

Access control of a child call uses the authority of the composing operation, and the child runs with the child's
secrets. An operation outside the scoped env appears not to exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

from headgate.operations.access import Identity
from headgate.operations.context import AbortPolicy
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.failures import not_found
from headgate.operations.names import parse_operation_id
from headgate.operations.registration import HandlerRegistration
from headgate.operations.request import Request, new_request_id
from headgate.operations.running import RunningCall

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
        abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS,
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
            abort_policy=abort_policy,
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
