"""What an answer without records says: the visible values nearest to those of its filters, and what the stream covers."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.audit.journal import Disclosed
from headgate.model.declaration import FieldKind
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan
from headgate.model.query import ExactFilter, Filter, Metric
from headgate.model.warning import ReadWarning, filter_empty, period_covered, value_unknown
from headgate.nearest import nearest
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import Use
from headgate.policy.decide import whole
from headgate.reading.home import CurrentRead
from headgate.reading.stream_facts import count_of, coverage_of, read_summaries

#: Values are compared where that takes no time to speak of.
_MOST_RECORDS = 50_000
_MOST_VALUES = 1_000
_VALUE_CHARS = 60
#: A search of more streams that found nothing says nothing of them.
_MOST_STREAMS = 3


async def search_notes(
    read: CurrentRead, scopes: Sequence[StreamScope], filters: Sequence[Filter]
) -> tuple[tuple[ReadWarning, ...], tuple[Disclosed, ...]]:
    """Say the same of a search that found nothing in few streams, and where its filter alone lets no record through."""
    notes: list[ReadWarning] = []
    shown: list[Disclosed] = []
    for scope in scopes if len(scopes) <= _MOST_STREAMS else ():
        name = scope.stream if len(scopes) == 1 else f"{scope.stream} of {scope.connector_key}"
        of_stream, compared = await empty_notes(read, scope, filters, name)
        # Where a value of the filter is unknown, that says it.
        if filters and not compared and not await _count(read, scope, filters):
            notes.append(filter_empty(name))
        notes += of_stream
        shown += compared
    return tuple(notes), tuple(shown)


async def _count(read: CurrentRead, scope: StreamScope, filters: Sequence[Filter]) -> int:
    plan = AggregatePlan(whole(scope), Metric.COUNT, filters=tuple(filters))
    async with read.home.computations.of(read.context.access):
        return (await read.home.store.aggregate(plan)).filtered_record_count


async def empty_notes(
    read: CurrentRead, scope: StreamScope, filters: Sequence[Filter], name: str | None = None
) -> tuple[tuple[ReadWarning, ...], tuple[Disclosed, ...]]:
    """Say what may have been meant, and of which period every record is there; with the fields whose values that shows.

    ``name`` is what the stream is called in the notes, if several have its name.
    """
    summaries = await read_summaries(read, (scope,))
    notes: list[ReadWarning] = []
    named: list[FieldName] = []
    if 0 < count_of(scope, summaries) <= _MOST_RECORDS:
        for condition in filters:
            if isinstance(condition, ExactFilter) and _has_few(scope, condition.field):
                near = await _near_values(read, scope, condition)
                if near:
                    notes.append(value_unknown(condition.field, near))
                    named.append(condition.field)
    coverage = coverage_of(scope, summaries).get("coverage")
    if coverage is not None:
        notes.append(period_covered(name or scope.stream, coverage.get("start"), coverage.get("end")))
    shown = (
        Disclosed(connection.id, scope.stream, tuple(named)) for connection in scope.connections if named
    )
    return tuple(notes), tuple(shown)


def _has_few(scope: StreamScope, name: FieldName) -> bool:
    """Return whether a field is one of texts that records may be grouped by, so that its values may be listed anyway."""
    capability = scope.capability.fields[name]
    return capability.field.kind is FieldKind.TEXT and capability.usable(Use.GROUP_BY)


async def _near_values(read: CurrentRead, scope: StreamScope, condition: ExactFilter) -> list[str]:
    """Return the visible values nearest to one that no visible record has; none if a record has it."""
    plan = AggregatePlan(whole(scope), Metric.COUNT, group_by=condition.field, limit=_MOST_VALUES)
    async with read.home.computations.of(read.context.access):
        groups = (await read.home.store.aggregate(plan)).groups or ()
    values = [group.key for group in groups if isinstance(group.key, str)]
    if condition.value in values:
        return []
    return [value[:_VALUE_CHARS] for value in nearest(str(condition.value), values)]
