"""Notes as other programs export them: Google Keep (a JSON file for each) and Evernote (`.enex`, many in a file)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Any

from headgate.sources.formats.json_values import json_values, object_of, objects_of
from headgate.sources.formats.texts import MAX_TEXT, clean, one_line
from headgate.sources.formats.values import RowKeys, integer_of, iso_of, iso_us, text_of, without_empty
from headgate.sources.formats.xml_events import XmlEnd, XmlRefused, xml_events
from headgate.sources.inputs.tree import InputFile
from headgate.sources.mail.html import text_of_html
from headgate.sources.protocol import Reject, Row

_STATES = ("color", "isPinned", "isArchived", "isTrashed")
_EVERNOTE = frozenset({"title", "content", "created", "updated", "author", "source-url"})
_TO_DO = re.compile(r"<en-todo\b([^<>]{0,100})>")


def program_of(file: InputFile) -> str | None:
    """Return which program exported a file of notes; None if none that is known here."""
    if file.suffix == ".enex" and b"<en-export" in file.head:
        return "Evernote"
    is_keep = file.suffix == ".json" and b'"isTrashed"' in file.head and b'"isArchived"' in file.head
    return "Google Keep" if is_keep else None


def read_keep(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    for entry in json_values(content, frozenset({""})):
        note = object_of(entry.value)
        if entry.problem or not note:
            yield Reject(file.name, entry.problem or "It is no note.")
            continue
        items = [
            f"[{'x' if item.get('isChecked') is True else ' '}] {item.get('text') or ''}"
            for item in objects_of(note.get("listContent"))
        ]
        text = clean("\n".join([text_of(note.get("textContent")) or "", *items]))
        times = [iso_us(integer_of(note.get(f"{name}TimestampUsec"))) for name in ("created", "userEdited")]
        data = {
            "id": f"keep/{file.stem}",
            "title": one_line(text_of(note.get("title")), 300) or one_line(text, 80) or clean(file.stem),
            "text": text,
            "kind": "keep",
            "tags": [
                name for label in objects_of(note.get("labels")) if (name := text_of(label.get("name")))
            ],
            "links": [
                url for link in objects_of(note.get("annotations")) if (url := text_of(link.get("url")))
            ],
            "created_at": times[0],
            "modified_at": times[1] or times[0],
            "properties": {name: note[name] for name in _STATES if isinstance(note.get(name), str | bool)},
        }
        yield Row("notes", without_empty(data), place=file.name)


def read_evernote(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    note, tags, keys, number = dict[str, str](), list[str](), RowKeys(), 0
    try:
        for event in xml_events(content, doctype="en-export"):
            if not isinstance(event, XmlEnd):
                continue
            if event.name == "note":
                number += 1
                place = f"{file.name}, note {number}"
                if len(note.get("content", "")) >= MAX_TEXT:
                    yield Reject(place, f"Only its first {MAX_TEXT} characters are read.")
                yield Row("notes", _evernote(file, note, tags, keys), place=place)
                note, tags = {}, []
            elif event.name == "tag":
                tags += filter(None, [one_line(event.text, 300)])
            elif event.name in _EVERNOTE:
                note.setdefault(event.name, event.text)
    except XmlRefused as error:
        yield Reject(file.name, str(error))


def _evernote(file: InputFile, note: dict[str, str], tags: list[str], keys: RowKeys) -> dict[str, Any]:
    html = _TO_DO.sub(lambda box: "[x] " if "true" in box[1] else "[ ] ", note.get("content", ""))
    title, created = one_line(note.get("title"), 300), iso_of(note.get("created"))
    data = {
        "id": keys.key(title, created),
        "title": title or clean(file.stem),
        "text": clean("\n\n".join(filter(None, text_of_html(html)))),
        "folder": clean(file.stem),
        "kind": "evernote",
        "author": one_line(note.get("author"), 300),
        "tags": tags,
        "links": list(filter(None, [one_line(note.get("source-url"), 2000)])),
        "created_at": created,
        "modified_at": iso_of(note.get("updated")) or created,
    }
    return without_empty(data)
