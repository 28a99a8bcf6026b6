"""The fast path of stdio: the plain part of a session, answered without the SDK, which is slow to import.

The first message that is not plain ends this part: the SDK takes over, is given the messages that began the session,
and alone decides from there on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from headgate.mcp.serve.plain import (
    DISCOVER,
    HANDSHAKE,
    Message,
    NotPlain,
    PlainRequest,
    decode_message,
    read_plain,
)
from headgate.mcp.serve.results import LEGACY
from headgate.mcp.serve.tools import Surface

_INITIALIZED = Message("2.0", "notifications/initialized")
_CANCELLED = "notifications/cancelled"


@dataclass(slots=True)
class StdioFastPath:
    """One session, up to the first message that is not plain."""

    surface: Surface
    #: The messages that the SDK needs when it takes over, and the id of the one among them that is answered already.
    replay: list[bytes] = field(default_factory=list[bytes], init=False)
    answered: int | str | None = field(default=None, init=False)
    _version: str | None = field(default=None, init=False)
    _has_ended_handshake: bool = field(default=False, init=False)
    #: Whether the client has asked who the server is, and nothing else yet.
    _is_probed: bool = field(default=False, init=False)

    def read(self, line: bytes) -> PlainRequest | NotPlain | None:
        """Read a message; None for a notification that has no effect beyond this session's state."""
        message = decode_message(line)
        if self._is_probed and message is not None:
            if message.method == _CANCELLED:
                # Only answered questions can be meant.
                return None
            if message.method == HANDSHAKE:
                # A client that had no answer in time to its first question begins anew, in the older way.
                self._forget()
        if self._version in LEGACY and not self._has_ended_handshake:
            if message != _INITIALIZED:
                return NotPlain.METHOD_OF_OTHER_ERA
            self.replay.append(line)
            self._has_ended_handshake = True
            return None
        request = read_plain(message, version=self._version, tools=self.surface.names)
        if self._version is None and isinstance(request, PlainRequest):
            self._version, self.answered = request.version, request.id
            self.replay.append(line)
            self._is_probed = request.method == DISCOVER
        elif message is None or message.method != DISCOVER:
            self._is_probed = False
        return request

    def _forget(self) -> None:
        """Start the session anew."""
        self.replay.clear()
        self._version = self.answered = None
        self._is_probed = False
