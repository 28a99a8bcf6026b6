"""Samples of a grant as a table: what tells records apart first, long texts last, and what is withheld marked."""

from __future__ import annotations

from headgate.console.formatting import minute
from headgate.console.pages import View
from headgate.model.declaration import PEOPLE_FIELDS, TITLE_FIELDS
from headgate.model.instants import instant
from headgate.reading.preview import GrantPreview, SampleField

_LONG_CHARS = 60
_SHOWN_CHARS = 120


def sample_table(seen: GrantPreview) -> View:
    """Lay out samples, whose records may have different fields."""
    rows = [{field.name: field for field in sample} for sample in seen.samples]
    fields = {field.name: field for row in rows for field in row.values()}
    long = {field.name for row in rows for field in row.values() if len(field.value) > _LONG_CHARS}
    ordered = sorted(
        fields.values(), key=lambda field: (_rank(field, is_long=field.name in long), field.name)
    )
    return View(
        columns=tuple(
            View(name=field.name, is_withheld=field.is_withheld, is_long=field.name in long)
            for field in ordered
        ),
        rows=tuple(tuple(_text(row.get(field.name)) for field in ordered) for row in rows),
    )


def _rank(field: SampleField, *, is_long: bool) -> int:
    if field.name in TITLE_FIELDS:
        return 0
    if field.name in PEOPLE_FIELDS:
        return 1
    return 4 if is_long else 2 if instant(field.value) is not None else 3


def _text(field: SampleField | None) -> str:
    if field is None:
        return ""
    at = instant(field.value)
    if at is not None:
        return minute(at)
    return field.value if len(field.value) <= _SHOWN_CHARS else field.value[: _SHOWN_CHARS - 1] + "…"
