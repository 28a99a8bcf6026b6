"""A record as a document: id, title, text, url and metadata, and nothing of the record besides.

Every field of the record is inline, whole, or has an entry in the content ladder with the call that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from headgate.model.declaration import TITLE_FIELDS
from headgate.model.wire import HitBody, Json, RecordBody
from headgate.text.ladder import (
    Handles,
    Ladder,
    Lengths,
    binary_facts,
    is_whole,
    json_entry,
    shorten,
    window_entry,
)
from headgate.text.writing import ELLIPSIS, FALLBACK_CHARS, FETCH_CHARS, UNTRUSTED, cut, json_text

TITLE_CHARS = 200
_TITLE_SET = frozenset(TITLE_FIELDS)
_TITLE_TIMES = ("sent_at", "authored_at", "created_at", "source_created_at", "occurred_at", "updated_at")
_NESTED = ("data", "record", "metadata", "source")
_Found = tuple[Mapping[str, Any], str]
_LABELS = ("display_name", "connector_key", "connection_id")


def title(body: RecordBody | HitBody) -> str:
    """Name a record or a hit by its title, or else by its source, stream and time."""
    # Another server can put a title or a time anywhere.
    record = cast("Mapping[str, Any]", body)
    own = _text(_find(_inner(record, ("line",)), ("title",)) or _own_title(record))
    if own:
        return cut(" ".join(own.split()), TITLE_CHARS)
    time = _text(_time(record)) or _text(_find([record], ("emitted_at",)))
    labels = _text(_find([record], _LABELS)), _text(_find([record], ("stream",)))
    return cut(" / ".join(part for part in (*labels, time) if part), TITLE_CHARS)


def title_field(body: RecordBody | HitBody) -> str | None:
    """Return the field of ``data`` that the title is made of; None if it is made of other members."""
    record = cast("Mapping[str, Any]", body)
    source = _own_title(record) or _time(record)
    return source[1] if source is not None and source[0] is record.get("data") else None


def _own_title(record: Mapping[str, Any]) -> _Found | None:
    data = record.get("data")
    places = [record, cast("Mapping[str, Any]", data)] if isinstance(data, dict) else [record]
    return _find([place for place in places if not _TITLE_SET.isdisjoint(place)], TITLE_FIELDS)


def _time(record: Mapping[str, Any]) -> _Found | None:
    return _find([record, *_inner(record, _NESTED)], _TITLE_TIMES)


def _text(source: _Found | None) -> str:
    return "" if source is None else source[0][source[1]]


def _inner(record: Mapping[str, Any], names: tuple[str, ...]) -> list[Mapping[str, Any]]:
    return [value for name in names if isinstance(value := record.get(name), dict)]


def _find(places: list[Mapping[str, Any]], names: tuple[str, ...]) -> _Found | None:
    """Find the first text that is not blank: where it is, and its name there."""
    for place in places:
        for name in names:
            if name in place:
                value = place[name]
                if isinstance(value, str) and value.strip() and binary_facts(value) is None:
                    return place, name
    return None


_TEXT_FIELDS = ("text", "content", "body", "summary")
_ORIGIN = ("stream", "connection_id", "connector_key", "connector_id", "display_name")
_SHORT_CHARS = 160
#: A text is begun in a record's JSON if this many characters of space are left.
_LEAST_BEGUN = 80
#: The fields of one call that reads several.
_SHARED_FIELDS = 20
_NUMBERS = (int, float)
_TIMES = {"sent_at", "authored_at", "created_at", "occurred_at", "updated_at"}
#: The members of a row that are metadata of its document.
_ROW_FACTS = sorted((*_ORIGIN, "record_id", "emitted_at", "sent_at", "created_at", "updated_at"))
#: Metadata that only this server writes: a field of the same name stands under ``fields`` instead.
_RESERVED = {
    *(*_ORIGIN, "record_id", "emitted_at", "fields", "other_fields"),
    *("text_truncated", "text_total_chars", "content_ladder", "expanded", "untrusted"),
}


class Space(NamedTuple):
    """How much of a record its document shows, in characters."""

    #: Of any one value.
    inline: int = FETCH_CHARS
    #: Of a record without a main text, which is written as JSON.
    as_json: int = FALLBACK_CHARS
    #: Of the short values beside the text together; None for all of them. With a limit, the fields that are not
    #: inline share calls that read several of them, because an entry for each would be too much.
    beside: int | None = None


_SPACE = Space()


class Document(NamedTuple):
    """A record as a document, and what there is to know about it."""

    members: Json
    #: The fields of the record whose values stand in the document, whole or in part.
    shown: frozenset[str]
    ladder: Ladder


class _Content(NamedTuple):
    """What a document shows of the fields: a text, short values beside it, and the names of all others."""

    text: str
    in_text: Collection[str]
    short: Json
    others: list[str]
    #: The field that the text is; None if the text is JSON of several.
    main: str | None = None
    #: The field that the JSON shows only the beginning of, and how many of its characters.
    begun: tuple[str, int] | None = None


def document(
    row: RecordBody,
    naming: Callable[[], Handles],
    *,
    asked_id: str,
    url: str,
    lengths: Lengths,
    space: Space = _SPACE,
) -> Document:
    """Turn a record into a document; a field that does not fit is begun, and has an entry in the ladder."""
    data = row.get("data") or {}
    ladder = Ladder()
    short = data
    if lengths or not is_whole(data, space.inline):
        short, ladder = shorten(data, naming(), inline_chars=space.inline, lengths=lengths)
    named = title(row)
    titled = title_field(row)
    elsewhere = _elsewhere(row, short, asked_id, titled if titled and short.get(titled) == named else None)
    main = _main_field(short)
    if main is None:
        texts = {path for path, value in data.items() if isinstance(value, str)}
        content = _as_json(short, texts, space)
    else:
        content = _Content(short[main], (main,), *_beside(short, {main, *elsewhere}, space.beside), main)
    metadata = _metadata(row, content.short, {asked_id, named, url})
    if content.others or content.begun or ladder.members():
        metadata |= _ways_on(short, content, naming(), ladder, space)
    # Each entry shows the beginning of its field, or facts about a file.
    entered = {entry["field_path"] for entries in ladder.members().values() for entry in entries}
    fields = {*content.in_text, *content.short, *elsewhere, *entered, *([titled] if titled else [])}
    members: Json = {"id": asked_id, "title": named, "text": content.text, "url": url, "metadata": metadata}
    return Document(members, frozenset(fields), ladder)


def _main_field(data: Mapping[str, Any]) -> str | None:
    """Choose the field that is the document's text: the first of the usual names that holds one."""
    for path in _TEXT_FIELDS:
        if path in data and data[path] and isinstance(data[path], str):
            return path
    return None


