"""The text of Word, PowerPoint, OpenDocument and EPUB files (XML inside a zip file), and the pages that every document becomes."""

from __future__ import annotations

import io
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any, cast
from urllib.parse import unquote

from striprtf import striprtf

from headgate.model.instants import instant, iso
from headgate.sources.formats.texts import clean, decode, one_line
from headgate.sources.formats.xml_events import XmlEnd, XmlEvent, XmlRefused, XmlStart, xml_events
from headgate.sources.mail.html import text_of_html

_rtf = cast("Any", striprtf)
_OPEN_TYPE = "application/vnd.oasis.opendocument"
_OFFICE_TYPE = "application/vnd.openxmlformats-officedocument"
#: What documents are called in mail, by the ending of their names.
TYPES = {
    ".pdf": "application/pdf",
    ".docx": f"{_OFFICE_TYPE}.wordprocessingml.document",
    ".pptx": f"{_OFFICE_TYPE}.presentationml.presentation",
    ".odt": f"{_OPEN_TYPE}.text",
    ".odp": f"{_OPEN_TYPE}.presentation",
    ".epub": "application/epub+zip",
    ".rtf": "application/rtf",
}
MAX_PAGES = 5000
#: A page of a file that has no pages; also the most that is read of one that has.
PAGE_CHARS = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
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


#: What the parts of one file may unpack to.
_MAX_UNPACKED = 64 * 1024 * 1024
_MAX_EVENTS = 3_000_000
_MAX_FACTS_BYTES = 1024 * 1024
_MAX_PARTS = 2000
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
    NotImplementedError,
)
_WORD = re.compile(r"word/(?:document\d*|footnotes|endnotes|comments)\.xml")
#: What Word has beside its text stands on pages after it.
_BESIDE_TEXT = {
    "word/footnotes.xml": "Footnotes",
    "word/endnotes.xml": "Endnotes",
    "word/comments.xml": "Comments",
}
#: What costs the parser of RTF a step for each digit of a picture, and time with the square of the links in a line.
_COSTLY = re.compile(rb"[0-9A-F\r\n]{400,}|HYPERLINK", re.IGNORECASE)
_FIELD = re.compile(rb"({\\field)", re.IGNORECASE)
_MAX_RICH_CHARS = 4_000_000
_SLIDE = re.compile(r"ppt/slides/slide\d+\.xml")
_OPEN = re.compile(r"content\.xml")
#: Elements that end a line, in all formats.
_LINES = frozenset({"p", "h", "br", "cr", "line-break", "table-row"})
_SPACES = frozenset({"tab", "s"})
#: Removed text and remarks are not part of the document.
_UNSEEN = frozenset({"tracked-changes", "annotation", "delText", "instrText"})
_FACTS = {
    "title": "title",
    "initial-creator": "author",
    "creator": "author",
    "subject": "subject",
    "created": "created_at",
    "creation-date": "created_at",
    "modified": "modified_at",
    "date": "modified_at",
}


class _LimitedPart:
    """A part of a zip file, up to a number of bytes."""

    def __init__(self, content: IO[bytes], limit: int) -> None:
        self._content = content
        self.left = limit

    def read(self, size: int = -1) -> bytes:
        chunk = self._content.read(size)
        self.left -= len(chunk)
        if self.left < 0:
            raise XmlRefused("It unpacks to more than a document has.")
        return chunk


def read_office(content: bytes, suffix: str) -> tuple[DocumentFacts, Iterator[PageText]]:
    """Open a file; the pages are read one by one.

    Raises:
        DocumentUnreadable: it is no such file.
    """
    try:
        if suffix == ".rtf":
            return DocumentFacts(), _rich_text(content)
        archive = zipfile.ZipFile(io.BytesIO(content))
        facts, parts = _book(archive) if suffix == ".epub" else _parts(archive, suffix)
    except _BROKEN as error:
        raise DocumentUnreadable(f"It is no such document: {type(error).__name__}.") from None
    if not parts or parts[0] in _BESIDE_TEXT:
        raise DocumentUnreadable("It has no text.")
    return _facts(archive, facts), _pages(archive, parts[:_MAX_PARTS], suffix)


def _rich_text(content: bytes) -> Iterator[PageText]:
    plain = _FIELD.sub(rb"\n\1", _COSTLY.sub(b"", content)).decode("cp1252", "replace")
    try:
        text: str = _rtf.rtf_to_text(plain[:_MAX_RICH_CHARS], errors="replace")
    except _BROKEN as error:
        raise DocumentUnreadable(f"It is no such document: {type(error).__name__}.") from None
    pages = PageBuilder()
    yield from chain(pages.add(text), pages.end())
    if len(plain) > _MAX_RICH_CHARS:
        raise DocumentUnreadable(f"Only its first {_MAX_RICH_CHARS} characters are read.")


