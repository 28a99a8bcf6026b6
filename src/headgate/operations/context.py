"""What a handler knows about the call it serves: who asks, with which secrets, until when.

A context is read, never trusted: the registry takes none from outside, and only it can mark a call as
internal. So a handler that builds one of its own gains nothing by it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Protocol

import msgspec

from headgate.operations.access import Identity
from headgate.operations.envelope import ResponseEnvelope
from headgate.operations.secrets import NO_CAPABILITIES, Capabilities


class AbortPolicy(StrEnum):
    """What becomes of the calls a call has started, when it is ended early."""

    ABORT_DEPENDENTS = "abort_dependents"
    CONTINUE_RUNNING = "continue_running"


class Env(Protocol):
    """The operations a composing handler can reach; all others look missing to it.

    ``env.github.list_issues({...})`` is short for ``env.call("github/list_issues", {...})``.
    """

    async def call(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> Any:
        """Run an operation and give its data, or raise its error."""
        ...

    async def execute(
        self,
        operation_id: str,
        value: Any = None,
        *,
        timeout_seconds: float | None = None,
        abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS,
    ) -> ResponseEnvelope:
        """Run an operation and give its envelope, error results included."""
        ...

    def __getattr__(self, namespace: str) -> Any: ...


class _Ids(msgspec.Struct, frozen=True):
    request_id: str
    parent_request_id: str | None = None


class OperationContext(_Ids, frozen=True, kw_only=True):
    """One call, as its handler sees it.

    A struct and not a dataclass, because one is made for every call and this is the quicker of the two.
    """

    #: Whom access control judged: the caller, or the authority of the composing operation.
    identity: Identity | None = None
    #: The root caller, for audit only; nothing is decided by it.
    caller: Identity | None = None
    #: What a peer says about its own user; nothing is decided by it, and children do not inherit it.
    forwarded_for: Mapping[str, Any] | None = None
    capabilities: Capabilities = NO_CAPABILITIES
    metadata: Mapping[str, Any] = msgspec.field(default_factory=dict[str, Any])
    #: None for operations that may not compose.
    env: Env | None = None
    abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS
    #: On the event loop's clock.
    deadline: float | None = None

    @property
    def internal(self) -> bool:
        """Whether another operation calls; only the pipeline has contexts that say so."""
        return False

    def remaining_seconds(self) -> float | None:
        """Say how much time is left, zero when none is, None when there is no deadline."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - asyncio.get_running_loop().time())
