"""Titles: what a person would call a record, never the words that a search matched."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from headgate.model.declaration import TITLE_FIELDS
from headgate.model.wire import HitBody, RecordBody
from headgate.text.binary import binary_facts
from headgate.text.budget import cut

TITLE_CHARS = 200
_TITLE_SET = frozenset(TITLE_FIELDS)
_TIMES = ("sent_at", "authored_at", "created_at", "source_created_at", "occurred_at", "updated_at")
_NESTED = ("data", "record", "metadata", "source")
_Found = tuple[Mapping[str, Any], str]
_LABELS = ("display_name", "connector_key", "connection_id")


#: The fields of a record that a title can be made of.
TITLE_SOURCES = frozenset({*TITLE_FIELDS, *_TIMES})


def title(body: RecordBody | HitBody) -> str:
    """Name a record or a hit by its title, or else by its source, stream and time."""
    # Another server can put a title or a time anywhere.
    record = cast("Mapping[str, Any]", body)
    own = _text(_own_title(record))
    if own:
        return cut(" ".join(own.split()), TITLE_CHARS)
    time = _text(_time(record)) or _text(_find([record], ("emitted_at",)))
    labels = _text(_find([record], _LABELS)), _text(_find([record], ("stream",)))
    return cut(" / ".join(part for part in (*labels, time) if part), TITLE_CHARS)


def title_field(body: RecordBody | HitBody) -> str | None:
    """Return the field of ``data`` that the title is made of; None if it is made of other members."""
    record = cast("Mapping[str, Any]", body)
    found = _own_title(record) or _time(record)
    return found[1] if found is not None and found[0] is record.get("data") else None


def _own_title(record: Mapping[str, Any]) -> _Found | None:
    data = record.get("data")
    places = [record, cast("Mapping[str, Any]", data)] if isinstance(data, dict) else [record]
    return _find([place for place in places if not _TITLE_SET.isdisjoint(place)], TITLE_FIELDS)


def _time(record: Mapping[str, Any]) -> _Found | None:
    return _find([record, *_inner(record, _NESTED)], _TIMES)


def _text(found: _Found | None) -> str:
    return "" if found is None else found[0][found[1]]


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
