"""The words inside an attachment, for search and for agents: of text, HTML, PDF and Office files.

All of it is bounded: in bytes, pages and characters. A file that cannot be read has no text, and is still stored.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator

from headgate.sources.documents.office import DocumentFacts, DocumentUnreadable, PageText, read_office
from headgate.sources.documents.pdf import read_pdf
from headgate.sources.formats.values import clean
from headgate.sources.formats.xml_events import XmlEnd, xml_events
from headgate.sources.mail.html import text_of_html
from headgate.sources.mail.parsing import decoded

MAX_TEXT_CHARS = 200_000
_MAX_PAGES = 50
_MAX_DOCUMENT_BYTES = 16 * 1024 * 1024
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
_SUFFIXES = {
    "application/pdf": "pdf",
    "text/html": "html",
    f"{_OFFICE}.wordprocessingml.document": "docx",
    f"{_OFFICE}.spreadsheetml.sheet": "xlsx",
    f"{_OFFICE}.presentationml.presentation": "pptx",
    f"{_OPEN}.text": "odt",
    f"{_OPEN}.spreadsheet": "ods",
    f"{_OPEN}.presentation": "odp",
    "application/json": "txt",
    "application/xml": "txt",
    "application/ics": "txt",
}


def text_of(name: str, mime_type: str, content: bytes) -> str | None:
    """Return the text of a file; None if it has none that can be read."""
    reader = _reader(_SUFFIXES.get(mime_type) or name.rpartition(".")[2].lower(), mime_type)
    if reader is None:
        return None
    try:
        text = reader(content)
    except Exception:  # noqa: BLE001 - parsers of foreign files fail in every way
        return None
    return clean(text[:MAX_TEXT_CHARS]).strip() or None


def _reader(suffix: str, mime_type: str) -> Callable[[bytes], str] | None:
    if suffix in {"htm", "html"}:
        return lambda content: "\n\n".join(filter(None, text_of_html(_plain(content))))
    if suffix == "pdf":
        return lambda content: _document(content, read_pdf)
    if suffix == "xlsx":
        return _workbook
    if suffix in {"docx", "pptx", "odt", "ods", "odp"}:
        return lambda content: _document(content, lambda found: read_office(found, f".{suffix}"))
    return _plain if mime_type.startswith("text/") or suffix in {"txt", "md", "csv"} else None


def _plain(content: bytes) -> str:
    # A character has at most four bytes.
    charset = "utf-16" if content[:2] in {b"\xff\xfe", b"\xfe\xff"} else None
    return decoded(content[: 4 * MAX_TEXT_CHARS], charset)


def _document(content: bytes, read: Callable[[bytes], tuple[DocumentFacts, Iterator[PageText]]]) -> str:
    if len(content) > _MAX_DOCUMENT_BYTES:
        return ""
    texts: list[str] = []
    try:
        _, pages = read(content)
        for page in pages:
            texts.append((page.text or "").strip())
            if page.number == _MAX_PAGES or sum(map(len, texts)) > MAX_TEXT_CHARS:
                break
    except DocumentUnreadable:
        pass  # What was read before counts.
    return "\n\n".join(text for text in texts if text)


def _workbook(content: bytes) -> str:
    """Return the texts of the cells; a workbook has each of them once."""
    texts: list[str] = []
    length = 0
    with zipfile.ZipFile(io.BytesIO(content)) as archive, archive.open("xl/sharedStrings.xml") as packed:
        for event in xml_events(io.BytesIO(packed.read(_MAX_DOCUMENT_BYTES))):
            if isinstance(event, XmlEnd) and event.name == "t":
                texts.append(event.text)
                length += len(event.text)
            if length > MAX_TEXT_CHARS:
                break
    return "\n".join(texts)
