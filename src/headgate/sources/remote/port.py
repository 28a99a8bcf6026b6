"""What a remote source needs of the program around it: something that calls one operation of one server.

Sources know no protocol of remote servers; `headgate.mcp.client.calling` implements this with the guard on addresses
and with pins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.operations.secrets import Secret


@dataclass(frozen=True, slots=True)
class OperationAddress:
    """Which operation of which server is called."""

    server: str
    tool: str
    token: Secret | None = None
    #: Whether the owner allows the server a private address.
    allow_private: bool = False


class RemoteOperation(Protocol):
    """An operation that can be called until the session ends."""

    @property
    def is_read_only(self) -> bool:
        """Whether the server claims that it changes nothing."""
        ...

    def call(self, arguments: Mapping[str, Any]) -> Any:
        """Call it and return its structured result.

        Raises:
            HeadgateError: it failed, or is not what was approved.
        """
        ...


#: Opens a session with the server for the length of a block.
OpenOperation = Callable[[OperationAddress], AbstractContextManager[RemoteOperation]]