def _elsewhere(row: RecordBody, data: Mapping[str, Any], asked_id: str, titled: str | None) -> set[str]:
    """Name the fields that the document shows as its title and in its id."""
    key, fields = data.get("id"), set[str]() if titled is None else {titled}
    is_key = isinstance(key, str) and key == row.get("id") and asked_id.endswith(f":{key}")
    return fields | {"id"} if is_key or key == asked_id else fields


def _as_json(data: Mapping[str, Any], texts: Collection[str], space: Space) -> _Content:
    """Write a record that has no main text as JSON: the members that fit, and the beginning of one text."""
    limit_chars = min(space.as_json, space.inline)
    whole = json_text(data)
    if len(whole) <= limit_chars:
        return _Content(whole, data.keys(), {}, [])
    left = limit_chars - len("{}")
    fitting: set[str] = set()
    for path, value in data.items():
        needed = len(json_text({path: value})) - len("{}") + len(",")
        if needed <= left:
            fitting.add(path)
            left -= needed
    short, others = _beside(data, fitting, space.beside)
    values = dict(data)
    begun = next((path for path in others if path in texts and isinstance(data[path], str)), None)
    stop = 0 if begun is None else _beginning(data[begun], left - len(json_text(begun)) - len(":,"))
    if begun is not None and stop:
        values[begun] = data[begun][:stop] + ELLIPSIS
        others.remove(begun)
        fitting.add(begun)
    text = json_text({path: value for path, value in values.items() if path in fitting})
    return _Content(text, fitting, short, others, begun=(begun, stop) if begun is not None and stop else None)


def _beginning(text: str, limit_chars: int) -> int:
    """Count the characters of a text whose JSON fits with an ellipsis; 0 if they are too few to say anything."""
    stop = min(limit_chars, len(text)) - len(ELLIPSIS)
    while stop >= _LEAST_BEGUN and len(json_text(text[:stop] + ELLIPSIS)) > limit_chars:
        stop = stop * 3 // 4
    return stop if stop >= _LEAST_BEGUN else 0


