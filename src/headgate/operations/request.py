"""Requests: everything the dispatcher needs to know about one call.

A root request comes from outside, a child request from an env. Only an env makes a request internal.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import msgspec

from headgate.operations.access import Identity
from headgate.operations.context import AbortPolicy
from headgate.operations.running import RunningCall


class Request(msgspec.Struct, frozen=True):
    """One call. A struct, because one is made for every call."""

    operation_id: str
    value: Any
    request_id: str
    identity: Identity | None = None
    caller: Identity | None = None
    parent: RunningCall | None = None
    deadline: float | None = None
    abort_policy: AbortPolicy = AbortPolicy.ABORT_DEPENDENTS
    metadata: Mapping[str, Any] | None = None
    forwarded_for: Mapping[str, Any] | None = None

    @property
    def is_internal(self) -> bool:
        """Whether another operation makes the call."""
        return self.parent is not None


def new_request_id() -> str:
    """Make a UUID of version 4."""
    return str(uuid.uuid4())
