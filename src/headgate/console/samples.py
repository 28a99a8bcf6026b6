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
    rows = [{one.name: one for one in sample} for sample in seen.samples]
    fields = {one.name: one for row in rows for one in row.values()}
    long = {one.name for row in rows for one in row.values() if len(one.value) > _LONG_CHARS}
    ordered = sorted(fields.values(), key=lambda one: (_rank(one, is_long=one.name in long), one.name))
    return View(
        columns=tuple(
            View(name=one.name, is_withheld=one.is_withheld, is_long=one.name in long) for one in ordered
        ),
        rows=tuple(tuple(_text(row.get(one.name)) for one in ordered) for row in rows),
    )


def _rank(one: SampleField, *, is_long: bool) -> int:
    if one.name in TITLE_FIELDS:
        return 0
    if one.name in PEOPLE_FIELDS:
        return 1
    return 4 if is_long else 2 if instant(one.value) is not None else 3


def _text(one: SampleField | None) -> str:
    if one is None:
        return ""
    at = instant(one.value)
    if at is not None:
        return minute(at)
    return one.value if len(one.value) <= _SHOWN_CHARS else one.value[: _SHOWN_CHARS - 1] + "…"
