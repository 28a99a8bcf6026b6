"""Titles: what a person would call a record, never what was found in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headgate.text.budget import cut

TITLE_CHARS = 200
_NAMED = ("title", "name", "subject", "summary")
_NAMES = frozenset(_NAMED)
_TIMES = ("sent_at", "authored_at", "created_at", "source_created_at", "occurred_at", "updated_at")
_NESTED = ("data", "record", "metadata", "source")
_LABELS = ("display_name", "connector_key", "connection_id")


def title(record: Mapping[str, Any]) -> str:
    """Call a record or a hit by its own title, or else by its source, stream and time."""
    data = record.get("data")
    places = [record, cast("Mapping[str, Any]", data)] if isinstance(data, dict) else [record]
    own = _first([place for place in places if not _NAMES.isdisjoint(place)], _NAMED)
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
