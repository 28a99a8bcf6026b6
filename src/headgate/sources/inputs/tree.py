"""The files of an import as a tree of names, whether they lie on a disk or in an archive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import IO

from headgate.sources.reading_note import NotedOpening

HEAD_BYTES = 64 * 1024


@dataclass(frozen=True)
class InputFile:
    """One file: its name, and how to read it."""

    #: The path inside what was given, with ``/``; the name of the file alone if a single file was given.
    name: str
    size_bytes: int
    #: Opens the content for reading from the start; what comes from an archive may not be able to seek.
    open: Callable[[], IO[bytes]] = field(repr=False)
    #: Gives the content as a file on the disk, for parsers that need one; a copy is removed afterwards.
    on_disk: Callable[[], AbstractContextManager[Path]] = field(repr=False)
    #: Microseconds since 1970; None if it is not known.
    modified_at: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _unicode(self.name))
        object.__setattr__(self, "open", NotedOpening(self.name, self.open))
        object.__setattr__(self, "on_disk", NotedOpening(self.name, self.on_disk))

    @property
    def suffix(self) -> str:
        """The ending of the name in lower case, with its point."""
        return PurePosixPath(self.name).suffix.lower()

    @property
    def stem(self) -> str:
        """The name without directories and ending."""
        return PurePosixPath(self.name).stem

    @property
    def head(self) -> bytes:
        """The beginning of the content, by which a source recognises it; empty if it cannot be read."""
        return self._beginning[0]

    @property
    def unreadable(self) -> str:
        """Why the content cannot be read; empty if it can."""
        return self._beginning[1]

    @cached_property
    def _beginning(self) -> tuple[bytes, str]:
        try:
            with self.open() as content:
                return content.read(HEAD_BYTES), ""
        except OSError as error:
            reason = error.strerror or str(error).removeprefix(f"{self.name} ").removeprefix("is ")
            return b"", reason


@dataclass(frozen=True)
class InputTree:
    """Everything that one argument of an import names, in the order of the names."""

    #: How a person would call it: the name of the file, directory or archive without its ending.
    label: str
    files: Sequence[InputFile]
    #: The size of the archive that the files are in; None if they are in none.
    packed_bytes: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", _unicode(self.label))

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all files."""
        return frozenset(file.name for file in self.files)

    def find(self, name: str) -> InputFile | None:
        """Return the file of a name."""
        return next((file for file in self.files if file.name == name), None)


def _unicode(name: str) -> str:
    """Escape bytes of a name that are not Unicode: names become labels, which are stored and shown."""
    return name.encode("utf-8", "backslashreplace").decode()
