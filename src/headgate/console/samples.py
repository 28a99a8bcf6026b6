"""Samples of a grant as a table: what tells records apart first, long texts last, and what is withheld marked."""

from __future__ import annotations

from headgate.console.formatting import minute
from headgate.console.pages import View
from headgate.model.instants import instant
from headgate.reading.preview import GrantPreview, SampleField
from headgate.text.writing import cut

_LONG_CHARS = 60
_SHOWN_CHARS = 120


def sample_table(seen: GrantPreview) -> View:
    """Lay out samples, whose records may have different fields."""
    rows = [{field.name: field for field in sample.fields} for sample in seen.samples]
    fields = {field.name: field for row in rows for field in row.values()}
    long = {field.name for row in rows for field in row.values() if len(field.value) > _LONG_CHARS}
    ordered = sorted(
        (fields[name] for name in seen.fields if name in fields), key=lambda field: field.name in long
    )
    return View(
        columns=tuple(
            View(name=field.name, is_withheld=field.is_withheld, is_long=field.name in long)
            for field in ordered
        ),
        rows=tuple(tuple(_text(row.get(field.name)) for field in ordered) for row in rows),
    )


def _text(field: SampleField | None) -> str:
    if field is None:
        return ""
    at = instant(field.value)
    return cut(field.value, _SHOWN_CHARS) if at is None else minute(at)
