"""Of which period a connection has every record, as far as what was imported says it.

A bank statement is of one account and one period, and an account that is fetched is there up to now. What several
parts have in common is what the whole connection has; a part of unknown period makes the whole unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from headgate.model.instants import instant, iso
from headgate.model.record import Coverage, with_coverage
from headgate.sources.formats.values import day_after
from headgate.sources.protocol import Covered

_MEMBER = "periods"
#: The part of records of an unknown period.
_OTHER = "?"
_DAY_CHARS = 10

#: The first and the last day; None: from the beginning. A part of unknown period has none.
Period = tuple[str | None, str]


@dataclass(frozen=True, slots=True)
class ImportedStream:
    """What one import brought of a stream."""

    covered: Sequence[Covered]
    #: Whether it brought records, and whether there were some before.
    has_rows: bool
    had_rows: bool
    #: Whether a part of what was read is missing.
    has_rejects: bool
    began_at: int
    complete_at: int


def noted(state: Mapping[str, Any], stream: str, imported: ImportedStream) -> dict[str, Any]:
    """Note in the state of a connection what an import that was read to its end covers."""
    every: dict[str, Any] = _members(state.get(_MEMBER))
    periods = {part: _period(stored) for part, stored in _members(every.get(stream)).items()}
    covered = () if imported.has_rejects else imported.covered
    if not periods and not covered:
        return dict(state)
    if (not periods and imported.had_rows) or (imported.has_rows and not covered):
        periods[_OTHER] = None
    for part in covered:
        end = part.end or iso(imported.began_at)[:_DAY_CHARS]
        periods[part.part] = _joined(periods.get(part.part), (part.start, end))
    written = {part: None if period is None else list(period) for part, period in periods.items()}
    start, end = _common(periods.values())
    coverage = Coverage(start, end, imported.began_at, imported.complete_at)
    return with_coverage({**state, _MEMBER: {**every, stream: written}}, coverage, stream)


def _members(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _period(stored: Any) -> Period | None:
    match stored:
        case [None | str() as start, str() as end]:
            return start, end
        case _:
            return None


def _joined(known: Period | None, new: Period) -> Period:
    """Put periods together that overlap or follow each other; of others the later one counts."""
    if known is None:
        return new
    earlier, later = sorted((known, new), key=lambda period: period[0] or "")
    if later[0] is not None and day_after(earlier[1]) < later[0]:
        return later
    return earlier[0], max(earlier[1], later[1])


def _common(periods: Iterable[Period | None]) -> tuple[int | None, int]:
    """Return the period that all have in common: one that ends before it begins if there is none."""
    starts, ends = list[str](), list[str]()
    for period in periods:
        if period is None:
            return 1, 0
        starts += [] if period[0] is None else [period[0]]
        ends.append(period[1])
    return (instant(max(starts)) if starts else None), instant(min(ends)) or 0
