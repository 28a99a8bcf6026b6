"""A record as a document: id, title, text, url and metadata, and nothing of the record besides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from headgate.text.budget import FALLBACK_CHARS, FETCH_CHARS, cut
from headgate.text.ladder import NOTHING_CUT, Handles, Ladder, Lengths, is_whole, shorten
from headgate.text.quote import json_text
from headgate.text.titles import title

_TEXT_FIELDS = ("text", "content", "body", "summary")
_IDENTITY = ("stream", "connection_id", "connector_key", "connector_id", "display_name")
_SHORT_CHARS = 160
_NUMBERS = (int, float)
_TIMES = {"sent_at", "authored_at", "created_at", "occurred_at", "updated_at"}
_TOLD = {*_IDENTITY, "record_id", "emitted_at", "sent_at", "created_at", "updated_at"}
_OURS = {
    *(*_IDENTITY, "record_id", "emitted_at", "fields", "other_fields"),
    *("text_truncated", "text_total_chars", "content_ladder", "expanded"),
}


def document(
    row: Mapping[str, Any],
    naming: Callable[[], Handles],
    *,
    asked_id: str,
    url: str,
    lengths: Lengths,
    inline_chars: int = FETCH_CHARS,
    is_known_whole: bool = False,
) -> tuple[dict[str, Any], Ladder]:
    """Turn a record into a document; what does not fit is begun and has its rung of the ladder."""
    data, ladder = cast("Mapping[str, Any]", row.get("data") or {}), NOTHING_CUT
    if lengths or not (is_known_whole or is_whole(data, inline_chars)):
        data, ladder = shorten(data, naming(), inline_chars=inline_chars, lengths=lengths)
    named = title(row)
    known = {asked_id, named, url}
    record_id = row.get("id")
    if isinstance(record_id, str) and asked_id.endswith(f":{record_id}"):
        known.add(record_id)
    text, short, facts = _text(data, ladder, known)
    metadata = _metadata(row, known)
    if not _TIMES.isdisjoint(short):
        # When it was written matters; when it was taken in matters only where nothing else is known.
        metadata.pop("emitted_at", None)
    if short:
        metadata |= _with_fields(short)
    metadata |= facts
    if ladder is not NOTHING_CUT and (rungs := ladder.members()):
        metadata["content_ladder"] = {"kind": "record", "id": naming().id, **rungs}
    return {"id": asked_id, "title": named, "text": text, "url": url, "metadata": metadata}, ladder


def _text(
    data: Mapping[str, Any], ladder: Ladder, known: set[str]
) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Choose the text; give beside it the short fields, and what there is to know of the rest."""
    main = _main_field(data)
    if main is not None:
        short, facts = _beside(data, main, known)
        for rung in ladder.field_windows:
            if rung["field_path"] == main:
                facts |= {"text_truncated": True, "text_total_chars": rung["size_chars"]}
        return data[main], short, facts
    whole = json_text(data)
    if len(whole) <= FALLBACK_CHARS:
        return whole, {}, {}
    text, facts = _as_json(data, whole)
    return text, {}, facts


def _main_field(data: Mapping[str, Any]) -> str | None:
    for path in _TEXT_FIELDS:
        if path in data and data[path] and isinstance(data[path], str):
            return path
    return None


def _with_fields(short: dict[str, Any]) -> dict[str, Any]:
    """Put short fields among the metadata; one that would pass for a fact of ours stands apart."""
    if _OURS.isdisjoint(short):
        return short
    apart = {path: value for path, value in short.items() if path in _OURS}
    return {path: value for path, value in short.items() if path not in apart} | (
        {"fields": apart} if apart else {}
    )


def _beside(data: Mapping[str, Any], main: str, known: set[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell what else the record holds: short values as they are, of the others the names."""
    short: dict[str, Any] = {}
    long: list[str] = []
    for path, value in data.items():
        if path == main or value is None:
            continue
        is_text = isinstance(value, str)
        if is_text and value in known:
            continue
        if len(value) <= _SHORT_CHARS if is_text else isinstance(value, _NUMBERS):
            short[path] = value
        else:
            long.append(path)
    return short, {"other_fields": long} if long else {}


def _as_json(data: Mapping[str, Any], whole: str) -> tuple[str, dict[str, Any]]:
    facts = {"text_truncated": True, "text_total_chars": len(whole)}
    if len(data) == 1:
        # One field was asked for: there is nothing narrower to point at, so it gets the whole budget.
        return cut(whole, FETCH_CHARS), facts if len(whole) > FETCH_CHARS else {}
    pointer = f" Fetch with fields to read one of: {json_text(list(data))}."
    return cut(whole, FALLBACK_CHARS) + pointer, facts


def _metadata(row: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    own = row.get("metadata")
    told = row
    if isinstance(own, dict):
        told = {**cast("dict[str, Any]", own), **{key: row[key] for key in _TOLD if key in row}}
    names = list(told) if told is not row else sorted(_TOLD.intersection(row))
    found = {
        key: value
        for key, value in zip(names, map(told.__getitem__, names), strict=True)
        if (value not in known if isinstance(value, str) else isinstance(value, _NUMBERS))
    }
    record_id = row.get("id")
    if isinstance(record_id, str) and record_id not in known:
        found["record_id"] = record_id
    return found
