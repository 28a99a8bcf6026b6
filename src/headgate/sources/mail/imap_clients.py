"""The standard library's IMAP clients with a limit on what a server may answer to one command.

The library reads a literal of any size that a server announces, and as many answers as it sends, into memory.
"""

from __future__ import annotations

import imaplib
from typing import Any

from headgate.sources.deadlines import Connections
from headgate.sources.mail.mbox import MAX_MESSAGE_BYTES

#: One message of the largest size, and what else stands in an answer.
MAX_ANSWER_BYTES = MAX_MESSAGE_BYTES + 16 * 1024 * 1024


class BoundedImap(imaplib.IMAP4):
    """A client that ends a connection on which one command is answered with too much."""

    _left = MAX_ANSWER_BYTES

    def __init__(self, host: str, port: int, *, connections: Connections, **more: Any) -> None:
        # Before the library's own: that connects and reads the greeting.
        self._connections = connections
        super().__init__(host, port, **more)

    def open(self, *place: Any, **more: Any) -> None:
        """Connect, and let the connection be watched."""
        super().open(*place, **more)
        self._connections.add(self.sock)

    def send(self, data: Any) -> None:
        """Send a command; its answer has the whole limit."""
        self._left = MAX_ANSWER_BYTES
        super().send(data)

    def read(self, size: int) -> bytes:
        """Read a literal of an announced size."""
        self._take(size)
        return super().read(size)

    def readline(self) -> bytes:
        """Read a line, which the library bounds."""
        line = super().readline()
        self._take(len(line))
        return line

    def _take(self, size: int) -> None:
        self._left -= size
        if self._left < 0:
            raise self.abort(f"an answer has more than {MAX_ANSWER_BYTES // 1024 // 1024} MB")


class BoundedImapTls(BoundedImap, imaplib.IMAP4_SSL):
    """The same, with TLS from the start."""
