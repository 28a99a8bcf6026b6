"""The content ladder: long, nested and binary fields are shown in part, with the call that reads on.

A field that does not fit is cut in its place, and an entry gives its true length, its kind, and the tool call
and the resource that continue it. Nothing is replaced by a mere marker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple, cast

import msgspec

from headgate.text.writing import INLINE_CHARS, cut, json_text

_ENCODED = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
#: Texts below this are never taken for encoded bytes.
SHORT_CHARS = 256
_MIN_DISTINCT = 4
#: The beginning of encoded bytes, in lines or not.
_BEGINS_ENCODED = re.compile(r"[A-Za-z0-9+/_=\r\n-]+")
#: Shorter lines are a list of words.
_LEAST_WIDTH = 32
_DATA_URL = re.compile(r"data:([\w.+/-]+);base64,")
_TWINS = {
    "mime_type": ("mime_type", "content_type", "mimeType", "contentType"),
    "size_bytes": ("size_bytes", "sizeBytes"),
    "digest": ("sha256", "digest"),
    "fetch_url": ("fetch_url", "fetchUrl"),
}

#: The fact that repeats a member of a file's object.
_FACTS = {
    **dict.fromkeys(("blob_id", "blobId"), "blob_id"),
    **{name: fact for fact, names in _TWINS.items() for name in names},
}


def binary_facts(value: Any) -> dict[str, Any] | None:
    """Describe a value that is a file or encoded bytes; None for anything else."""
    if isinstance(value, str):
        return _encoded_facts(value)
    if isinstance(value, Mapping):
        return _blob_facts(cast("Mapping[str, Any]", value))
    return None


def has_other_members(value: Mapping[str, Any]) -> bool:
    """Return whether a file's object holds more than the facts about it repeat."""
    facts = _blob_facts(value) or {}
    return any(
        (fact := _FACTS.get(name)) not in facts or facts[fact] != member for name, member in value.items()
    )


def _blob_facts(value: Mapping[str, Any]) -> dict[str, Any] | None:
    blob_id = value.get("blob_id") or value.get("blobId")
    if not isinstance(blob_id, str):
        return None
    facts: dict[str, Any] = {**_about(), "blob_id": blob_id}
    for fact, names in _TWINS.items():
        twin = next((value[name] for name in names if isinstance(value.get(name), str | int)), None)
        if twin is not None:
            facts[fact] = twin
    return facts


def _encoded_facts(value: str) -> dict[str, Any] | None:
    if len(value) < SHORT_CHARS:
        return None
    start = value[:SHORT_CHARS]
    data_url = _DATA_URL.match(start)
    if data_url:
        return encoded_facts(len(value), data_url[1])
    # A short look first: almost every long text has a space early on.
    if not _BEGINS_ENCODED.fullmatch(start):
        return None
    encoded = _joined(value) if "\n" in value or "\r" in value else value
    if encoded is None or not _ENCODED.fullmatch(encoded) or not _looks_encoded(encoded):
        return None
    return encoded_facts(len(value))


def _looks_encoded(text: str) -> bool:
    """Distinguish encoded bytes from one long word: they are padded, or have letters of both cases and digits."""
    seen = set(text[:SHORT_CHARS])
    if len(text) % 4 == 0:
        return len(seen) >= _MIN_DISTINCT
    return all(any(map(kind, seen)) for kind in (str.isupper, str.islower, str.isdigit))


def _joined(value: str) -> str | None:
    """Join encoded bytes that are in lines of one width, as mail and certificates have them."""
    first, *others = value.split() or [""]
    width = len(first)
    if width < _LEAST_WIDTH or any(len(line) != width for line in others[:-1]):
        return None
    return None if others and len(others[-1]) > width else "".join([first, *others])


def encoded_facts(size_chars: int, mime_type: str = "application/octet-stream") -> dict[str, Any]:
    """Describe a text that is encoded bytes."""
    return {**_about(), "mime_type": mime_type, "size_chars": size_chars}


def _about() -> dict[str, Any]:
    return {"binary_field": True, "text_like": False, "preview_status": "binary-only"}


READ_TOOL = "read_record_field"
PREVIEW_CHARS = 160
JSON_PREVIEW_CHARS = 512
_SHORT_FACTS = (
    "field_path",
    "size_chars",
    "size_bytes",
    "mime_type",
    "digest",
    "blob_id",
    "json_field",
    "binary_field",
)
_NESTED = (dict, list)
_encode = msgspec.json.Encoder().encode

