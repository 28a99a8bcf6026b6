"""What of the records an answer shows: for the log, and for the count of a day."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.audit.disclose import disclosed
from headgate.model.disclosure import Disclosed
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, ExpandPlan, PagePlan, TimeGroups
from headgate.model.record import Record
from headgate.model.rows import Hit, SearchPage
from headgate.policy.allowance import StreamScope
from headgate.reading.cutting import children_of
from headgate.reading.port import Body


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
    times = {(one.id, scope.stream): _time_field(scope) for scope in scopes for one in scope.connections}
    return tuple(
        part
        for hit, row in zip(page.hits, rows, strict=True)
        for part in disclosed(
            [hit.record], _hit_fields(hit, row, times[hit.record.connection_id, hit.record.stream])
        )
    )


def _hit_fields(hit: Hit, row: Body, time_field: FieldName | None) -> tuple[FieldName, ...]:
    time = None if hit.authored_at is None else time_field
    named = [*(one.field for one in hit.snippets), *row.get("data", ()), time]
    return tuple(dict.fromkeys(name for name in named if name is not None))


def _time_field(scope: StreamScope) -> FieldName | None:
    return scope.declaration.consent_time_field or scope.declaration.cursor_field