def _beside(
    data: Mapping[str, Any], inline: Collection[str], limit_chars: int | None
) -> tuple[Json, list[str]]:
    """Return the fields beside the text: short values as they are, and the names of the others."""
    short: Json = {}
    others: list[str] = []
    for path, value in data.items():
        if path in inline:
            continue
        needed = 0 if limit_chars is None else len(json_text({path: value}))
        if _is_short(value) and (limit_chars is None or needed <= limit_chars):
            short[path] = value
            limit_chars = None if limit_chars is None else limit_chars - needed
        else:
            others.append(path)
    return short, others


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _SHORT_CHARS
    return value is None or isinstance(value, _NUMBERS) or len(json_text(value)) <= _SHORT_CHARS


def _ways_on(
    data: Mapping[str, Any], content: _Content, handles: Handles, ladder: Ladder, space: Space
) -> Json:
    """Write how to read the fields that are not inline, and whether the text itself is incomplete."""
    others = content.others
    listed: Json = {"other_fields": others} if others else {}
    rungs: Json = {}
    if space.beside is not None and len(others) > 1:
        ladder.drop(others)
        listed, rungs = {}, {"other_fields": _shared_reads(others, handles)}
    else:
        _add_others(data, others, handles, ladder)
    facts = listed | _cut_facts(data, content, handles, ladder)
    if rungs := ladder.members() | rungs:
        facts["content_ladder"] = {"kind": "record", "id": handles.id, **rungs}
    return facts


def _shared_reads(paths: Sequence[str], handles: Handles) -> list[Json]:
    """Write calls that read several fields each: always fewer than all, so that following them comes to an end."""
    several = max(1, min(_SHARED_FIELDS, len(paths) // 4))
    return [handles.read_record(paths[at : at + several]) for at in range(0, len(paths), several)]


def _add_others(data: Mapping[str, Any], others: Sequence[str], handles: Handles, ladder: Ladder) -> None:
    """Add entries for the fields that are not inline, with the call that reads each."""
    known = {entry["field_path"] for entries in ladder.members().values() for entry in entries}
    for path in others:
        value = data[path]
        if path in known:
            continue
        if isinstance(value, str):
            ladder.field_windows.append(window_entry(path, value, handles, len(value), None))
        else:
            ladder.json_fields.append(json_entry(path, value, handles.read_json(path, len(json_text(value)))))


def _cut_facts(data: Mapping[str, Any], content: _Content, handles: Handles, ladder: Ladder) -> Json:
    """Note that the text is not complete, if so, and let reading on begin where it stops."""
    begun = content.begun
    cut_main = ladder.window_of(content.main) if content.main is not None else None
    if cut_main is not None:
        begun = content.main or "", len(content.text) - len(ELLIPSIS)
    if begun is None:
        return {"text_truncated": True} if content.main is None and content.others else {}
    path, stop = begun
    rung = ladder.window_of(path)
    if rung is None:
        rung = window_entry(path, data[path], handles, len(data[path]), None)
        ladder.field_windows.append(rung)
    args = rung["read"]["args"]
    if "offset_chars" in args:
        args["offset_chars"] = stop
    total = {"text_total_chars": rung["size_chars"]} if cut_main is not None else {}
    return {"text_truncated": True, **total}


def _metadata(row: RecordBody, short: Json, known: set[str]) -> Json:
    metadata = _row_facts(row, known)
    if not _TIMES.isdisjoint(short):
        # When it was written matters; when it was ingested matters only where nothing else is known.
        metadata.pop("emitted_at", None)
    return metadata | _with_reserved_apart(short) | UNTRUSTED


def _with_reserved_apart(short: Json) -> Json:
    """Put fields whose names are reserved under ``fields``, so that a record cannot forge our metadata."""
    if _RESERVED.isdisjoint(short):
        return short
    apart = {path: value for path, value in short.items() if path in _RESERVED}
    return {path: value for path, value in short.items() if path not in apart} | {"fields": apart}


def _row_facts(row: Mapping[str, Any], known: set[str]) -> Json:
    """Return what a row says about its record, without what the document says elsewhere."""
    known_facts = {name: row[name] for name in _ROW_FACTS if name in row}
    own = row.get("metadata")
    if isinstance(own, dict):
        known_facts = cast("Json", own) | known_facts
    facts = {name: value for name, value in known_facts.items() if name in _ORIGIN or _is_fact(value, known)}
    record_id = row.get("id")
    if isinstance(record_id, str) and not any(text.endswith(f":{record_id}") for text in known):
        facts["record_id"] = record_id
    return facts


def _is_fact(value: Any, known: set[str]) -> bool:
    return value not in known if isinstance(value, str) else isinstance(value, _NUMBERS)
