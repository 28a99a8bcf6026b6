"""The text of PDF files."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, cast

from headgate.sources.documents.office import (
    MAX_PAGES,
    PAGE_CHARS,
    DocumentFacts,
    DocumentUnreadable,
    PageText,
)
from headgate.sources.formats.json_values import list_of
from headgate.sources.formats.texts import clean, one_line

#: Drawing instructions of one page, and of all pages together: a page of text has some thousand.
_MAX_CONTENT_BYTES = 2 * 1024 * 1024
_MAX_ALL_CONTENT_BYTES = 64 * 1024 * 1024
#: How many instructions are followed on one page, and on all: one page may draw another one many times.
_MAX_PAGE_STEPS = 200_000
_MAX_ALL_STEPS = 4_000_000
#: Ways to write a stream that hardly make it smaller. What unpacks may stand behind them, and nothing behind that: the
#: parser bounds what it unpacks, and not what another way makes of it.
_PLAIN_FILTERS = frozenset({"/ASCII85Decode", "/A85", "/ASCIIHexDecode", "/AHx"})


def read_pdf(content: bytes) -> tuple[DocumentFacts, Iterator[PageText]]:
    """Open a file; the pages are read one by one.

    Raises:
        DocumentUnreadable: it is no PDF, or it needs a password.
    """
    from pypdf import PdfReader  # noqa: PLC0415 - slow to import, and few imports need it

    # What it mends as it reads is nothing that a person could act on.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)

    try:
        reader = PdfReader(io.BytesIO(content))
        is_open = not reader.is_encrypted or bool(reader.decrypt(""))
        count = len(reader.pages) if is_open else 0
    except Exception as error:  # noqa: BLE001 - a parser of foreign files fails in every way
        raise DocumentUnreadable(f"Its text cannot be read: {type(error).__name__}.") from None
    if not count:
        raise DocumentUnreadable("It has no pages." if is_open else "It needs a password.")
    return _facts(reader), _pages(reader, count)


def _pages(reader: Any, count: int) -> Iterator[PageText]:
    left, steps = _MAX_ALL_CONTENT_BYTES, _Steps()
    for number in range(1, min(count, MAX_PAGES) + 1):
        size = 0
        try:
            page = reader.pages[number - 1]
            size = _content_bytes(page)
            text = _page_text(page, steps) if size <= _MAX_CONTENT_BYTES else None
        except _TooManySteps:
            yield PageText(number, None, "The page is too large.")
            left -= size
        except Exception as error:  # noqa: BLE001 - the same as above
            yield PageText(number, None, f"The page cannot be read: {type(error).__name__}.")
        else:
            yield PageText(number, text, None if size <= _MAX_CONTENT_BYTES else "The page is too large.")
            left -= size
        if left < 0 or steps.total > _MAX_ALL_STEPS:
            raise DocumentUnreadable("It is too large to be read further.")
    if count > MAX_PAGES:
        raise DocumentUnreadable(f"Only its first {MAX_PAGES} pages are read.")


class _TooManySteps(Exception):
    """A page has more instructions than are followed."""


class _Steps:
    """Counts the instructions that the parser follows."""

    def __init__(self) -> None:
        self.total = 0
        self._page_end = 0

    def begin_page(self) -> None:
        self._page_end = self.total + _MAX_PAGE_STEPS

    def count(self, *_instruction: object) -> None:
        """Be called by the parser before each instruction; what is raised ends it."""
        self.total += 1
        if self.total > self._page_end:
            raise _TooManySteps


def _page_text(page: Any, steps: _Steps) -> str | None:
    steps.begin_page()
    return clean(page.extract_text(visitor_operand_before=steps.count)[:PAGE_CHARS])


def _content_bytes(page: Any) -> int:
    if not all(map(_is_bounded, _streams(page.get("/Contents")))):
        return _MAX_CONTENT_BYTES + 1
    contents = page.get_contents()
    return 0 if contents is None else len(contents.get_data())


def _streams(contents: Any) -> list[Any]:
    resolved = None if contents is None else contents.get_object()
    return [stream.get_object() for stream in list_of(resolved)] or [resolved]


def _is_bounded(stream: Any) -> bool:
    filters = cast("dict[str, Any]", stream).get("/Filter") if isinstance(stream, dict) else None
    written = list_of(None if filters is None else filters.get_object())
    return _PLAIN_FILTERS.issuperset(str(name) for name in written[:-1])


def _facts(reader: Any) -> DocumentFacts:
    try:
        metadata = reader.metadata
        return DocumentFacts(
            title=one_line(_text(metadata.title), 300),
            author=one_line(_text(metadata.author), 300),
            subject=one_line(_text(metadata.subject), 1000),
            created_at=_iso(metadata.creation_date),
            modified_at=_iso(metadata.modification_date),
        )
    except Exception:  # noqa: BLE001 - without its properties a document is still one
        return DocumentFacts()


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _iso(value: object) -> str | None:
    if not isinstance(value, datetime):
        return None
    zoned = value if value.tzinfo else value.replace(tzinfo=UTC)
    return zoned.astimezone(UTC).isoformat()
