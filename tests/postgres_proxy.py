"""A proxy between the program and a PostgreSQL server, which cuts the connection at one statement.

It knows just enough of the protocol to count statements: a simple query, or the synchronisation after an extended one.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from enum import Enum, auto
from pathlib import Path
from typing import BinaryIO

_SOCKET = ".s.PGSQL.5432"
#: Kinds of messages: a simple query and a synchronisation; the end of a connection, and those of a copy.
_STATEMENT_ENDS = {b"Q", b"S"}
_OTHERS = {b"X", b"d", b"c", b"H"}
_READY, _COMPLETE = b"Z", b"C"


class Cut(Enum):
    """Where a connection is cut."""

    #: The server does not get the statement.
    BEFORE = auto()
    #: The server has done the statement, and its answer is lost.
    AFTER = auto()
    #: The same, for the statement that ends a transaction.
    AFTER_COMMIT = auto()


class CuttingProxy:
    """Listens in a folder as a server does, and passes everything on until it is asked to cut."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.folder = folder
        self._server = server
        self._lock = threading.Lock()
        self._where = Cut.BEFORE
        self._left = 0
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / _SOCKET))
        self._listening.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, statement: int, where: Cut) -> None:
        """Cut at one of the statements from now, which are counted from 1."""
        with self._lock:
            self._left, self._where = statement, where

    def stop_cutting(self) -> bool:
        """Let everything pass again; says whether there was a cut."""
        with self._lock:
            was_cut, self._left = self._left == 0, 0
            return was_cut

    def close(self) -> None:
        """Accept no more connections."""
        self._listening.close()

    def is_due(self, where: Cut) -> bool:
        """Count a statement, if it is of those that count; says whether to cut at it."""
        with self._lock:
            if self._left == 0 or where is not self._where:
                return False
            self._left -= 1
            return self._left == 0

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        try:
            server.connect(str(self._server / _SOCKET))
        except OSError:
            client.close()
            return
        one = _Connection(client, server, self)
        threading.Thread(target=one.answer, daemon=True).start()
        one.ask()


class _Connection:
    """One connection through the proxy; each direction has a thread."""

    def __init__(self, client: socket.socket, server: socket.socket, proxy: CuttingProxy) -> None:
        self._client = client
        self._server = server
        self._proxy = proxy
        self._is_swallowing = False

    def ask(self) -> None:
        """Pass on what the program sends, a whole statement at a time."""
        with contextlib.suppress(OSError, EOFError), self._client.makefile("rb") as sent:
            self._server.sendall(_startup(sent))
            waiting = b""
            while True:
                kind, message = _message(sent)
                waiting += message
                if kind in _STATEMENT_ENDS:
                    if self._proxy.is_due(Cut.BEFORE):
                        break
                    self._is_swallowing |= self._proxy.is_due(Cut.AFTER)
                if kind in _STATEMENT_ENDS | _OTHERS:
                    self._server.sendall(waiting)
                    waiting = b""
        if not self._is_swallowing:
            self._end()

    def answer(self) -> None:
        """Pass on what the server sends; after a cut nothing, until it is ready for the next statement."""
        with contextlib.suppress(OSError, EOFError), self._server.makefile("rb") as answers:
            while True:
                kind, message = _message(answers)
                if kind == _COMPLETE and message[5:].startswith(b"COMMIT"):
                    self._is_swallowing |= self._proxy.is_due(Cut.AFTER_COMMIT)
                if not self._is_swallowing:
                    self._client.sendall(message)
                elif kind == _READY:
                    break
        self._end()

    def _end(self) -> None:
        for one in (self._client, self._server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _startup(sent: BinaryIO) -> bytes:
    length = _read(sent, 4)
    return length + _read(sent, int.from_bytes(length) - 4)


def _message(stream: BinaryIO) -> tuple[bytes, bytes]:
    head = _read(stream, 5)
    return head[:1], head + _read(stream, int.from_bytes(head[1:]) - 4)


def _read(stream: BinaryIO, size: int) -> bytes:
    found = stream.read(size)
    if len(found) < size:
        raise EOFError
    return found


@contextmanager
def cutting_proxy(server: Path) -> Generator[CuttingProxy]:
    """Run a proxy to the server whose socket is in a folder."""
    folder = Path(tempfile.mkdtemp(prefix="headgate-proxy-"))
    proxy = CuttingProxy(folder, server)
    try:
        yield proxy
    finally:
        proxy.close()
        shutil.rmtree(folder, ignore_errors=True)
