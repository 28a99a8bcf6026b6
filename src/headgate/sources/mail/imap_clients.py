"""The standard library's IMAP clients with a limit on what a server may answer to one command.

The library reads a literal of any size that a server announces, and as many answers as it sends, into memory.
"""

from __future__ import annotations

import base64
import imaplib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headgate.sources.accounts import Connections
from headgate.sources.formats.values import clean
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


_LISTED = re.compile(rb"\(([^)]*)\) (?:\"(?:\\.|[^\"\\])*\"|NIL) (.+)", re.DOTALL)
_QUOTED = re.compile(rb'\\(["\\])')
_SHIFTED = re.compile(r"&([^-]*)-")
_UID = re.compile(rb"\bUID (\d+)")
_SIZE = re.compile(rb"\bRFC822\.SIZE (\d+)")
_FLAGS = re.compile(rb"\bFLAGS \(([^)]*)\)")
_THREAD = re.compile(rb"\bX-GM-THRID (\d+)")
_LABELS = re.compile(rb'\bX-GM-LABELS \(((?:"(?:\\.|[^"\\])*"|[^()"])*)\)')
_LABEL = re.compile(rb'"((?:\\.|[^"\\])*)"|([^\s"]+)')


@dataclass(frozen=True, slots=True)
class ImapFolder:
    #: As the server wrote it, to be sent back.
    wire_name: bytes
    flags: frozenset[str]

    @property
    def name(self) -> str:
        """The name as the owner sees it."""
        return folder_name(self.wire_name)


@dataclass(frozen=True, slots=True)
class FetchedMessage:
    uid: int
    flags: frozenset[str]
    size: int | None
    #: None if it was not asked for.
    content: bytes | None
    thread: str | None
    labels: Sequence[str]


def listed_folders(answers: Iterable[object]) -> list[ImapFolder]:
    """Read the answers to LIST; a name may come as a literal."""
    folders: list[ImapFolder] = []
    for answer in answers:
        line, *literal = _pieces(answer) or [b""]
        if match := _LISTED.match(line):
            name = literal[0] if literal else _unquoted(match.group(2).strip())
            folders.append(ImapFolder(name, _words(match.group(1))))
    return folders


def folder_name(wire_name: bytes) -> str:
    """Decode the UTF-7 variant that names of folders are written in."""
    return clean(_SHIFTED.sub(_unshifted, wire_name.decode("utf-8", "replace")))


def quoted(wire_name: bytes) -> str:
    """Write a name as an argument of a command."""
    escaped = wire_name.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\r", b"").replace(b"\n", b"")
    return f'"{escaped.decode("latin-1")}"'


def fetched(answers: Iterable[object]) -> list[FetchedMessage]:
    """Read the answers to FETCH: what stands before and after a message's content belongs to it."""
    responses: list[tuple[bytes, bytes | None]] = []
    is_open = False
    for answer in answers:
        if isinstance(answer, tuple):
            line, content, *_ = _pieces(cast("tuple[object, ...]", answer))
            responses.append((line, content))
            is_open = True
        elif isinstance(answer, bytes) and is_open:
            responses[-1] = (responses[-1][0] + answer, responses[-1][1])
            is_open = False
        elif isinstance(answer, bytes):
            responses.append((answer, None))
    return [_message(line, content) for line, content in responses if _UID.search(line)]


def _pieces(answer: object) -> list[bytes]:
    """Take apart what the library gives: a line, a line and its literal, or None."""
    pieces = cast("tuple[object, ...]", answer) if isinstance(answer, tuple) else (answer,)
    return [piece for piece in pieces if isinstance(piece, bytes)]


def _message(line: bytes, content: bytes | None) -> FetchedMessage:
    labels = _LABELS.search(line)
    # Labels are text of the owner, which may look like anything.
    line = _LABELS.sub(b"", line)
    uid, size, flags, thread = (pattern.search(line) for pattern in (_UID, _SIZE, _FLAGS, _THREAD))
    return FetchedMessage(
        int(uid.group(1)) if uid else 0,
        _words(flags.group(1)) if flags else frozenset(),
        int(size.group(1)) if size else None,
        content,
        thread.group(1).decode() if thread else None,
        [_label(*match) for match in _LABEL.findall(labels.group(1))] if labels else (),
    )


def _label(in_quotes: bytes, bare: bytes) -> str:
    # The labels that Gmail itself gives are written as flags: \Inbox.
    return folder_name(_QUOTED.sub(rb"\1", in_quotes) if in_quotes else bare).lstrip("\\")


def _unquoted(name: bytes) -> bytes:
    is_quoted = name.startswith(b'"') and name.endswith(b'"') and len(name) > 1
    return _QUOTED.sub(rb"\1", name[1:-1]) if is_quoted else name


def _words(text: bytes) -> frozenset[str]:
    return frozenset(text.decode("ascii", "replace").lower().split())


def _unshifted(match: re.Match[str]) -> str:
    if not match.group(1):
        return "&"
    packed = match.group(1).replace(",", "/")
    try:
        return base64.b64decode(packed + "=" * (-len(packed) % 4)).decode("utf-16-be")
    except ValueError:
        return match.group()
