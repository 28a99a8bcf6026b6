"""Notes as a source: each file is a note, named by its path."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import IO, Any, cast

from headgate.model.instants import instant, iso
from headgate.sources.cleaning import id_of
from headgate.sources.declaring import declaration
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.notes.front_matter import FrontMatterRefused, split_front_matter
from headgate.sources.notes.html_text import title_and_text
from headgate.sources.notes.shape import NOTE_STREAM
from headgate.sources.per_file import read_each
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row
from headgate.sources.texts import clean, decode, one_line

MAX_NOTE_BYTES = 4 * 1024 * 1024
_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_HTML = frozenset({".html", ".htm", ".xhtml"})
_NOTES = _MARKDOWN | _HTML | {".txt", ".text"}
#: What lies beside notes: pictures, recordings and documents, but no other program's data.
_BESIDE = frozenset(
    [
        ".pdf",
        ".docx",
        ".odt",
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".svg",
        ".webp",
        ".heic",
        ".mp3",
        ".m4a",
        ".mp4",
        ".wav",
        ".css",
        ".js",
        ".canvas",
    ]
)
_MAX_LISTED = 200
_MAX_TITLE = 300
_FENCED_CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]*`", re.DOTALL)
_TAG = re.compile(r"(?<![\w/&#\[(])#([^\W\d][\w/-]{0,99})")
_WIKI_LINK = re.compile(r"\[\[([^\[\]\n|#]{1,300})")
_NOTE_LINK = re.compile(r"\]\(<?([^()<>\s]{1,300}\.(?:md|markdown))(?:#[^()\s]{0,300})?>?\)")
_HEADING = re.compile(r"^#{1,6}[ \t]+(.+?)[ \t]*#*$|^([^\n#>\-\s][^\n]*)\n=+[ \t]*$", re.MULTILINE)
_CREATED = ("created", "created_at", "date", "date_created", "creation_date")
_MODIFIED = ("modified", "modified_at", "updated", "updated_at", "lastmod", "last_modified", "date_modified")


class NotesSource:
    """Markdown, text and HTML files."""

    name = "notes"
    title = "Notes"

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Take every note; text and HTML only where no other program's data lies beside them."""
        is_folder_of_notes = all(file.suffix in _NOTES | _BESIDE for file in tree.files)
        wanted = _NOTES if is_folder_of_notes else _MARKDOWN
        files = [file for file in tree.files if file.suffix in wanted]
        if not files:
            return []
        has_markdown = any(file.suffix in _MARKDOWN for file in files)
        certainty = Certainty.FORMAT if has_markdown else Certainty.GENERIC
        return [Recognised(self.name, f"Notes {tree.label}", files, certainty)]

    def declare(self, found: Recognised) -> Mapping[str, Any]:
        """Declare one stream."""
        del found
        return declaration("notes", "Notes", [NOTE_STREAM])

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        """Read one note after the other."""
        return read_each(found, resume, _read)


NOTES = NotesSource()


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    raw = content.read(MAX_NOTE_BYTES + 1)
    if len(raw) > MAX_NOTE_BYTES:
        yield Reject(file.name, f"Only its first {MAX_NOTE_BYTES} bytes are read.")
    text = decode(raw[:MAX_NOTE_BYTES])
    kind = "markdown" if file.suffix in _MARKDOWN else "html" if file.suffix in _HTML else "text"
    properties: dict[str, Any] = {}
    title: str | None = None
    if kind == "html":
        title, text = title_and_text(text)
    elif kind == "markdown":
        try:
            properties, text = split_front_matter(text)
        except FrontMatterRefused as error:
            yield Reject(file.name, str(error) or "Its properties refer to each other or nest too deep.")
        title = _heading(text)
    yield Row("notes", _note(file, kind, title, text, properties), place=file.name)


def _note(
    file: InputFile, kind: str, title: str | None, text: str, properties: dict[str, Any]
) -> dict[str, Any]:
    plain = _FENCED_CODE.sub("", text) if kind == "markdown" else ""
    created, modified = _time(properties, _CREATED), _time(properties, _MODIFIED)
    file_time = None if file.modified_at is None else iso(file.modified_at)
    folder = PurePosixPath(file.name).parent.as_posix()
    links = _WIKI_LINK.findall(plain) + _NOTE_LINK.findall(plain)
    own_title = properties.get("title")
    data = {
        "id": id_of(file.name),
        "title": one_line(own_title if isinstance(own_title, str) else title, _MAX_TITLE) or clean(file.stem),
        "text": clean(text),
        "folder": None if folder == "." else clean(folder),
        "kind": kind,
        "author": _author(properties),
        "tags": _listed(
            [*_words(properties.get("tags")), *_words(properties.get("tag")), *_TAG.findall(plain)]
        ),
        "links": _listed(links),
        "created_at": created,
        "modified_at": modified or created or file_time,
        "properties": properties or None,
    }
    return {name: value for name, value in data.items() if value is not None}


def _heading(text: str) -> str | None:
    found = _HEADING.search(_FENCED_CODE.sub("", text[:20_000]))
    return (found[1] or found[2]) if found else None


def _author(properties: Mapping[str, Any]) -> str | None:
    names = _words(properties.get("author"), separator=None) or _words(
        properties.get("authors"), separator=None
    )
    return one_line(", ".join(names), _MAX_TITLE)


def _words(value: Any, separator: str | None = r"[,\s]+") -> list[str]:
    if isinstance(value, str):
        return re.split(separator, value) if separator else [value]
    values = cast("list[Any]", value) if isinstance(value, list) else []
    return [one for one in values if isinstance(one, str)]


def _listed(words: Sequence[str]) -> list[str] | None:
    cleaned = (clean(word.lstrip("#"), _MAX_TITLE) for word in words)
    return list(dict.fromkeys(word for word in cleaned if word))[:_MAX_LISTED] or None


def _time(properties: Mapping[str, Any], names: Sequence[str]) -> str | None:
    for name in names:
        value = properties.get(name)
        at = instant(value.strip()) if isinstance(value, str) else None
        if at is not None:
            return iso(at)
    return None
