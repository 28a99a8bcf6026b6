"""How long fetching from one account may take in all: a server that sends a byte a second never ends by itself.

The time of a single read is limited where it is made. Here everything together is: what came until then is stored,
and the next attempt goes on from there.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

from headgate.errors import UpstreamUnreachable

_T = TypeVar("_T")

ACCOUNT_SECONDS = 1800.0


def until_deadline(items: Iterator[_T]) -> Iterator[_T]:
    """Pass items on until the time of an account is over."""
    end = time.monotonic() + ACCOUNT_SECONDS
    for item in items:
        yield item
        if time.monotonic() > end:
            raise UpstreamUnreachable(
                f"The server was not done within {ACCOUNT_SECONDS / 60:.0f} minutes; the rest is fetched next time."
            )


class Connections:
    """The connections to one server; all are shut down when the time of an account is over, so that no read waits longer."""

    def __init__(self) -> None:
        self._handles: list[socket.socket] = []
        self._lock = threading.Lock()
        self._is_over = False

    def add(self, connection: socket.socket) -> None:
        """Watch a connection, also after TLS has taken it over."""
        handle = socket.fromfd(connection.fileno(), connection.family, connection.type)
        with self._lock:
            self._handles.append(handle)
            if self._is_over:
                _shut_down(handle)

    def cut(self) -> None:
        """Shut all of them down, and those that are added later."""
        with self._lock:
            self._is_over = True
            for handle in self._handles:
                _shut_down(handle)

    def forget(self) -> None:
        """Watch none of them any more."""
        with self._lock:
            for handle in self._handles:
                handle.close()
            self._handles.clear()


def _shut_down(handle: socket.socket) -> None:
    # One that the server has ended already is not connected.
    with suppress(OSError):
        handle.shutdown(socket.SHUT_RDWR)


@contextmanager
def cut_at_deadline() -> Generator[Connections]:
    """Watch the connections of a block."""
    connections = Connections()
    timer = threading.Timer(ACCOUNT_SECONDS, connections.cut)
    timer.daemon = True
    timer.start()
    try:
        yield connections
    finally:
        timer.cancel()
        connections.forget()
