"""Read the files of an import one after the other, with marks from which an interrupted reading goes on.

A file is parsed again from its beginning, which is much quicker than storing is, and what was given already is left
out: a source needs no state that could be written down.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import IO, Any, cast

from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Item, Mark, Recognised, Reject, Row
from headgate.sources.reading_note import SetAside

#: Rows and rejects between two marks.
_STEP = 1000
#: What reading damaged files and archives raises.
BROKEN = (OSError, EOFError, ValueError, zlib.error)


class CountedContent:
    """The content of a file, and how much of it was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.done_bytes = 0

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes."""
        chunk = self._content.read(size)
        self.done_bytes += len(chunk)
        return chunk


#: Reads one file: gives its rows, the same ones in the same order every time.
ReadFile = Callable[[InputFile, IO[bytes]], Iterator[Row | Reject]]


def read_each(found: Recognised, resume: Mapping[str, Any], read_file: ReadFile) -> Iterator[Item]:
    """Read every file that is not done yet."""
    for file in found.files:
        begun = resume.get(file.name, {})
        if begun is not None:
            yield from _read_one(file, int(begun.get("items", 0)), read_file)


def _read_one(file: InputFile, given: int, read_file: ReadFile) -> Iterator[Item]:
    try:
        with file.open() as content:
            counted = CountedContent(content)
            items = read_file(file, cast("IO[bytes]", counted))
            for number, item in enumerate(islice(items, given, None), given + 1):
                yield item
                if number % _STEP == 0:
                    yield Mark(file.name, counted.done_bytes, {"items": number})
    except SetAside as error:
        yield Reject(file.name, str(error))
    except BROKEN as error:
        yield Reject(file.name, f"The file cannot be read further: {type(error).__name__}.")
    yield Mark(file.name, file.size_bytes)
