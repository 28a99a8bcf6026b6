"""What a process that parses can be asked: a closed set of requests, each with the code that answers it there.

The parsers are imported by the answers, so that the process that asks does without them.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from headgate.errors import InvalidRequest
from headgate.sources.importing import ImportJob, JobFacts
from headgate.sources.inputs.tree import InputFile
from headgate.sources.parts import ImportPart, most_stored_bytes, parts, within
from headgate.sources.planning import ImportPlan, ImportPreview, plan_imports, preview
from headgate.sources.protocol import FileQuestion, Item, Mark, Reject, Row
from headgate.sources.reading_note import NOTE

if TYPE_CHECKING:
    from headgate.sources.dav import DavPart
    from headgate.sources.mail.rows import MailRows


class PlannedFiles(msgspec.Struct, frozen=True):
    """What one import of a plan would read, for the process that asked."""

    source: str
    files: list[str]
    job: JobFacts
    questions: list[FileQuestion]


class PlanAnswer(msgspec.Struct, frozen=True):
    """A plan, for the process that asked."""

    imports: list[PlannedFiles]
    unknown: list[str]
    has_unreadable: bool


class ParserState:
    """What the process remembers between requests."""

    def __init__(self) -> None:
        self._files = ExitStack()
        self._planned: PlanFiles | None = None
        self._plan: ImportPlan | None = None
        self.mail: MailRows | None = None

    def plan(self, request: PlanFiles) -> ImportPlan:
        """Plan an import, unless it is the one that was planned last; its files stay open."""
        from headgate.sources.inputs.archives import opened_tree  # noqa: PLC0415 - parsers
        from headgate.sources.registry import chosen_sources  # noqa: PLC0415 - parsers

        if self._plan is None or self._planned != request:
            paths = [Path(os.fsdecode(path)) for path in request.paths]
            opened = [self._files.enter_context(opened_tree(path)) for path in paths]
            trees = [replace(tree, given_at=request.given_at) for tree in opened]
            among = chosen_sources(request.source)
            self._plan = plan_imports(
                trees, among, name=request.name, corrections=request.corrections, answers=request.answers
            )
            self._planned = request
        return self._plan


class PlanFiles(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Recognise what is at some paths."""

    paths: list[bytes]
    given_at: int
    source: str | None = None
    name: str | None = None
    corrections: dict[str, Any] | None = None
    #: To the questions of an earlier plan, by file.
    answers: dict[str, bool] = {}
    #: Files, or messages in them, that ended a process before, with the reason.
    refused: dict[str, str] = {}

    def answer(self, state: ParserState) -> Iterator[PlanAnswer]:
        plan = state.plan(self)
        imports = [
            PlannedFiles(
                planned.source,
                list(planned.files),
                msgspec.convert(planned.job, JobFacts, from_attributes=True),
                list(planned.questions),
            )
            for planned in plan.imports
        ]
        yield PlanAnswer(imports, list(plan.unknown), plan.has_unreadable)


class Cut(msgspec.Struct, frozen=True):
    """A file that is not read further than to a number of items, because it ends the process there."""

    at: int
    file: str
    reason: str


class ReadFiles(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read the files of one import of a plan, or only their beginning."""

    plan: PlanFiles
    number: int
    fingerprint: str | None
    is_preview: bool = False
    refused: dict[str, str]
    resume: dict[str, Any] = {}
    form: int = 1
    #: How many items were given before the marks in `resume`, and how many were received: these are not given again.
    given: int = 0
    received: int = 0
    cuts: list[Cut] = []

    def answer(self, state: ParserState) -> Iterator[ImportPart | ImportPreview]:
        imports = state.plan(self.plan).imports
        if self.number >= len(imports) or imports[self.number].job.fingerprint != self.fingerprint:
            raise InvalidRequest("The files changed while they were read.", hint="Import them again.")
        job = imports[self.number].job
        if self.is_preview:
            yield preview(job)
        else:
            yield from parts(self._items(job))

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


class ReadFetched(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Read what was fetched from an account: a message, an iCalendar or vCard file, or the answer of a server of these."""

    kind: Literal["message", "calendar", "contacts", "dav"]
    place: str
    content: bytes
    #: Of a message the members of `MailState` beside the place; of a file its name, and the time of the run.
    facts: dict[str, Any] = {}
    refused: dict[str, str] = {}

    def answer(self, state: ParserState) -> Iterator[ImportPart | list[DavPart]]:
        if self.kind == "dav":
            yield self._dav_parts()
            return
        items = self._message(state) if self.kind == "message" else self._file()
        yield from within(most_stored_bytes(len(self.content)), parts(items), self.place)

    def _message(self, state: ParserState) -> Iterator[Row | Reject]:
        from headgate.sources.mail.rows import MailRows, MailState  # noqa: PLC0415 - parsers

        state.mail = state.mail or MailRows()
        return state.mail.of(self.content, MailState(self.place, **self.facts))

    def _file(self) -> Iterator[Row | Reject]:
        from headgate.sources.calendar.source import read_calendar  # noqa: PLC0415 - parsers
        from headgate.sources.contacts import read_cards  # noqa: PLC0415 - parsers

        NOTE.read_item(self.place)
        opened = partial(io.BytesIO, self.content)
        file = InputFile(self.facts["name"], len(self.content), opened, partial(nullcontext, Path()))
        if self.kind == "contacts":
            return read_cards(file, opened())
        return read_calendar(file, opened(), now=datetime.fromisoformat(self.facts["now"]))

    def _dav_parts(self) -> list[DavPart]:
        from headgate.sources.dav import parts_of  # noqa: PLC0415 - parsers
        from headgate.sources.formats.xml_events import XmlRefused  # noqa: PLC0415 - parsers

        NOTE.read_item(self.place)
        try:
            return list(parts_of(self.content))
        except XmlRefused as error:
            raise InvalidRequest(str(error)) from None


ParserRequest = PlanFiles | ReadFiles | ReadFetched
