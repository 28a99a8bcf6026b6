"""Files that are recognised, previewed and read in another process, which may end at any of them.

What ended it becomes a reject, and the rest goes on: a message is left out, any other file is read as far as it could
be. What had been read and not received is read again; what had been received is not given twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

from headgate.errors import InvalidRequest, UpstreamProtocolError
from headgate.home import make_private_directory
from headgate.model.ids import ConnectorKey
from headgate.sources.identity import digest_of
from headgate.sources.importing import ImportJob
from headgate.sources.parser_process import ParserEnded, ParserProcess
from headgate.sources.parser_requests import (
    Cut,
    OpenFiles,
    PlanAnswer,
    PlannedFiles,
    PreviewFiles,
    ReadCalendar,
    ReadDav,
    ReadFiles,
    ReadMessage,
)
from headgate.sources.parts import ImportPart
from headgate.sources.previewing import ImportPlan, ImportPreview, PlannedImport, preview_without_rows
from headgate.sources.protocol import Reject
from headgate.sources.reading_note import ENDED_WITH_PROGRAM, MOST_TRIES, LastRead, last_read


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChoice:
    """What the owner says about files."""

    paths: Sequence[Path]
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
        self._choice = choice
        self._process = ParserProcess()
        #: Files that ended a process while they were recognised, with the reason.
        self._refused: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def plan(self) -> ImportPlan:
        """Recognise what is at the paths.

        Raises:
            InvalidRequest: no source reads any of it, or the corrections do not fit.
            ResourceLimit: an archive unpacks to more than is allowed.
        """
        found = self._planned()
        planned = [self._import(number, one) for number, one in enumerate(found.imports)]
        return ImportPlan(planned, found.unknown, found.has_unreadable)

    def _planned(self) -> PlanAnswer:
        choice = self._choice
        while True:
            request = OpenFiles(
                paths=[os.fsencode(path) for path in choice.paths],
                source=choice.source,
                name=choice.name,
                corrections=None if choice.corrections is None else dict(choice.corrections),
                refused=self._refused,
            )
            try:
                return self._process.one(request, PlanAnswer)
            except ParserEnded as ended:
                file = "" if ended.read is None else ended.read.file
                if not file or file in self._refused:
                    raise InvalidRequest(
                        f"The files cannot be read: {ended.reason}", hint="Import them one by one."
                    ) from None
                self._refused[file] = ended.reason

    def _import(self, number: int, found: PlannedFiles) -> PlannedImport:
        job = ImportJob(
            ConnectorKey(found.connector_key),
            found.display_name,
            found.document,
            partial(self._read, number, found),
            form=found.form,
            total_bytes=found.total_bytes,
            fingerprint=found.fingerprint,
            most_bytes=found.most_bytes,
            end=self._process.close,
        )
        return PlannedImport(found.source, found.files, job, partial(self._preview, number, found))

    def _preview(self, number: int, found: PlannedFiles) -> ImportPreview:
        refused: dict[str, str] = {}
        while True:
            try:
                self._open_again(number, found)
                return self._process.one(PreviewFiles(number=number, refused=refused), ImportPreview)
            except ParserEnded as ended:
                item = "" if ended.read is None else ended.read.item
                if not item or item in refused:
                    place = found.display_name if ended.read is None else ended.read.file
                    return preview_without_rows(found.document, Reject(place, ended.reason))
                refused[item] = ended.reason

    def _read(
        self, number: int, found: PlannedFiles, resume: Mapping[str, Any], form: int
    ) -> Iterator[ImportPart]:
        note = self._note(found)
        run = _FileRun(number, form, dict(resume))
        run.begin(None if note is None else last_read(note))
        try:
            while True:
                try:
                    self._open_again(number, found)
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

    def _open_again(self, number: int, found: PlannedFiles) -> None:
        """Let a process that was started again recognise the same files."""
        if not self._process.is_running:
            again = self._planned().imports
            if number >= len(again) or again[number].fingerprint != found.fingerprint:
                raise InvalidRequest("The files changed while they were read.", hint="Import them again.")

    def _note(self, found: PlannedFiles) -> Path | None:
        directory = self._choice.notes
        if directory is None or found.fingerprint is None:
            return None
        make_private_directory(directory)
        return directory / f"{found.fingerprint[:32]}.note"


@dataclass(slots=True)
class _FileRun:
    """How far the reading of one job is."""

    number: int
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
        """Ask for what has not been received."""
        return ReadFiles(
            number=self.number,
            resume=self.resume,
            form=self.form,
            given=self.given,
            received=self.received,
            cuts=[cut for cut in self.cuts if cut.at >= self.given],
            refused=self.refused,
        )

    def take(self, part: ImportPart) -> None:
        """Count what was received."""
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

    def parts(self, request: ReadMessage | ReadCalendar) -> Iterator[ImportPart]:
        """Return the records of something; a reject in their place if it ended the process."""
        if self._ended_program(request.place):
            yield ImportPart(rejects=[Reject(request.place, ENDED_WITH_PROGRAM)], is_cut=True)
            return
        try:
            yield from self._process.ask(request, ImportPart, self._note)
        except ParserEnded as ended:
            yield ImportPart(rejects=[Reject(request.place, ended.reason)], is_cut=True)

    def one(self, request: ReadDav, answer: type[_T]) -> _T:
        """Read an answer of the server."""
        try:
            return self._process.one(request, answer, self._note)
        except (ParserEnded, InvalidRequest) as error:
            raise UpstreamProtocolError(f"The server's answer: {error}") from None

    def _ended_program(self, place: str) -> bool:
        left = self._left
        return left is not None and left.tries >= MOST_TRIES and left.is_item(place)
