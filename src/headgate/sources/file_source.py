"""Sources whose files are read one after the other, with marks from which an interrupted reading goes on.

A file is parsed again from its beginning, which is much quicker than storing is, and what was given already is left
out: a source needs no state that could be written down.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import IO, Any, Protocol, cast

from headgate.sources.declaring import StreamSpec, declaration
from headgate.sources.formats.values import day_after
from headgate.sources.inputs.tree import InputFile, InputTree, bare_label, connection_title
from headgate.sources.protocol import (
    Certainty,
    Covered,
    FileItem,
    Item,
    Mark,
    Recognised,
    Reject,
    Row,
    Source,
)
from headgate.sources.reading_note import SetAside

_DAY_CHARS = 10
#: Rows and rejects between two marks.
_STEP = 1000
#: What reading damaged files and archives raises.
BROKEN = (OSError, EOFError, ValueError, zlib.error)

#: Reads one file: gives its rows, the same ones in the same order every time.
ReadFile = Callable[[InputFile, IO[bytes]], Iterator[FileItem]]


class CountedContent:
    """The content of a file, and how much of it was read."""

    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.done_bytes = 0

    def read(self, size: int = -1) -> bytes:
        chunk = self._content.read(size)
        self.done_bytes += len(chunk)
        return chunk


def read_each(recognised: Recognised, resume: Mapping[str, Any], read_file: ReadFile) -> Iterator[Item]:
    """Read every file that is not done yet."""
    for file in recognised.files:
        begun = resume.get(file.name, {})
        if begun is not None:
            yield from _read_one(file, int(begun.get("items", 0)), read_file)


def _read_one(file: InputFile, done: int, read_file: ReadFile) -> Iterator[Item]:
    try:
        with file.open() as content:
            counted = CountedContent(content)
            items = read_file(file, cast("IO[bytes]", counted))
            for number, item in enumerate(islice(items, done, None), done + 1):
                yield item
                if number % _STEP == 0:
                    yield Mark(file.name, counted.done_bytes, {"items": number})
    except SetAside as error:
        yield Reject(file.name, str(error))
    except BROKEN as error:
        yield Reject(file.name, f"The file cannot be read further: {type(error).__name__}.")
    yield Mark(file.name, file.size_bytes)


@dataclass(frozen=True)
class FileSource(Source):
    """A source of one format: all its files of a tree are one connection."""

    name: str
    title: str
    streams: Sequence[StreamSpec]
    #: Looks at the name and the head of a file.
    is_of: Callable[[InputFile], bool]
    read_file: ReadFile
    #: How connections were called before they were called as others are, before the label.
    older_title: str = ""
    plain_form: int = 0

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        files = [file for file in tree.files if self.is_of(file)]
        if not files:
            return []
        title = connection_title(self.title, bare_label(tree.label))
        older = (
            f"{self.older_title} {tree.label}"
            if self.older_title
            else connection_title(self.title, tree.label)
        )
        form = self.plain_form or 1
        return [Recognised(self.name, title, files, Certainty.FORMAT, older_titles=(older,), form=form)]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, self.read_file)


class SourceFormat(Protocol):
    @property
    def title(self) -> str: ...

    def detect(self, tree: InputTree) -> Sequence[Recognised]: ...

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]: ...


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A format whose files are recognised and read one by one."""

    title: str
    #: Looks at the name and the head of a file.
    is_of: Callable[[InputFile], bool]
    read_file: ReadFile
    #: If its streams are not those of the source: what is added to the connector's key, and the streams.
    variant: str = ""
    streams: Sequence[StreamSpec] = ()
    #: Names the connection of a file where there may be several; empty: they are all one.
    part_of: Callable[[InputFile], str] = lambda _: ""
    #: For files that have all that happened between their first and their last record: of which part of the source.
    log_of: Callable[[InputFile], str] | None = None

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        parts: dict[str, list[InputFile]] = {}
        for file in filter(self.is_of, tree.files):
            parts.setdefault(self.part_of(file), []).append(file)
        titles = {part: connection_title(self.title, part) for part in parts}
        return [
            Recognised("", titles[part], files, Certainty.EXPORT, variant=self.variant)
            for part, files in parts.items()
        ]

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, self.read_file if self.log_of is None else self._read_log)

    def _read_log(self, file: InputFile, content: IO[bytes]) -> Iterator[FileItem]:
        """Read a file, and say which days it covers; of the first it may have a part only."""
        times, days = {spec.name: spec.time or "" for spec in self.streams}, dict[str, tuple[str, str]]()
        for item in self.read_file(file, content):
            if isinstance(item, Row) and (day := str(item.data.get(times[item.stream]) or "")[:_DAY_CHARS]):
                first, last = days.get(item.stream, (day, day))
                days[item.stream] = min(first, day), max(last, day)
            yield item
        part = self.log_of(file) if self.log_of else ""
        for stream, (first, last) in days.items():
            yield Covered(stream, part, day_after(first), last)


@dataclass(frozen=True)
class FormatsSource(Source):
    """A source of the exports of several programs, each with a format."""

    name: str
    title: str
    formats: Sequence[SourceFormat]
    streams: Sequence[StreamSpec] = ()
    plain_form: int = 0

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        return [
            replace(
                recognised,
                source=self.name,
                facts={**recognised.facts, "format": number},
                form=self.plain_form or recognised.form,
            )
            for number, form in enumerate(self.formats)
            for recognised in form.detect(tree)
        ]

    def declare(self, recognised: Recognised) -> Mapping[str, Any]:
        form = self._format(recognised)
        if recognised.variant and isinstance(form, FileFormat):
            return declaration(f"{self.name}-{recognised.variant}", form.title, form.streams)
        return super().declare(recognised)

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return self._format(recognised).read(recognised, resume)

    def _format(self, recognised: Recognised) -> SourceFormat:
        number: int = recognised.facts["format"]
        return self.formats[number]
