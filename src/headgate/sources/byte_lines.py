"""Lines of files as bytes, for formats whose lines are decoded one by one."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO

#: A longer line is no text that a person or a program wrote as one.
MAX_LINE_BYTES = 16 * 1024 * 1024
_BUFFER_BYTES = 64 * 1024


class _Readable(io.RawIOBase):
    """Content that may have no method but `read`, for the buffer of the standard library."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        part = self._content.read(len(buffer))
        buffer[: len(part)] = part
        return len(part)


def byte_lines(content: IO[bytes]) -> Iterator[bytes]:
    """Give the lines without their ends; of a line that is too long the beginning."""
    buffered = io.BufferedReader(_Readable(content), _BUFFER_BYTES)
    while part := buffered.readline(MAX_LINE_BYTES):
        line = part
        while not part.endswith(b"\n") and (part := buffered.readline(MAX_LINE_BYTES)):
            pass
        yield line.rstrip(b"\r\n")
