"""What every kind of document becomes: its properties, and its text page by page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.sources.texts import clean

MAX_PAGES = 5000
#: A page of a file that has no pages; also the most that is read of one that has.
PAGE_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What a document says of itself."""

    title: str | None = None
    author: str | None = None
    subject: str | None = None
    created_at: str | None = None
    modified_at: str | None = None


@dataclass(frozen=True, slots=True)
class PageText:
    """The text of one page; `problem` if it cannot be read."""

    number: int
    text: str | None
    problem: str | None = None


class DocumentUnreadable(ValueError):
    """A document, or the rest of it, cannot be read."""


class PageBuilder:
    """Puts pieces of text together to pages."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._chars = 0
        self._number = 0

    def add(self, text: str) -> Iterator[PageText]:
        """Add text; gives the page before it if that is full."""
        for at in range(0, len(text), PAGE_CHARS):
            piece = text[at : at + PAGE_CHARS]
            if self._chars + len(piece) > PAGE_CHARS:
                yield from self.end()
            self._pieces.append(piece)
            self._chars += len(piece)

    def end(self) -> Iterator[PageText]:
        """End the page; one without text is left out."""
        text = clean("".join(self._pieces))
        self._pieces, self._chars = [], 0
        if text is not None:
            self._number += 1
            if self._number > MAX_PAGES:
                raise DocumentUnreadable(f"Only its first {MAX_PAGES} pages are read.")
            yield PageText(self._number, text)
