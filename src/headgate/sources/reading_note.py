"""What is being read at this moment, noted before it is read: a parser that ends its process leaves it behind.

There is one note for a process, because what kills a process says nothing more. It is a small file that is mapped into
memory, so that noting costs no call of the system and outlives a kill. Every note is a step: a process that makes no
step for a minute is ended by the system's alarm, which needs nothing of the code that hangs.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from headgate.system import end_after, open_private

#: The directory of notes in a home.
READING_NOTES = "parsing"
_SIZE = 4096
_LENGTH_BYTES = 2
#: Of a name; two long names that begin alike are one for this purpose.
_NAME_CHARS = 400
#: What was being read at so many ends of the whole program is not read again; once may be chance.
MOST_TRIES = 2
ENDED_WITH_PROGRAM = "The program ended while it read it, more than once."


class LastRead(NamedTuple):
    """What was being read when a process ended."""

    #: The file, by its name in the import.
    file: str
    #: The message in it; empty if it is not read message by message.
    item: str
    #: How many items the source had given.
    given: int
    #: How often in a row this was being read when the process ended.
    tries: int

    def is_item(self, place: str) -> bool:
        return self.item == _short(place)


class SetAside(OSError):
    """The file ended the process that read it before."""


class ReadingNote:
    """The note of this process; without a file it is not written."""

    def __init__(self) -> None:
        self._path: Path | None = None
        self._map: mmap.mmap | None = None
        self._idle_seconds, self._parent = 0.0, 0
        self._file = self._item = ""
        self._given = 0
        self._suspect: LastRead | None = None
        #: With the reason.
        self.refused: Mapping[str, str] = {}

    def begin(self, path: Path, refused: Mapping[str, str] | None = None) -> None:
        """Note into a file from now on; `refused` are the files and messages that must not be read."""
        self._file, self._item, self._given = "", "", 0
        self.refused = refused or {}
        if path != self._path:
            self._suspect = last_read(path)
            self._map_file(path)
        self._write()

    def _map_file(self, path: Path) -> None:
        handle = open_private(path, os.O_RDWR | os.O_CREAT)
        try:
            os.ftruncate(handle, _SIZE)
            self._map = mmap.mmap(handle, _SIZE)
        finally:
            os.close(handle)
        self._path = path

    def end_when_idle(self, seconds: float) -> None:
        """Have this process end when it makes no step for so long, or when the process that started it has ended."""
        self._idle_seconds, self._parent = seconds, os.getppid()
        self.step()

    def step(self) -> None:
        if self._idle_seconds:
            end_after(self._idle_seconds)
            if os.getppid() != self._parent:
                os._exit(1)

    def rest(self) -> None:
        """Wait for the other side, which may take any time."""
        if self._idle_seconds:
            end_after(0)

    def read_file(self, name: str) -> None:
        """Note that a file is read from now on; while a message is read, it is a part of that.

        Raises:
            SetAside: it must not be.
        """
        name = _short(name)
        if name in self.refused:
            raise SetAside(self.refused[name])
        if not self._item and name != self._file:
            self._file = name
            self._write()

    def read_item(self, place: str) -> str:
        """Note that a message is read from now on; returns why it must not be, or nothing."""
        self._item = _short(place)
        self._write()
        return self.refused.get(self._item, "")

    def item_is_read(self) -> None:
        self._item = ""
        self._write()

    def give(self, count: int) -> None:
        self._given = count
        self._write()

    def _write(self) -> None:
        self.step()
        if self._map is None:
            return
        suspect = self._suspect
        is_same = suspect is not None and suspect[:3] == (self._file, self._item, self._given)
        tries = suspect.tries + 1 if suspect is not None and is_same else 1
        written = msgspec.msgpack.encode((self._file, self._item, self._given, tries))
        self._map[: _LENGTH_BYTES + len(written)] = len(written).to_bytes(_LENGTH_BYTES) + written


def _short(name: str) -> str:
    return name[:_NAME_CHARS].encode("utf-8", "replace").decode()


def last_read(path: Path) -> LastRead | None:
    """Read the note that a process left behind; None if there is none."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    length = int.from_bytes(content[:_LENGTH_BYTES])
    try:
        read = msgspec.msgpack.decode(content[_LENGTH_BYTES : _LENGTH_BYTES + length], type=LastRead)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return read if read.file or read.item else None


#: The note of this process.
NOTE = ReadingNote()


class NotedOpening:
    """Opens a file after noting which one; what unpacks it may open others before it gives the content."""

    __slots__ = ("_name", "_opening")

    def __init__(self, name: str, opening: Callable[[], Any]) -> None:
        self._name = name
        self._opening = opening

    def __call__(self) -> Any:
        """Open the file."""
        NOTE.read_file(self._name)
        content = self._opening()
        NOTE.read_file(self._name)
        return content
