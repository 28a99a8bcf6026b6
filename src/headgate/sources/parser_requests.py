"""What a process that parses can be asked: a closed set of requests, each with the code that answers it there.

The parsers are imported by the answers, so that the process that asks does without them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from headgate.errors import InvalidRequest
from headgate.sources.inputs.tree import InputFile
from headgate.sources.parts import ImportPart, most_stored_bytes, parts, within
from headgate.sources.protocol import Item, Mark, Reject
from headgate.sources.reading_note import NOTE

if TYPE_CHECKING:
    from headgate.sources.calendar.dav import DavPart
    from headgate.sources.importing import ImportJob
    from headgate.sources.mail.rows import MailRows
    from headgate.sources.previewing import ImportPreview, PlannedImport


class ParserState:
    """What the process remembers between requests."""

    def __init__(self) -> None:
        self.files = ExitStack()
        self.planned: Sequence[PlannedImport] = ()
        self.mail: MailRows | None = None


def _path(name: bytes) -> Path:
    return Path(os.fsdecode(name))


class PlannedFiles(Struct, frozen=True):
    """What one import of a plan would read, for the process that asked."""

    source: str
    files: list[str]
    connector_key: str
    display_name: str
    document: dict[str, Any]
    form: int
    total_bytes: int
    most_bytes: int | None
    fingerprint: str | None


class PlanAnswer(Struct, frozen=True):
    """A plan, for the process that asked."""

    imports: list[PlannedFiles]
    unknown: list[str]
    has_unreadable: bool


class OpenFiles(Struct, frozen=True, kw_only=True, tag=True):
    """Recognise what is at some paths."""

    paths: list[bytes]
    #: Where to note what is being read.
    note: bytes = b""
    source: str | None = None
    name: str | None = None
    corrections: dict[str, Any] | None = None
    #: Files that ended a process before, with the reason.
    refused: dict[str, str] = {}

    def answer(self, state: ParserState) -> Iterator[PlanAnswer]:
        """Plan the import; the files stay open."""
        from headgate.sources.inputs.archives import opened_tree  # noqa: PLC0415 - parsers
        from headgate.sources.planning import chosen_sources, plan_imports  # noqa: PLC0415 - parsers

        NOTE.begin(_path(self.note), self.refused)
        trees = [state.files.enter_context(opened_tree(_path(path))) for path in self.paths]
        among = chosen_sources(self.source)
        plan = plan_imports(trees, among, name=self.name, corrections=self.corrections)
        state.planned = plan.imports
        yield PlanAnswer([_described(one) for one in plan.imports], list(plan.unknown), plan.has_unreadable)


def _described(planned: PlannedImport) -> PlannedFiles:
    job = planned.job
    return PlannedFiles(
        planned.source,
        list(planned.files),
        job.connector_key,
        job.display_name,
        dict(job.document),
        job.form,
        job.total_bytes,
        job.most_bytes,
        job.fingerprint,
    )


class PreviewFiles(Struct, frozen=True, kw_only=True, tag=True):
    """Read the beginning of the files of a planned import."""

    number: int
    note: bytes = b""
    refused: dict[str, str]

    def answer(self, state: ParserState) -> Iterator[ImportPreview]:
        from headgate.sources.previewing import preview  # noqa: PLC0415 - parsers

        NOTE.begin(_path(self.note), {**NOTE.refused, **self.refused})
        yield preview(state.planned[self.number].job)


class Cut(Struct, frozen=True):
    """A file that is not read further than to a number of items, because it ends the process there."""

    at: int
    file: str
    reason: str


class ReadFiles(Struct, frozen=True, kw_only=True, tag=True):
    """Read the files of a planned import."""

    number: int
    note: bytes = b""
    resume: dict[str, Any]
    form: int
    #: How many items were given before the marks in `resume`, and how many were received: these are not given again.
    given: int
    received: int
    cuts: list[Cut]
    refused: dict[str, str]

    def answer(self, state: ParserState) -> Iterator[ImportPart]:
        """Return the parts."""
        NOTE.begin(_path(self.note), {**NOTE.refused, **self.refused})
        yield from parts(self._items(state.planned[self.number].job))

    def _items(self, job: ImportJob) -> Iterator[Item | ImportPart]:
        count, resume = self.given, dict(self.resume)
        for cut in (*self.cuts, None):
            for item in self._until(cut, job, resume, count):
                count += 1
                NOTE.give(count)
                if isinstance(item, Mark):
                    resume[item.file] = item.resume
                if count > self.received:
                    yield item

    def _until(
        self, cut: Cut | None, job: ImportJob, resume: Mapping[str, Any], count: int
    ) -> Iterator[Item | ImportPart]:
        NOTE.give(count)
        items = iter(job.read(dict(resume), self.form))
        if cut is None:
            yield from items
            return
        for _ in range(cut.at - count):
            item = next(items, None)
            if item is None:
                return
            yield item
        yield Reject(cut.file, cut.reason)
        yield Mark(cut.file, 0)


class ReadMessage(Struct, frozen=True, kw_only=True, tag=True):
    """Read a message that was fetched."""

    place: str
    note: bytes = b""
    content: bytes
    #: The members of `MailState` beside the place.
    state: dict[str, Any]

    def answer(self, state: ParserState) -> Iterator[ImportPart]:
        """Return its records."""
        from headgate.sources.mail.rows import MailRows, MailState  # noqa: PLC0415 - parsers

        NOTE.begin(_path(self.note))
        state.mail = state.mail or MailRows()
        items = state.mail.of(self.content, MailState(self.place, **self.state))
        yield from within(most_stored_bytes(len(self.content)), parts(items), self.place)


class ReadCalendar(Struct, frozen=True, kw_only=True, tag=True):
    """Read an iCalendar file that was fetched."""

    place: str
    note: bytes = b""
    content: bytes
    #: What the calendar is called.
    name: str
    now: datetime

    def answer(self, state: ParserState) -> Iterator[ImportPart]:
        """Return its records."""
        from headgate.sources.calendar.source import read_calendar  # noqa: PLC0415 - parsers

        del state
        NOTE.begin(_path(self.note))
        NOTE.read_item(self.place)
        opened = partial(io.BytesIO, self.content)
        file = InputFile(f"{self.name}.ics", len(self.content), opened, partial(nullcontext, Path()))
        items = read_calendar(file, opened(), now=self.now)
        yield from within(most_stored_bytes(len(self.content)), parts(items), self.place)


class ReadDav(Struct, frozen=True, kw_only=True, tag=True):
    """Read the answer of a CalDAV server."""

    place: str
    note: bytes = b""
    content: bytes

    def answer(self, state: ParserState) -> Iterator[list[DavPart]]:
        """Return its parts."""
        from headgate.sources.calendar.dav import parts_of  # noqa: PLC0415 - parsers
        from headgate.sources.xml_events import XmlRefused  # noqa: PLC0415 - parsers

        del state
        NOTE.begin(_path(self.note))
        NOTE.read_item(self.place)
        try:
            yield list(parts_of(self.content))
        except XmlRefused as error:
            raise InvalidRequest(str(error)) from None


ParserRequest = OpenFiles | PreviewFiles | ReadFiles | ReadMessage | ReadCalendar | ReadDav
