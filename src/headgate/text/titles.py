"""Titles: what a person would call a record, never the words that a search matched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headgate.model.declaration import TITLE_FIELDS
from headgate.model.wire import HitBody, RecordBody
from headgate.text.budget import cut

TITLE_CHARS = 200
_TITLE_SET = frozenset(TITLE_FIELDS)
_TIMES = ("sent_at", "authored_at", "created_at", "source_created_at", "occurred_at", "updated_at")
_NESTED = ("data", "record", "metadata", "source")
_LABELS = ("display_name", "connector_key", "connection_id")


def title(body: RecordBody | HitBody) -> str:
    """Name a record or a hit by its title, or else by its source, stream and time."""
    # Another server can put a title or a time anywhere.
    record = cast("Mapping[str, Any]", body)
    data = record.get("data")
    places = [record, cast("Mapping[str, Any]", data)] if isinstance(data, dict) else [record]
    own = _first([place for place in places if not _TITLE_SET.isdisjoint(place)], TITLE_FIELDS)
    if own:
        return cut(" ".join(own.split()), TITLE_CHARS)
    time = _first([record, *_inner(record, _NESTED)], _TIMES) or _first([record], ("emitted_at",))
    parts = (_first([record], _LABELS), _first([record], ("stream",)), time)
    return cut(" / ".join(part for part in parts if part), TITLE_CHARS)


def _inner(record: Mapping[str, Any], names: tuple[str, ...]) -> list[Mapping[str, Any]]:
    return [value for name in names if isinstance(value := record.get(name), dict)]


def _first(places: list[Mapping[str, Any]], names: tuple[str, ...]) -> str:
    for place in places:
        for name in names:
            if name in place:
                value = place[name]
                if isinstance(value, str) and value.strip():
                    return value
    return ""
