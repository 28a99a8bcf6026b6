"""Notes as a source: each file is a note, named after its path."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, time
from html import unescape
from pathlib import PurePosixPath
from typing import IO, Any, cast

import yaml

from headgate.model.instants import instant, iso
from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.file_source import read_each
from headgate.sources.formats.texts import clean, decode, one_line
from headgate.sources.formats.values import id_of, path_key
from headgate.sources.inputs.tree import InputFile, InputTree, bare_label, connection_title
from headgate.sources.mail.html import text_of_html
from headgate.sources.note_exports import program_of, read_evernote, read_keep
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row, Source
from headgate.sources.unknown import copied_page

NOTE_STREAM = StreamSpec(
    name="notes",
    label="Notes",
    detail="One note: a Markdown, text or HTML file with its tags and the notes it links to.",
    fields=fields(
        "id title text folder kind author tags:list links:list created_at:time modified_at:time properties:object"
    ),
    time="modified_at",
    title="title",
    words=("title", "text", "author"),
    groups=("folder", "kind", "author"),
    views=(
        (
            "titles",
            "Titles, folders and tags without the text",
            ("id", "title", "folder", "tags", "modified_at"),
        ),
        ("texts", "The notes without their properties", ("id", "title", "text", "folder", "modified_at")),
    ),
)


_TITLE = re.compile(r"<title[^<>]*>([^<]*)", re.IGNORECASE)
_HTML_HEADING = re.compile(r"<h1[^<>]*>([^<]*)", re.IGNORECASE)


def title_and_text(html: str) -> tuple[str | None, str]:
    """Return the title, if the page has one, and the text line by line."""
    match = _TITLE.search(html) or _HTML_HEADING.search(html)
    text = "\n\n".join(part for part in text_of_html(html) if part)
    return (unescape(match[1]) if match else None), text


_MAX_CHARS = 64 * 1024
_MAX_DEPTH = 16
_MAX_EVENTS = 20_000
_MAX_MEMBERS = 200
#: What begins a level inside a line. Ordinary properties have few, and need not be parsed twice.
_NESTING = ("[", "{", "- ", "-\t", "? ", "?\t")
_MANY_SIGNS = 100
_MAX_INTEGER = 2**63 - 1
_FENCED = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^\1[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class FrontMatterRefused(ValueError):
    """What stands before a note is not what it looks like."""


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the properties and the text after them.

    Raises:
        FrontMatterRefused: the properties cannot be read.
    """
    if not text.startswith(("---", "+++")):
        return {}, text
    match = _FENCED.match(text[:_MAX_CHARS])
    if match is None:
        return {}, text
    loaded = _toml(match[2]) if match[1] == "+++" else _yaml(match[2])
    if not isinstance(loaded, Mapping):
        # A line of dashes is also a rule, and the text after it is prose.
        return {}, text
    plain = cast("dict[str, Any]", _plain(loaded, _MAX_DEPTH))
    return plain, text[match.end() :]


def _toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        raise FrontMatterRefused("Its properties are not TOML.") from None


def _yaml(text: str) -> Any:
    try:
        if "*" in text or sum(text.count(sign) for sign in _NESTING) > _MANY_SIGNS:
            _refuse_bombs(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError, TypeError, AttributeError, KeyError):
        raise FrontMatterRefused("Its properties are not YAML that can be read.") from None


def _refuse_bombs(text: str) -> None:
    """Refuse aliases, by which a few lines become any number of values, and depth."""
    depth = 0
    for count, event in enumerate(cast("Any", yaml).parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if isinstance(event, yaml.AliasEvent) or depth > _MAX_DEPTH or count > _MAX_EVENTS:
            raise FrontMatterRefused


def _plain(value: Any, left: int) -> Any:
    """Write a value of YAML or TOML as one of JSON that can be stored; None if there is none."""
    if left > 0 and isinstance(value, Mapping):
        members = list(cast("Mapping[Any, Any]", value).items())[:_MAX_MEMBERS]
        return {clean(str(key), 200) or "": _plain(member, left - 1) for key, member in members}
    if left > 0 and isinstance(value, list | set | tuple):
        return [_plain(member, left - 1) for member in list(cast("list[Any]", value))[:_MAX_MEMBERS]]
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value, _MAX_CHARS)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    is_number = isinstance(value, int | float) and math.isfinite(value) and abs(value) <= _MAX_INTEGER
    return value if is_number else None


