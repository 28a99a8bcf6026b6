"""What of the records an answer shows: for the log, and for the count of a day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from headgate.audit.disclose import disclosed
from headgate.model.declaration import Cardinality
from headgate.model.disclosure import Disclosed, ShownRecord
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, ExpandPlan, PagePlan, TimeGroups
from headgate.model.record import Children, Record
from headgate.model.rows import Hit, SearchPage
from headgate.policy.allowance import StreamScope
from headgate.reading.port import Body


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


def records_shown(
    records: tuple[Record, ...], fields: tuple[FieldName, ...], expand: Sequence[ExpandPlan]
) -> tuple[Disclosed, ...]:
    """Name the records of an answer and those that are related to them, with their fields."""
    if not expand:
        return disclosed(records, fields)
    children = (
        part
        for plan in expand
        for part in disclosed(
            [child for record in records for child in children_of(record, plan)], plan.child.fields
        )
    )
    return (*disclosed(records, fields), *children)


def extent_shown(meta: Body, plan: PagePlan, scope: StreamScope) -> tuple[Disclosed, ...]:
    """Name the time field, if the times that all records span are shown."""
    time_field = _time_field(scope)
    if time_field is None or "earliest_at" not in meta.get("window", ()):
        return ()
    return tuple(Disclosed(one, plan.reach.stream, (time_field,)) for one in plan.reach.connection_ids)


def aggregated_fields(plan: AggregatePlan) -> tuple[FieldName, ...]:
    """Name the fields that numbers were made of."""
    keys = (key.field if isinstance(key, TimeGroups) else key for key in (plan.group_by, plan.then_by))
    named = [plan.field, *keys, *(one.field for one in plan.filters)]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def hits_shown(
    page: SearchPage, rows: Sequence[Body], scopes: Sequence[StreamScope]
) -> tuple[Disclosed, ...]:
    """Name the fields that hits show: those of the snippets, of the title, and of the record's time."""
    times = {
        (connection.id, scope.stream): _time_field(scope)
        for scope in scopes
        for connection in scope.connections
    }
    return tuple(
        part
        for hit, row in zip(page.hits, rows, strict=True)
        for part in disclosed(
            [hit.record], _hit_fields(hit, row, times[hit.record.connection_id, hit.record.stream])
        )
    )


def _hit_fields(hit: Hit, row: Body, time_field: FieldName | None) -> tuple[FieldName, ...]:
    time = None if hit.authored_at is None else time_field
    named = [*(snippet.field for snippet in hit.snippets), *row.get("data", ()), time]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _time_field(scope: StreamScope) -> FieldName | None:
    return scope.declaration.consent_time_field or scope.declaration.cursor_field