def _parts(archive: zipfile.ZipFile, suffix: str) -> tuple[str, list[str]]:
    """Name the part with the facts, and those with text in their order."""
    wanted = {".docx": _WORD, ".pptx": _SLIDE}.get(suffix, _OPEN)
    names = archive.namelist()
    facts = "docProps/core.xml" if "docProps/core.xml" in names else "meta.xml"
    parts = filter(wanted.fullmatch, names)
    return facts, sorted(parts, key=lambda name: (name in _BESIDE_TEXT, len(name), name))


def _book(archive: zipfile.ZipFile) -> tuple[str, list[str]]:
    """Name the same parts of a book (EPUB): its package has its facts, and says which parts follow each other."""
    package = _elements(archive, "META-INF/container.xml", "rootfile")[0]["full-path"]
    folder = posixpath.dirname(package)
    files = {item["id"]: unquote(item["href"]) for item in _elements(archive, package, "item")}
    order = (files[item["idref"]] for item in _elements(archive, package, "itemref"))
    return package, [posixpath.join(folder, name) for name in order]


def _elements(archive: zipfile.ZipFile, part: str, name: str) -> list[Mapping[str, str]]:
    with archive.open(part) as packed:
        events = xml_events(io.BytesIO(packed.read(_MAX_FACTS_BYTES)))
        return [event.attributes for event in events if isinstance(event, XmlStart) and event.name == name]


def _pages(archive: zipfile.ZipFile, parts: list[str], suffix: str) -> Iterator[PageText]:
    pages = PageBuilder()
    left = _MAX_UNPACKED
    try:
        for part in parts:
            with archive.open(part) as packed:
                content = _LimitedPart(packed, left)
                if suffix == ".epub":
                    yield from pages.add(text_of_html(decode(content.read(left + 1)))[0])
                else:
                    yield from _marked(pages, content, part, is_open=suffix not in {".docx", ".pptx"})
                left = content.left
            yield from pages.end()
    except DocumentUnreadable:
        raise
    except _BROKEN as error:
        yield from pages.end()
        reason = (
            str(error) if isinstance(error, XmlRefused) else f"The rest is broken: {type(error).__name__}."
        )
        raise DocumentUnreadable(reason) from None


def _marked(pages: PageBuilder, content: _LimitedPart, part: str, *, is_open: bool) -> Iterator[PageText]:
    heading = _BESIDE_TEXT.get(part, "")
    for event in _seen(xml_events(content)):  # pyright: ignore[reportArgumentType] - only read is used
        if heading and isinstance(event, XmlEnd) and event.name == "t":
            yield from pages.add(f"{heading}\n")
            heading = ""
        yield from _take(pages, event, is_open=is_open)


def _seen(events: Iterator[XmlEvent]) -> Iterator[XmlEvent]:
    """Leave out what is inside elements that are not part of the text."""
    hidden = 0
    for count, event in enumerate(events):
        if count > _MAX_EVENTS:
            raise XmlRefused("It has more elements than a document has.")
        if isinstance(event, XmlStart) and (hidden or event.name in _UNSEEN):
            hidden += 1
        elif hidden:
            hidden -= isinstance(event, XmlEnd)
        else:
            yield event


def _take(pages: PageBuilder, event: XmlEvent, *, is_open: bool) -> Iterator[PageText]:
    if isinstance(event, XmlStart):
        is_break = event.name in {"lastRenderedPageBreak", "soft-page-break"}
        if is_break or (event.name == "br" and event.attributes.get("type") == "page"):
            yield from pages.end()
        elif event.name in _SPACES:
            yield from pages.add(" ")
    elif isinstance(event, XmlEnd):
        # In Word only runs of text hold text; in OpenDocument it stands between any elements.
        if event.name == "t" or (is_open and event.text.strip()):
            yield from pages.add(event.text)
        if event.name in _LINES:
            yield from pages.add("\n")
        elif is_open and event.name == "page":
            yield from pages.end()
    elif is_open and event.text.strip():
        yield from pages.add(event.text)


def _facts(archive: zipfile.ZipFile, name: str) -> DocumentFacts:
    properties: dict[str, str | None] = {}
    try:
        with archive.open(name) as packed:
            for event in xml_events(io.BytesIO(packed.read(_MAX_FACTS_BYTES))):
                if isinstance(event, XmlEnd) and event.name in _FACTS:
                    properties.setdefault(_FACTS[event.name], one_line(event.text, 1000))
    except _BROKEN:
        pass  # Without its properties a document is still one.
    times = {name: _time(properties.pop(name, None)) for name in ("created_at", "modified_at")}
    return DocumentFacts(**properties, **times)


def _time(text: str | None) -> str | None:
    at = instant(text) if text else None
    return None if at is None else iso(at)
