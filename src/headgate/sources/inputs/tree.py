"""The files of an import as a tree of names, whether they lie on a disk or in an archive."""

from __future__ import annotations

import re
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
    #: When it was given, in microseconds since 1970; None if it is not known.
    given_at: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", _unicode(self.label))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self.files)

    def find(self, name: str) -> InputFile | None:
        return next((file for file in self.files if file.name == name), None)


def _unicode(name: str) -> str:
    """Escape bytes of a name that are not Unicode: names become labels, which are stored and shown."""
    return name.encode("utf-8", "backslashreplace").decode()


_ID_AFTER = re.compile(r"[ _-](?:[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$", re.IGNORECASE)
_COPY = re.compile(r" ?\(\d+\)$")
#: The archives of one Google Takeout, whose names have the time of the order and a number.
_TAKEOUT = re.compile(r"takeout-\d{8}t\d{6}z(?:-\d+)*", re.IGNORECASE)
#: Months, in the languages that banks here write, and what systems call copies.
_WORDS = (
    "copy|kopie|copie|copia",
    "jan|january|januar|janvier|enero|ene|gennaio|gen|januari",
    "feb|february|februar|février|fevrier|febrero|febbraio|februari",
    "mar|march|märz|maerz|mrz|mär|mars|marzo|maart",
    "apr|april|avril|abril|aprile",
    "may|mai|mayo|maggio|mei",
    "jun|june|juni|juin|junio|giugno",
    "jul|july|juli|juillet|julio|luglio",
    "aug|august|août|aout|agosto|augustus",
    "sep|sept|september|septembre|septiembre|settembre",
    "oct|october|okt|oktober|octobre|octubre|ottobre",
    "nov|november|novembre|noviembre",
    "dec|december|dez|dezember|décembre|decembre|dic|diciembre|dicembre",
)
_VARYING = re.compile(
    rf"""\(\d+\)                                              # a copy
    | (?<!\d) (?:19|20)\d\d (?:[-_.]?\d\d){{0,2}} (?!\d)    # 2026, 2026-03, 20260331
    | (?<!\d) \d\d?[-_.]\d\d?[-_.](?:19|20)?\d\d (?!\d)    # 31.03.2026
    | (?<!\d) \d\d[-_.:h]\d\d (?:[-_.:m]\d\d)? (?!\d)      # a time
    | [-_ ]\d{{1,2}}$                                       # a counter
    | (?<![^\W\d_]) (?:{"|".join(_WORDS)}) (?![^\W\d_])""",
    re.VERBOSE | re.IGNORECASE,
)


def export_label(name: str) -> str:
    """Name an archive or directory for people; every Takeout, and each archive of it, has the same name."""
    return "Takeout" if _TAKEOUT.fullmatch(_COPY.sub("", name)) else name


def bare_label(name: str) -> str:
    """Leave out the id that Notion ends names with."""
    return _ID_AFTER.sub("", name) or name


def connection_title(kind: str, label: str) -> str:
    """Name a connection by the file: a copy, "contacts (1)", and the bare kind, "contacts", are the same one."""
    bare = _COPY.sub("", label).strip()
    return kind if bare.lower() in {"", kind.lower(), kind.lower().removesuffix("s")} else f"{kind}: {bare}"


def file_label(stem: str) -> str:
    """Name what a file is about, the same for every month and every copy of it; empty if nothing else is left."""
    label = " ".join(_VARYING.sub(" ", stem).replace("_", " ").split()).strip(" -.,")
    return label if any(letter.isalpha() for letter in label) else ""