Uri = Callable[[str], str]
Nested = dict[str, Any] | list[Any]


class Known(NamedTuple):
    """What is known of a text beside the text, which can be only its beginning."""

    size_chars: int
    digest: str | None = None
    #: Of a text that is declared as encoded bytes.
    mime_type: str | None = None


Lengths = Mapping[str, Known]


class Windows(IntEnum):
    """What a resource server reads in windows: no field, texts, or objects and lists as well.

    Where it reads only texts, the adapter cuts the windows of objects and lists.
    """

    NONE = 0
    TEXT = 1
    JSON = 2

    @property
    def tool(self) -> str:
        """The tool that reads a long text on."""
        return READ_TOOL if self else "fetch"


class Handles(msgspec.Struct, frozen=True):
    """How the parts of one record are named: its id, and URIs for a field's window and for a file."""

    id: str
    window_uri: Uri
    blob_uri: Uri
    windows: Windows = Windows.JSON

    def read_text(self, path: str) -> dict[str, Any]:
        """Write how to read on in a text: by window, or as much as a document holds."""
        return self._read(path)

    def read_at(self, path: str, selector: Mapping[str, int]) -> dict[str, Any]:
        """Write the call that reads a text around a place."""
        return read_call(self.id, path, **selector) if self.windows else self._fetch(path)["read"]

    def read_json(self, path: str, size_chars: int) -> dict[str, Any]:
        """Write how to read an object or a list: as a document that surely holds it, else by window."""
        return self._fetch(path) if size_chars <= INLINE_CHARS else self._read(path)

    def read_raw(self, path: str) -> dict[str, Any]:
        """Write how to read an object or a list as it is stored, with the encoded bytes in it."""
        return self._read(path)

    def read_record(self, paths: Sequence[str]) -> dict[str, Any]:
        """Write the call that reads some fields of the record."""
        return {"read": {"tool": "fetch", "args": {"id": self.id, "fields": list(paths)}}}

    def _read(self, path: str) -> dict[str, Any]:
        if not self.windows:
            return self._fetch(path)
        call = read_call(self.id, path, offset_chars=0)
        return {"read": call, "resource_uri": self.window_uri(path)}

    def _fetch(self, path: str) -> dict[str, Any]:
        return self.read_record([path])


@dataclass(slots=True)
class Ladder:
    """The entries of one record, as they are found."""

    field_windows: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    json_fields: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    binary_fields: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    def members(self) -> dict[str, Any]:
        """Return the kinds that have entries; none for a record that is shown whole."""
        kinds = {
            "field_windows": self.field_windows,
            "json_fields": self.json_fields,
            "binary_fields": self.binary_fields,
        }
        return {kind: entries for kind, entries in kinds.items() if entries}

    def short(self, *more: str) -> dict[str, Any]:
        """Return the entries with what only they say: which field it is and how long; and ``more`` facts of each."""
        return {
            kind: [
                {fact: entry[fact] for fact in (*_SHORT_FACTS, *more) if fact in entry} for entry in entries
            ]
            for kind, entries in self.members().items()
        }

    def window_of(self, path: str) -> dict[str, Any] | None:
        """Find the entry of a text that is not shown whole."""
        return next((entry for entry in self.field_windows if entry["field_path"] == path), None)

    def drop(self, paths: Collection[str]) -> None:
        """Leave out the entries of some fields."""
        for entries in (self.field_windows, self.json_fields, self.binary_fields):
            entries[:] = [entry for entry in entries if entry["field_path"] not in paths]


def shorten(
    data: dict[str, Any], handles: Handles, *, inline_chars: int, lengths: Lengths
) -> tuple[dict[str, Any], Ladder]:
    """Cut what is too long in a record's data, and collect how to read it whole."""
    ladder = Ladder()
    changed: dict[str, Any] = {}
    for path, value in data.items():
        if isinstance(value, str):
            short = _short_text(path, value, handles, inline_chars, lengths.get(path), ladder)
        elif isinstance(value, _NESTED):
            short = _short_nested(path, value, handles, inline_chars, ladder)
        else:
            continue
        if short is not value:
            changed[path] = short
    return ({**data, **changed} if changed else data), ladder


def is_whole(data: Mapping[str, Any], inline_chars: int) -> bool:
    """Return whether a record's data can be shown as it is: no value is long, a file, or nested and not small."""
    for value in data.values():
        if isinstance(value, str):
            size = len(value)
            if size > inline_chars or (size >= SHORT_CHARS and binary_facts(value) is not None):
                return False
        elif isinstance(value, _NESTED) and not _is_small(cast("Nested", value), inline_chars):
            return False
    return True


