"""A record as a document: id, title, text, url and metadata, and nothing of the record besides.

Every field that says something is inline, whole, or has an entry in the content ladder with the call that reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from headgate.model.declaration import TITLE_FIELDS, LineFields
from headgate.model.wire import HitBody, Json, RecordBody
from headgate.text.fields import field_line
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
from headgate.text.line import line_body, read_line_fields, title_field
from headgate.text.records import telling
from headgate.text.writing import ELLIPSIS, FETCH_CHARS, UNTRUSTED, cut, fitting, json_text

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
    line = _inner(record, ("line",))
    own = _text(_find(line, ("title",)) or _own_title(record))
    if own:
        return cut(" ".join(own.split()), TITLE_CHARS)
    time = _text(_find(line, ("time",)) or _time(record)) or _text(_find([record], ("emitted_at",)))
    labels = _text(_find([record], _LABELS)), _text(_find([record], ("stream",)))
    return cut(" / ".join(part for part in (*labels, time) if part), TITLE_CHARS)


def _named(row: RecordBody, line: LineFields | None, data: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return a record's title, the same that a search shows, and the field of ``data`` that it is made of."""
    record = cast("dict[str, Any]", row)
    source = _own_title(record) or _time(record)
    field = source[1] if source is not None and source[0] is record.get("data") else None
    if line is None:
        return title(row), field
    # A hit of the stream does not say when it was ingested either.
    line_of_hit = {"line": line_body(line, data), "emitted_at": None}
    return title(cast("HitBody", record | line_of_hit)), title_field(line, data) or field or line.time


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
#: A text is begun if this many characters of space are left.
_LEAST_BEGUN = 80
#: With more fields that are not inline, calls read several of them: an entry for each would be too much.
_ENTRIES = 8
_SHARED_FIELDS = 50
#: The names of fields in these calls, together.
_NAMES_BYTES = 5_000
_NUMBERS = (int, float)
_TIMES = {"sent_at", "authored_at", "created_at", "occurred_at", "updated_at"}
#: The members of a row that are metadata of its document.
_ROW_FACTS = sorted((*_ORIGIN, "record_id", "emitted_at", "sent_at", "created_at", "updated_at"))
#: Metadata that only this server writes: a field of the same name stands under ``fields`` instead.
_RESERVED = {
    *(*_ORIGIN, "record_id", "emitted_at", "fields"),
    *("text_truncated", "text_total_chars", "content_ladder", "expanded", "untrusted"),
}


class Space(NamedTuple):
    """How much of a record its document shows."""

    #: Characters of values.
    chars: int = FETCH_CHARS
    #: The fields that were asked for by name.
    named: Sequence[str] = ()


_SPACE = Space()


class Document(NamedTuple):
    """A record as a document, and what there is to know about it."""

    members: Json
    #: The fields of the record whose values stand in the document, whole or in part.
    shown: frozenset[str]
    ladder: Ladder


class _Content(NamedTuple):
    """What a document shows of the fields: a text, values beside it, and the names of all others."""

    text: str
    #: The field that the text is; None if it is lines of several.
    main: str | None
    inline: Json
    #: The texts of which only the beginning stands there, and how many characters of each.
    stops: Mapping[str, int]
    others: list[str]


def document(
    row: RecordBody,
    naming: Callable[[], Handles],
    *,
    asked_id: str,
    url: str,
    lengths: Lengths,
    space: Space = _SPACE,
) -> Document:
    """Turn a record into a document; a field that does not fit is begun or left out, and has an entry in the ladder."""
    line = read_line_fields(row.get("line_fields"))
    data = telling(row.get("data") or {}, str(row.get("id")), space.named)
    short, ladder = data, Ladder()
    if lengths or not is_whole(data, FETCH_CHARS):
        short, ladder = shorten(data, naming(), inline_chars=FETCH_CHARS, lengths=lengths)
    named, titled = _named(row, line, data)
    apart = [path for path, value in short.items() if _is_apart(path, value, data[path], ladder)]
    values = {path: value for path, value in short.items() if path not in apart}
    main = _main_field(values, line, titled, space.named)
    if main is not None and titled is not None and titled != main and values.get(titled) == named:
        # The title says it.
        del values[titled]
    content = _content(values, main, space.chars, ladder)
    metadata = _metadata(row, {} if main is None else content.inline, {asked_id, named, url})
    if not _TIMES.isdisjoint(data) or (line is not None and line.time in data):
        # When it was written matters; when it was ingested matters only where nothing else is known.
        metadata.pop("emitted_at", None)
    if content.stops or content.others or ladder.members():
        shared = _climb(values, content, apart, naming(), ladder)
        metadata |= _cut_facts(content, ladder)
        metadata["content_ladder"] = {
            "kind": "record",
            **ladder.short("preview_text", "read", "resource_uri"),
            **shared,
        }
    # An entry shows the beginning of a field that is not inline, or facts about a file.
    entered = {entry["field_path"] for entries in ladder.members().values() for entry in entries}
    fields = {*content.inline, *entered, *([titled] if titled in data else ()), *([main] if main else ())}
    members: Json = {"id": asked_id, "title": named, "text": content.text, "url": url, "metadata": metadata}
    return Document(members, frozenset(fields), ladder)