MAX_NOTE_BYTES = 4 * 1024 * 1024
_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd"})
_HTML = frozenset({".html", ".htm", ".xhtml"})
_NOTES = _MARKDOWN | _HTML | {".txt", ".text"}
#: What lies beside notes: pictures, recordings, documents and tables, but no other program's data.
_BESIDE = frozenset(
    {".pdf", ".docx", ".odt", ".rtf", ".epub", ".pptx", ".odp", ".csv", ".tsv", ".xls", ".xlsx", ".ods"}
    | {".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".heic", ".bmp", ".tif", ".tiff", ".avif"}
    | {".mp3", ".m4a", ".mp4", ".wav", ".ogg", ".opus", ".flac", ".mov", ".webm", ".css", ".js", ".canvas"}
)
_MAX_LISTED = 200
_MAX_TITLE = 300
_FENCED_CODE = re.compile(r"```.*?```|~~~.*?~~~|`[^`\n]*`", re.DOTALL)
_TAG = re.compile(r"(?<![\w/&#\[(])#([^\W\d][\w/-]{0,99})")
_WIKI_LINK = re.compile(r"\[\[([^\[\]\n|#]{1,300})")
_NOTE_LINK = re.compile(r"\]\(<?([^()<>\s]{1,300}\.(?:md|markdown))(?:#[^()\s]{0,300})?>?\)")
_CREATED = ("created", "created_at", "date", "date_created", "creation_date")
_MODIFIED = ("modified", "modified_at", "updated", "updated_at", "lastmod", "last_modified", "date_modified")


class NotesSource(Source):
    """Markdown, text and HTML files."""

    name = "notes"
    title = "Notes"
    streams = (NOTE_STREAM,)
    plain_form = 2

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Take every note; text and HTML only where no other program's data lies beside them."""
        exports: dict[str, list[InputFile]] = {}
        for file in tree.files:
            if program := program_of(file):
                exports.setdefault(program, []).append(file)
        is_folder_of_notes = all(file.suffix in _NOTES | _BESIDE for file in tree.files)
        wanted = _NOTES if is_folder_of_notes else _MARKDOWN
        files = [file for file in tree.files if file.suffix in wanted and not copied_page(file)]
        has_markdown = any(file.suffix in _MARKDOWN for file in files)
        certainty = Certainty.FORMAT if has_markdown else Certainty.GENERIC
        found = [
            Recognised(self.name, program, its, Certainty.EXPORT, form=self.plain_form)
            for program, its in exports.items()
        ]
        if files:
            title, older = connection_title(self.title, bare_label(tree.label)), f"Notes {tree.label}"
            form = self.plain_form
            found.append(Recognised(self.name, title, files, certainty, older_titles=(older,), form=form))
        return found

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, _read)

    def plain(self, row: Row) -> Row:
        """Name a note by the words of its file's name, not by its path."""
        return replace(row, data={**row.data, "id": path_key(row.data["id"], ".md")})


NOTES = NotesSource()


def _read(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    if (program := program_of(file)) is not None:
        yield from (read_keep if program == "Google Keep" else read_evernote)(file, content)
        return
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
    """Return the heading that a text begins with: one further down is the title of a part."""
    fence = _FENCED.match(text[:_MAX_CHARS])
    text = text[fence.end() :] if fence else text
    first, under, *_ = [*text[:20_000].lstrip().split("\n", 2), "", ""]
    if first[:2] in {"# ", "#\t"}:
        line = first[2:].strip()
        bare = line.rstrip("#")
        return line if bare[-1:].strip() else bare.strip()
    return first if first[:1] not in {"#", ">", "-"} and under.strip() and not under.strip(" \t=") else None


def _author(properties: Mapping[str, Any]) -> str | None:
    names = _words(properties.get("author"), separator=None) or _words(
        properties.get("authors"), separator=None
    )
    return one_line(", ".join(names), _MAX_TITLE)


def _words(value: Any, separator: str | None = r"[,\s]+") -> list[str]:
    if isinstance(value, str):
        return re.split(separator, value) if separator else [value]
    values = cast("list[Any]", value) if isinstance(value, list) else []
    return [word for word in values if isinstance(word, str)]


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