def _is_small(value: Nested, inline_chars: int) -> bool:
    """Return whether an object or a list is no file, and too short to hold one."""
    if "blob_id" in value or "blobId" in value:
        return False
    return len(_encode(value)) < min(SHORT_CHARS, inline_chars)


def read_call(record_id: str, path: str, **selector: Any) -> dict[str, Any]:
    """Write the tool call that reads a field."""
    return {"tool": READ_TOOL, "args": {"id": record_id, "field_path": path, **selector}}


def _short_text(
    path: str, value: str, handles: Handles, inline_chars: int, known: Known | None, ladder: Ladder
) -> Any:
    size_chars, digest, mime_type = known or Known(len(value))
    facts = binary_facts(value) if mime_type is None else encoded_facts(size_chars, mime_type)
    if facts is not None:
        whole = {**facts, "size_chars": size_chars}
        ladder.binary_fields.append({"field_path": path, **whole, **handles.read_text(path)})
        return whole
    if size_chars <= inline_chars and len(value) == size_chars:
        return value
    # A value that is only the beginning ends with an ellipsis too, though it fits.
    preview = cut(value if len(value) == size_chars else f"{value} ", min(inline_chars, len(value)))
    ladder.field_windows.append(window_entry(path, preview, handles, size_chars, digest))
    return preview


def window_entry(
    path: str, preview: str, handles: Handles, size_chars: int, digest: str | None
) -> dict[str, Any]:
    """Write the entry of a text that is not shown whole."""
    entry: dict[str, Any] = {
        "field_path": path,
        "text_like": True,
        "mime_type": "text/plain",
        "preview_status": "truncated",
        "size_chars": size_chars,
        "preview_text": cut(preview, PREVIEW_CHARS),
        **handles.read_text(path),
    }
    return entry if digest is None else {**entry, "digest": f"sha256:{digest}"}


def _short_nested(path: str, value: Any, handles: Handles, inline_chars: int, ladder: Ladder) -> Any:
    facts = binary_facts(value)
    if facts is not None:
        ladder.binary_fields.append(
            {"field_path": path, **facts, "resource_uri": handles.blob_uri(facts["blob_id"])}
        )
        if has_other_members(value):
            ladder.json_fields.append(json_entry(path, value, handles.read_raw(path)))
        return facts
    clean = without_bytes(value)
    text = msgspec.json.encode(clean).decode()
    if len(text) <= inline_chars:
        if clean is not value:
            # Only a window shows the bytes that are left out here; a document would leave them out again.
            ladder.json_fields.append(json_entry(path, value, handles.read_raw(path), clean))
        return clean
    preview = cut(text, min(inline_chars, JSON_PREVIEW_CHARS))
    read = handles.read_json(path, len(json_text(value))) if clean is value else handles.read_raw(path)
    ladder.json_fields.append(json_entry(path, value, read, clean))
    return preview


def json_entry(path: str, value: Any, read: Mapping[str, Any], clean: Any = None) -> dict[str, Any]:
    """Write the entry of an object or a list that is not shown whole; its size is that of the whole value."""
    visible = without_bytes(value) if clean is None else clean
    return {
        "field_path": path,
        "json_field": True,
        "text_like": False,
        "preview_status": "truncated",
        "size_chars": len(msgspec.json.encode(_as_stored(value)).decode()),
        "preview_text": cut(msgspec.json.encode(visible).decode(), JSON_PREVIEW_CHARS),
        **read,
    }


def _as_stored(value: Any) -> Any:
    """Leave out the addresses that the resource server adds to files."""
    if isinstance(value, list):
        return [_as_stored(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    members = cast("dict[str, Any]", value)
    if "blob_id" not in members:
        return members
    return {key: member for key, member in members.items() if key != "fetch_url"}


def without_bytes(value: Any) -> Any:
    """Replace encoded bytes anywhere in a value by what is known about them."""
    if isinstance(value, str):
        return binary_facts(value) or value
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        clean = {key: without_bytes(member) for key, member in members.items()}
        return members if all(clean[key] is members[key] for key in members) else clean
    if isinstance(value, list):
        items = cast("list[Any]", value)
        cleaned = [without_bytes(item) for item in items]
        return items if all(new is old for new, old in zip(cleaned, items, strict=True)) else cleaned
    return value