def _is_apart(path: str, value: Any, stored: Any, ladder: Ladder) -> bool:
    """Return whether a field stands only in the ladder: a file, or an object or a list that is too long."""
    is_begun = isinstance(stored, dict | list) and isinstance(value, str)
    return is_begun or any(entry["field_path"] == path for entry in ladder.binary_fields)


def _main_field(
    values: Mapping[str, Any], line: LineFields | None, titled: str | None, named: Sequence[str]
) -> str | None:
    """Choose the field that is the document's text; None for a record that has no body.

    It is the one field that was asked for, the text beside a title, or the first of the usual names that holds a text.
    """
    has_title = line is not None and line.title == titled is not None
    chosen = [*(named if len(named) == 1 else ()), *([line.text] if line is not None and has_title else ())]
    usual = (path for path in _TEXT_FIELDS if not has_title or path != titled)
    return next(
        (path for path in (*chosen, *usual) if path and isinstance(values.get(path), str) and values[path]),
        None,
    )


def _content(values: Json, main: str | None, chars: int, ladder: Ladder) -> _Content:
    """Choose what is inline: the small fields first, with half of the space for the main text, and one text is begun."""
    sizes = {path: _size(path, value, main) for path, value in values.items()}
    left = chars - (0 if main is None else min(sizes[main], chars // 2))
    whole: set[str] = set()
    for path in sorted(sizes.keys() - {main}, key=sizes.__getitem__):
        if sizes[path] <= left:
            whole.add(path)
            left -= sizes[path]
    left = chars - sum(sizes[path] for path in whole)
    if main is not None and sizes[main] <= left:
        whole.add(main)
        left -= sizes[main]
    # What the server cut ends with an ellipsis already.
    stops = {path: len(values[path]) - len(ELLIPSIS) for path in whole if ladder.window_of(path) is not None}
    begun = main if main not in whole else _first_text(values, whole)
    if begun is not None:
        stop = left - (0 if begun == main else len(begun) + len('"": "…"'))
        stops |= {begun: stop} if stop >= _LEAST_BEGUN or begun == main else {}
    inline = {
        path: f"{value[: stops[path]]}{ELLIPSIS}" if path in stops else value
        for path, value in values.items()
        if path in stops or path in whole
    }
    others = [path for path in values if path not in inline]
    text = _lines(inline) if main is None else inline.pop(main)
    return _Content(text, main, inline, stops, others)


def _first_text(values: Json, whole: Collection[str]) -> str | None:
    return next(
        (path for path, value in values.items() if path not in whole and isinstance(value, str)), None
    )


def _size(path: str, value: Any, main: str | None) -> int:
    """Count the characters that a field takes in the text, as a line of it, or beside it."""
    if path == main:
        return len(value)
    return len(field_line(path, value)) + 1 if main is None else len(json_text({path: value})) - 1


def _lines(inline: Json) -> str:
    return "\n".join([field_line(path, value) for path, value in inline.items()])


def _climb(values: Json, content: _Content, apart: list[str], handles: Handles, ladder: Ladder) -> Json:
    """Complete the ladder with what is not inline, and return the calls that read several fields, if these are many."""
    for path, stop in content.stops.items():
        rung = ladder.window_of(path)
        if rung is None:
            rung = window_entry(path, "", handles, len(values[path]), None)
            ladder.field_windows.append(rung)
        del rung["preview_text"]
        if "offset_chars" in rung["read"]["args"]:
            rung["read"]["args"]["offset_chars"] = stop
    others = [*content.others, *apart]
    if len(others) > _ENTRIES:
        ladder.drop(others)
        return _shared_reads(others, handles)
    known = {entry["field_path"] for entries in ladder.members().values() for entry in entries}
    for path in content.others:
        value = values[path]
        if path not in known and isinstance(value, str):
            ladder.field_windows.append(window_entry(path, value, handles, len(value), None))
        elif path not in known:
            ladder.json_fields.append(json_entry(path, value, handles.read_json(path, len(json_text(value)))))
    return {}


def _shared_reads(paths: Sequence[str], handles: Handles) -> Json:
    """Write calls that read several fields each: always fewer than all, so that following them comes to an end."""
    fit = fitting(map(json_text, paths), _NAMES_BYTES)
    named, several = paths[: len(fit)], max(1, min(_SHARED_FIELDS, len(paths) // 4))
    calls = [handles.read_record(named[at : at + several]) for at in range(0, len(named), several)]
    left = len(paths) - len(named)
    return {"other_fields": calls, **({"unnamed_fields": left} if left else {})}


def _cut_facts(content: _Content, ladder: Ladder) -> Json:
    """Note that the text is not complete, if so."""
    rung = ladder.window_of(content.main) if content.main is not None else None
    if rung is not None:
        return {"text_truncated": True, "text_total_chars": rung["size_chars"]}
    is_cut = content.main is None and bool(content.stops or content.others)
    return {"text_truncated": True} if is_cut else {}


def _metadata(row: RecordBody, short: Json, known: set[str]) -> Json:
    return _row_facts(row, known) | _with_reserved_apart(short) | UNTRUSTED


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
