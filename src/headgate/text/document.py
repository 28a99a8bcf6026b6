"""A record as a document: id, title, text, url and metadata, and nothing of the record besides."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from headgate.model.wire import Json, RecordBody
from headgate.text.budget import ELLIPSIS, FALLBACK_CHARS, FETCH_CHARS, cut
from headgate.text.ladder import Handles, Ladder, Lengths, is_whole, json_entry, shorten, window_entry
from headgate.text.quote import json_text
from headgate.text.titles import title, title_field

_TEXT_FIELDS = ("text", "content", "body", "summary")
_ORIGIN = ("stream", "connection_id", "connector_key", "connector_id", "display_name")
_SHORT_CHARS = 160
_NUMBERS = (int, float)
_TIMES = {"sent_at", "authored_at", "created_at", "occurred_at", "updated_at"}
#: The members of a row that are metadata of its document.
_ROW_FACTS = sorted((*_ORIGIN, "record_id", "emitted_at", "sent_at", "created_at", "updated_at"))
#: Metadata that only this server writes: a field of the same name stands under ``fields`` instead.
_RESERVED = {
    *(*_ORIGIN, "record_id", "emitted_at", "fields", "other_fields"),
    *("text_truncated", "text_total_chars", "content_ladder", "expanded"),
}


class Document(NamedTuple):
    """A record as a document, and what there is to know about it."""

    members: Json
    #: The fields of the record whose values stand in the document, whole or in part.
    shown: frozenset[str]
    ladder: Ladder


def document(
    row: RecordBody,
    naming: Callable[[], Handles],
    *,
    asked_id: str,
    url: str,
    lengths: Lengths,
    inline_chars: int = FETCH_CHARS,
) -> Document:
    """Turn a record into a document; a field that does not fit is begun, and has an entry in the ladder."""
    data = row.get("data") or {}
    ladder = Ladder()
    short = data
    if lengths or not is_whole(data, inline_chars):
        short, ladder = shorten(data, naming(), inline_chars=inline_chars, lengths=lengths)
    made, shown = _document(row, short, asked_id, url)
    others: list[str] = made["metadata"].get("other_fields", [])
    if not others and not ladder.members():
        return Document(made, shown, ladder)
    handles = naming()
    _add_others(short, others, handles, ladder)
    made["metadata"] |= _cut_facts(short, ladder)
    if rungs := ladder.members():
        made["metadata"]["content_ladder"] = {"kind": "record", "id": handles.id, **rungs}
        # Each entry shows the beginning of its field, or facts about a file.
        shown |= {entry["field_path"] for entries in rungs.values() for entry in entries}
    return Document(made, shown, ladder)


def _add_others(data: Mapping[str, Any], others: Sequence[str], handles: Handles, ladder: Ladder) -> None:
    """Give the fields beside the text that are not inline their entries, with the call that reads each."""
    known = {entry["field_path"] for entries in ladder.members().values() for entry in entries}
    for path in others:
        value = data[path]
        if path in known:
            continue
        if isinstance(value, str):
            ladder.field_windows.append(window_entry(path, value, handles, len(value), None))
        else:
            size_chars = len(json_text(value))
            ladder.json_fields.append(json_entry(path, value, handles.read_json(path, size_chars)))


def _document(
    row: RecordBody, data: Mapping[str, Any], asked_id: str, url: str
) -> tuple[Json, frozenset[str]]:
    named = title(row)
    known = {asked_id, named, url}
    record_id = row.get("id")
    if isinstance(record_id, str) and asked_id.endswith(f":{record_id}"):
        known.add(record_id)
    main = _main_field(data)
    if main is None:
        text, facts, shown = _as_json(data)
        short: Json = {}
    else:
        text = data[main]
        short, facts = _beside(data, main, known)
        shown = {main, *short, *(path for path, value in data.items() if _is_known(value, known))}
    metadata = _row_facts(row, known)
    if not _TIMES.isdisjoint(short):
        # When it was written matters; when it was ingested matters only where nothing else is known.
        metadata.pop("emitted_at", None)
    metadata |= _with_reserved_apart(short)
    metadata |= facts
    titled = title_field(row)
    made: Json = {"id": asked_id, "title": named, "text": text, "url": url, "metadata": metadata}
    return made, frozenset(shown if titled is None else {*shown, titled})


def _main_field(data: Mapping[str, Any]) -> str | None:
    """Choose the field that is the document's text: the first of the usual names that holds one."""
    for path in _TEXT_FIELDS:
        if path in data and data[path] and isinstance(data[path], str):
            return path
    return None


