"""Cuts a page to the records that a grant may still show: a record counts once, and so does each related record."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from headgate.model.declaration import Cardinality
from headgate.model.disclosure import ShownRecord
from headgate.model.plan import ExpandPlan
from headgate.model.record import Children, Record


def children_of(record: Record, plan: ExpandPlan) -> tuple[Record, ...]:
    """Return the related records that an answer shows."""
    children = record.expanded.get(plan.name)
    if children is None:
        return ()
    # Of a relation to one record only that one is in the answer.
    return children.records[:1] if plan.cardinality is Cardinality.HAS_ONE else children.records


def fitting(records: Sequence[Record], expand: Sequence[ExpandPlan], most: int) -> int:
    """Return how many of the first records fit, each with all its related ones."""
    seen: set[ShownRecord] = set()
    for number, record in enumerate(records):
        seen.update(_shown(record, expand))
        if len(seen) > most:
            return number
    return len(records)


def cut_children(record: Record, expand: Sequence[ExpandPlan], most: int) -> Record:
    """Leave out the related records of one record that do not fit beside it."""
    seen, expanded = {_key(record)}, dict(record.expanded)
    for plan in expand:
        shown = list[Record]()
        for child in children_of(record, plan):
            if _key(child) in seen or len(seen) < most:
                seen.add(_key(child))
                shown.append(child)
        known = record.expanded.get(plan.name)
        if known is not None and len(shown) < len(children_of(record, plan)):
            expanded[plan.name] = Children(tuple(shown), has_more=True, damaged=known.damaged)
    return replace(record, expanded=expanded)


def _shown(record: Record, expand: Sequence[ExpandPlan]) -> Iterator[ShownRecord]:
    yield _key(record)
    for plan in expand:
        yield from map(_key, children_of(record, plan))


def _key(record: Record) -> ShownRecord:
    return record.connection_id, record.stream, record.id
