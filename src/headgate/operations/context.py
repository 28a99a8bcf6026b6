"""What a handler knows about the call it serves: the caller, its secrets, its deadline.

A context is never trusted: the registry accepts none from outside, and only it can mark a call as internal, so a
handler gains nothing by building one.
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
    """What happens to the child calls of a call that is aborted."""

    ABORT_DEPENDENTS = "abort_dependents"
    CONTINUE_RUNNING = "continue_running"


class Env(Protocol):
    """The operations a composing handler can call; all others appear not to exist.

    ``env.github.list_issues({...})`` is short for ``env.call("github/list_issues", {...})``.
    """

    async def call(
        self, operation_id: str, value: Any = None, *, timeout_seconds: float | None = None
    ) -> Any:
        """Run an operation and return its data, or raise its error."""
        ...

    async def execute(
        self,
        operation_id: str,
        value: Any = None,
        *,
        timeout_seconds: float | None = None,
        abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS,
    ) -> ResponseEnvelope:
        """Run an operation and return its envelope, also for an error result."""
        ...

    def __getattr__(self, namespace: str) -> Any: ...


class _Ids(msgspec.Struct, frozen=True):
    request_id: str
    parent_request_id: str | None = None


class OperationContext(_Ids, frozen=True, kw_only=True):
    """One call, as its handler sees it.

    A struct, because one is made for every call and a struct is cheaper than a dataclass.
    """

    #: The identity that access control checked: the caller, or the authority of the composing operation.
    identity: Identity | None = None
    #: The root caller, for audit only; access control ignores it.
    caller: Identity | None = None
    #: What a peer claims about its user; access control ignores it, and child calls do not inherit it.
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
        """Whether another operation calls; true only in contexts that the dispatcher makes."""
        return False

    def remaining_seconds(self) -> float | None:
        """Return the time left: zero after the deadline, None without one."""
        if self.deadline is None:
            return None
        return max(0.0, self.deadline - asyncio.get_running_loop().time())
