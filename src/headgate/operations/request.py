"""One call that is asked for: everything the pipeline needs to know, and nothing a handler can make.

A root request comes from outside; a child request from an env. Only an env makes a request internal.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import msgspec

from headgate.operations.access import Identity
from headgate.operations.context import AbortPolicy
from headgate.operations.running import RunningCall


class Request(msgspec.Struct, frozen=True):
    """Who asks for what. A struct, because one is made for every call."""

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
        """Whether another operation asks."""
        return self.parent is not None


def new_request_id() -> str:
    """Make a UUID of version 4; a third of the time that the uuid module takes."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"
