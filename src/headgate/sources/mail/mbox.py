"""Cut an mbox file into messages, in memory bounded by one message.

There are several mbox formats. What they agree on is a line that begins with ``From ``, and that such a line of a
message is quoted with ``>``. Not every program quotes, so a line counts as the beginning of a message only if it looks
like one and a header follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

#: A larger message is left out: no provider passes it on, so it is a damaged file.
MAX_MESSAGE_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1024 * 1024
#: How much of what follows a possible beginning must be there to judge it.
_JUDGED_BYTES = 4096
#: A sender and a time as asctime writes it, whatever follows; any text with a time, or a sender alone, if a header
#: follows.
_BEGINNING = re.compile(
    rb"From (?:[^\s]{1,500} +[A-Z][a-z][a-z] [A-Z][a-z][a-z] [ \d]\d \d\d:\d\d(?::\d\d)?(?: [+-]\d{4})? \d{4}[ \t]*\r?\n"
    rb"|[^\n]{0,1000}\d:\d\d[^\n]{0,200}\n(?:[!-9;-~]{1,200}:|>From |\r?\n|$)"
    rb"|[^\s]{0,500}[ \t]*\r?\n(?:[!-9;-~]{1,200}:|>From ))"
)
_QUOTED = re.compile(rb"^>(>*From )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MboxMessage:
    """One message of an mbox file."""

    #: Bytes of the file before it, and with it.
    begin: int
    end: int
    #: The line before the message, without its ``From ``.
    envelope: bytes
    #: None if it is too large.
    content: bytes | None


def is_mbox(head: bytes) -> bool:
    """Say whether a file begins as an mbox does."""
    return _BEGINNING.match(head.lstrip(b"\xef\xbb\xbf\r\n")) is not None


def split(content: IO[bytes], begin: int = 0) -> Iterator[MboxMessage]:
    """Read messages from a place where one begins; the content stands there already.

    Raises:
        OSError: the content cannot be read.
    """
    buffer, searched, skipped, is_end = bytearray(), 0, 0, False
    while not is_end:
        piece = content.read(_PIECE_BYTES)
        is_end = not piece
        buffer += piece
        judged = len(buffer) if is_end else len(buffer) - _JUDGED_BYTES
        while (cut := _next_beginning(buffer, searched, judged)) is not None:
            if message := _message(buffer[:cut], begin, skipped):
                yield message
            begin += skipped + cut
            del buffer[:cut]
            judged, searched, skipped = judged - cut, 0, 0
        searched = max(0, judged)
        if len(buffer) > MAX_MESSAGE_BYTES:
            # Only its size is known from here on.
            skipped += searched
            del buffer[:searched]
            searched = 0
    if message := _message(buffer, begin, skipped):
        yield message


def _next_beginning(buffer: bytearray, start: int, end: int) -> int | None:
    """Find the next beginning of a message after the first byte."""
    at = buffer.find(b"\nFrom ", start)
    while at != -1 and at < end:
        if _BEGINNING.match(buffer, at + 1):
            return at + 1
        at = buffer.find(b"\nFrom ", at + 1)
    return None


def _message(found: bytearray, begin: int, skipped: int) -> MboxMessage | None:
    end = begin + skipped + len(found)
    if skipped:
        return MboxMessage(begin, end, b"", None)
    text = bytes(found).lstrip(b"\xef\xbb\xbf\r\n")
    envelope, _, content = text.partition(b"\n") if text.startswith(b"From ") else (b"", b"", text)
    if not content.strip():
        return None
    return MboxMessage(begin, end, envelope[5:].strip(), _unquoted(content))


def _unquoted(content: bytes) -> bytes:
    return _QUOTED.sub(rb"\1", content) if b">From " in content else content
