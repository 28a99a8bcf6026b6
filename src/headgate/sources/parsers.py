"""Files that are recognised, previewed and read in another process, which may end at any of them.

What ended it becomes a reject, and the rest goes on: a message is left out, any other file is read as far as it could
be. What had been read and not received is read again; what had been received is not given twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from headgate.errors import InvalidRequest, UpstreamProtocolError
from headgate.home import make_private_directory
from headgate.sources.formats.values import digest_of
from headgate.sources.importing import ImportJob, JobFacts
from headgate.sources.parser_process import ParserEnded, ParserProcess
from headgate.sources.parser_requests import Cut, PlanAnswer, PlanFiles, PlannedFiles, ReadFetched, ReadFiles
from headgate.sources.parts import ImportPart
from headgate.sources.planning import ImportPlan, ImportPreview, PlannedImport, preview_without_rows
from headgate.sources.protocol import Reject
from headgate.sources.reading_note import ENDED_WITH_PROGRAM, MOST_TRIES, LastRead, last_read


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChoice:
    paths: Sequence[Path]
    #: When they were given, in microseconds since 1970.
    given_at: int
    #: The source that reads them; None: the one that recognises them.
    source: str | None = None
    #: The connection's name; None: the source chooses one.
    name: str | None = None
    corrections: Mapping[str, Any] | None = None
    #: The directory for what is being read, from which the next run knows what ended the last one.
    notes: Path | None = None


class FileParser:
    """Reads files in a process for this import alone."""

    def __init__(self, choice: FileChoice) -> None:
        self._notes = choice.notes
        self._process = ParserProcess()
        #: With the files that ended a process while they were recognised.
        self._plan = PlanFiles(
            paths=[os.fsencode(path) for path in choice.paths],
            given_at=choice.given_at,
            source=choice.source,
            name=choice.name,
            corrections=None if choice.corrections is None else dict(choice.corrections),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def answer(self, answers: Mapping[str, bool]) -> None:
        """Have the next plan know the answers to the questions of the last one, by file."""
        self._plan = msgspec.structs.replace(self._plan, answers=dict(answers))

    def plan(self) -> ImportPlan:
        """Recognise what is at the paths.

        Raises:
            InvalidRequest: no source reads any of it, or the corrections do not fit.
            ResourceLimit: an archive unpacks to more than is allowed.
        """
        while True:
            try:
                answer = self._process.one(self._plan, PlanAnswer)
            except ParserEnded as ended:
                file = "" if ended.read is None else ended.read.file
                if not file or file in self._plan.refused:
                    raise InvalidRequest(
                        f"The files cannot be read: {ended.reason}", hint="Import them one by one."
                    ) from None
                refused = {**self._plan.refused, file: ended.reason}
                self._plan = msgspec.structs.replace(self._plan, refused=refused)
            else:
                planned = [self._import(number, files) for number, files in enumerate(answer.imports)]
                return ImportPlan(planned, answer.unknown, answer.has_unreadable)

    def _import(self, number: int, planned: PlannedFiles) -> PlannedImport:
        job = planned.job
        request = ReadFiles(
            plan=self._plan, number=number, fingerprint=job.fingerprint, refused=self._plan.refused
        )
        members = {member.name: getattr(job, member.name) for member in fields(JobFacts)}
        whole = ImportJob(**members, read=partial(self._read, request), end=self._process.close)
        preview = partial(self._preview, request, job)
        return PlannedImport(planned.source, planned.files, whole, preview, planned.questions)

    def _preview(self, request: ReadFiles, job: JobFacts) -> ImportPreview:
        refused = request.refused
        while True:
            request = msgspec.structs.replace(request, is_preview=True, refused=refused)
            try:
                return self._process.one(request, ImportPreview)
            except ParserEnded as ended:
                item = "" if ended.read is None else ended.read.item
                if not item or item in refused:
                    place = job.display_name if ended.read is None else ended.read.file
                    return preview_without_rows(job.document, Reject(place, ended.reason))
                refused = {**refused, item: ended.reason}

    def _read(self, request: ReadFiles, resume: Mapping[str, Any], form: int) -> Iterator[ImportPart]:
        note = self._note(request.fingerprint)
        run = _FileRun(request, form, dict(resume))
        run.begin(None if note is None else last_read(note))
        try:
            while True:
                try:
                    for part in self._process.ask(run.request(), ImportPart, note):
                        run.take(part)
                        yield part
                except ParserEnded as ended:
                    if not run.leave_out(ended):
                        yield ImportPart(failure=ended.reason)
                        return
                else:
                    return
        finally:
            if note is not None:
                note.unlink(missing_ok=True)

    def _note(self, fingerprint: str | None) -> Path | None:
        if self._notes is None or fingerprint is None:
            return None
        make_private_directory(self._notes)
        return self._notes / f"{fingerprint[:32]}.note"


@dataclass(slots=True)
class _FileRun:
    """How far the reading of one job is."""

    planned: ReadFiles
    form: int
    resume: dict[str, Any]
    #: Items that were given before the last mark that was received, and all that were received.
    given: int = 0
    received: int = 0
    cuts: list[Cut] = field(default_factory=list[Cut])
    refused: dict[str, str] = field(default_factory=dict[str, str])

    def begin(self, left: LastRead | None) -> None:
        """Leave out what was being read when the whole program ended, if that happened more than once."""
        if left is not None and left.tries >= MOST_TRIES:
            self.leave_out(ParserEnded(ENDED_WITH_PROGRAM, left._replace(given=0)))

    def request(self) -> ReadFiles:
        return msgspec.structs.replace(
            self.planned,
            resume=self.resume,
            form=self.form,
            given=self.given,
            received=self.received,
            cuts=[cut for cut in self.cuts if cut.at >= self.given],
            refused={**self.planned.refused, **self.refused},
        )

    def take(self, part: ImportPart) -> None:
        self.received += part.item_count
        if part.marks:
            self.given = self.received - part.after_mark
            self.resume |= {name: mark.resume for name, mark in part.marks.items()}

    def leave_out(self, ended: ParserEnded) -> bool:
        """Have the next process leave out what ended the last one; returns whether anything is known of it."""
        read = ended.read
        if read is None:
            return False
        if read.item and read.item not in self.refused:
            self.refused[read.item] = ended.reason
            return True
        if not read.file or any(cut.file == read.file for cut in self.cuts):
            return False
        self.cuts.append(Cut(read.given, read.file, ended.reason))
        return True


_T = TypeVar("_T")


class AccountParser:
    """Reads what is fetched in a process for this run alone, which is started with the first of it."""

    def __init__(self, notes: Path | None, settings: Mapping[str, str]) -> None:
        self._notes = notes
        self._note = None if notes is None else notes / f"{digest_of(sorted(settings.items()))[:32]}.note"
        self._left = None if self._note is None else last_read(self._note)
        self._process = ParserProcess()

    def __enter__(self) -> Self:
        if self._notes is not None:
            make_private_directory(self._notes)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()
        if self._note is not None:
            self._note.unlink(missing_ok=True)

    def parts(self, request: ReadFetched) -> Iterator[ImportPart]:
        """Return the records of something; a reject in their place if it ended the process."""
        if self._ended_program(request.place):
            yield ImportPart(rejects=[Reject(request.place, ENDED_WITH_PROGRAM)], is_cut=True)
            return
        try:
            yield from self._process.ask(request, ImportPart, self._note)
        except ParserEnded as ended:
            yield ImportPart(rejects=[Reject(request.place, ended.reason)], is_cut=True)

    def one(self, request: ReadFetched, answer: type[_T]) -> _T:
        """Read an answer of the server."""
        try:
            return self._process.one(request, answer, self._note)
        except (ParserEnded, InvalidRequest) as error:
            raise UpstreamProtocolError(f"The server's answer: {error}") from None

    def _ended_program(self, place: str) -> bool:
        left = self._left
        return left is not None and left.tries >= MOST_TRIES and left.is_item(place)
