"""Documents as a source: each file is a document, named after its path, with its pages as children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import IO, Any

from headgate.model.instants import iso
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.documents.office import TYPES, DocumentFacts, DocumentUnreadable, PageText, read_office
from headgate.sources.documents.pdf import read_pdf
from headgate.sources.file_source import FileSource
from headgate.sources.formats.texts import clean, one_line
from headgate.sources.formats.values import id_of, path_key, without_empty
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Attachment, Reject, Row

MAX_FILE_BYTES = 64 * 1024 * 1024
_BEGINNING_CHARS = 500
_DOCUMENTS = StreamSpec(
    name="documents",
    label="Documents",
    detail="A PDF, Word or OpenDocument file: its title, its author, its beginning and the file itself.",
    fields=fields(
        "id title author subject beginning folder kind page_count:integer size_bytes:integer created_at:time "
        "modified_at:time file:file"
    ),
    time="modified_at",
    times="UTC",
    title="title",
    words=("title", "author", "subject", "beginning"),
    groups=("folder", "kind", "author"),
    views=(
        (
            "titles",
            "Titles and authors without text and files",
            ("id", "title", "author", "kind", "page_count", "modified_at"),
        ),
    ),
    children=(("pages", "document_id"),),
)
_PAGES = StreamSpec(
    name="pages",
    label="Pages",
    detail="The text of one page of a document.",
    fields=fields("id document_id title number:integer text modified_at:time"),
    time="modified_at",
    times="UTC",
    title="title",
    words=("title", "text"),
    groups=("document_id",),
)


def _is_document(file: InputFile) -> bool:
    if file.suffix == ".pdf":
        return b"%PDF-" in file.head[:1024]
    return file.suffix in TYPES and file.head.startswith(
        b"{\\rtf" if file.suffix == ".rtf" else b"PK\x03\x04"
    )


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    raw = content.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        yield Reject(file.name, f"A document may have at most {MAX_FILE_BYTES} bytes.")
        return
    try:
        facts, pages = read_pdf(raw) if file.suffix == ".pdf" else read_office(raw, file.suffix)
    except DocumentUnreadable as error:
        yield Reject(file.name, str(error))
        facts, pages = DocumentFacts(), iter(())
    yield from _document(file, raw, facts, pages)


def _document(
    file: InputFile, raw: bytes, facts: DocumentFacts, pages: Iterator[PageText]
) -> Iterator[Row | Reject]:
    data = _about(file, facts)
    count, beginning = 0, None
    try:
        for page in pages:
            count = page.number
            beginning = beginning or one_line(page.text, _BEGINNING_CHARS)
            place = f"{file.name}, page {page.number}"
            if page.problem is not None:
                yield Reject(place, page.problem)
            elif page.text is not None:
                yield Row("pages", _page(data, page), place=place)
    except DocumentUnreadable as error:
        yield Reject(file.name, str(error))
    whole = without_empty({**data, "page_count": count, "size_bytes": len(raw), "beginning": beginning})
    yield Row("documents", whole, {"file": Attachment(raw, TYPES[file.suffix])}, file.name)


def _about(file: InputFile, facts: DocumentFacts) -> dict[str, Any]:
    folder = PurePosixPath(file.name).parent.as_posix()
    file_time = None if file.modified_at is None else iso(file.modified_at)
    return {
        "id": id_of(file.name),
        "title": facts.title or clean(file.stem) or file.suffix,
        "author": facts.author,
        "subject": facts.subject,
        "folder": None if folder == "." else clean(folder),
        "kind": file.suffix.removeprefix("."),
        "created_at": facts.created_at,
        "modified_at": facts.modified_at or facts.created_at or file_time,
    }


def _page(document: Mapping[str, Any], page: PageText) -> dict[str, Any]:
    return without_empty(
        {
            "id": f"{document['id']}#{page.number}",
            "document_id": document["id"],
            "title": f"{document['title']}, page {page.number}",
            "number": page.number,
            "text": page.text,
            "modified_at": document["modified_at"],
        }
    )


class DocumentsSource(FileSource):
    """PDF and office files, and their pages."""

    def plain(self, row: Row) -> Row:
        """Name a document by the words of its file's name, not by its path."""
        path: str = row.data.get("document_id", row.data["id"])
        key = path_key(path, ".pdf")
        # The id of a page ends in its number.
        ids = {"id": key + row.data["id"].removeprefix(path)}
        return replace(
            row, data={**row.data, **ids, **({"document_id": key} if row.stream == "pages" else {})}
        )


DOCUMENTS = DocumentsSource(
    "documents", "Documents", (_DOCUMENTS, _PAGES), _is_document, _read, older_title="Documents", plain_form=2
)
