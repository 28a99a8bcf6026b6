"""What generated stubs import: the caller protocol, and a marker for arguments that are left out."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Protocol

from msgspec import UNSET, UnsetType

__all__ = ["UNSET", "Caller", "UnsetType", "call_with"]


class Caller(Protocol):
    """A registry, or the env of a composing operation."""

    def call(self, operation_id: str, value: Any = None, /) -> Coroutine[Any, Any, Any]:
        """Run an operation and give its data, or raise its error."""
        ...


async def call_with(caller: Caller, operation_id: str, arguments: Mapping[str, Any]) -> Any:
    """Call an operation with the arguments that were given."""
    given = {name: value for name, value in arguments.items() if value is not UNSET}
    return await caller.call(operation_id, given)
