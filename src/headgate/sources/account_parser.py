"""What an account delivers, read in another process, which may end at any of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Self, TypeVar

from headgate.errors import InvalidRequest, UpstreamProtocolError
from headgate.home import make_private_directory
from headgate.sources.identity import digest_of
from headgate.sources.parser_process import ParserEnded, ParserProcess
from headgate.sources.parser_requests import ReadCalendar, ReadDav, ReadMessage
from headgate.sources.parts import ImportPart
from headgate.sources.protocol import Reject
from headgate.sources.reading_note import ENDED_WITH_PROGRAM, MOST_TRIES, last_read

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
        """Read an answer of the server.

        Raises:
            UpstreamProtocolError: it cannot be read.
        """
        try:
            return self._process.one(request, answer, self._note)
        except (ParserEnded, InvalidRequest) as error:
            raise UpstreamProtocolError(f"The server's answer: {error}") from None

    def _ended_program(self, place: str) -> bool:
        left = self._left
        return left is not None and left.tries >= MOST_TRIES and left.is_item(place)