def _cut_facts(short: Mapping[str, Any], ladder: Ladder) -> Json:
    """Say of a document's text that it is only begun, if it is."""
    main = _main_field(short)
    for rung in ladder.field_windows:
        if rung["field_path"] == main:
            args = rung["read"]["args"]
            if "offset_chars" in args:
                # Reading on begins where the text stops, before its ellipsis.
                args["offset_chars"] = len(short[rung["field_path"]]) - len(ELLIPSIS)
            return {"text_truncated": True, "text_total_chars": rung["size_chars"]}
    return {}


def _with_reserved_apart(short: Json) -> Json:
    """Put fields whose names are reserved under ``fields``, so that a record cannot forge our metadata."""
    if _RESERVED.isdisjoint(short):
        return short
    apart = {path: value for path, value in short.items() if path in _RESERVED}
    return {path: value for path, value in short.items() if path not in apart} | {"fields": apart}


def _beside(data: Mapping[str, Any], main: str, known: set[str]) -> tuple[Json, Json]:
    """Give the fields beside the text: short values as they are, and the names of the others."""
    short: Json = {}
    others: list[str] = []
    for path, value in data.items():
        if path == main or _is_known(value, known):
            continue
        if _is_short(value):
            short[path] = value
        else:
            others.append(path)
    return short, {"other_fields": others} if others else {}


def _is_known(value: Any, known: set[str]) -> bool:
    return isinstance(value, str) and value in known


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT_CHARS
    return value is None or isinstance(value, _NUMBERS) or len(json_text(value)) <= _SHORT_CHARS


def _as_json(data: Mapping[str, Any]) -> tuple[str, Json, Collection[str]]:
    """Write a record that has no main text as JSON, as far as it fits, and name the fields that are in it."""
    whole = json_text(data)
    facts = {"text_truncated": True, "text_total_chars": len(whole)}
    if len(whole) <= FALLBACK_CHARS:
        return whole, {}, data.keys()
    if len(data) == 1:
        # One field was asked for: there is nothing narrower to point at, so it gets the whole budget.
        return cut(whole, FETCH_CHARS), facts if len(whole) > FETCH_CHARS else {}, data.keys()
    pointer = f" Fetch with fields to read one of: {json_text(list(data))}."
    return cut(whole, FALLBACK_CHARS) + pointer, facts, _begun(data, FALLBACK_CHARS)


def _begun(data: Mapping[str, Any], limit_chars: int) -> list[str]:
    """Name the members whose values begin before a cut of their JSON."""
    found: list[str] = []
    at = len("{")
    for path, value in data.items():
        if at + len(json_text(path)) + len(":") >= limit_chars:
            break
        found.append(path)
        at += len(json_text({path: value})) - len("{}") + len(",")
    return found


def _row_facts(row: Mapping[str, Any], known: set[str]) -> Json:
    """Give what a row says about its record, without what the document says elsewhere."""
    found = {name: row[name] for name in _ROW_FACTS if name in row}
    own = row.get("metadata")
    if isinstance(own, dict):
        found = cast("Json", own) | found
    facts = {name: value for name, value in found.items() if _is_fact(value, known)}
    record_id = row.get("id")
    if isinstance(record_id, str) and record_id not in known:
        facts["record_id"] = record_id
    return facts


def _is_fact(value: Any, known: set[str]) -> bool:
    return value not in known if isinstance(value, str) else isinstance(value, _NUMBERS)
