"""The compact form of a schema: what is the same for all stands once, and what is always so not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from headgate.audit.journal import Disclosed
from headgate.model.declaration import FieldKind
from headgate.model.ids import ConnectorKey, FieldName, GrantId, StreamName
from headgate.model.instants import iso
from headgate.model.plan import AggregatePlan
from headgate.model.query import Metric
from headgate.model.wire import flag_line
from headgate.policy.allowance import StreamScope
from headgate.policy.capability import RelationCapability, Use
from headgate.policy.decide import whole
from headgate.reading.home import CurrentRead, time_field, times_of
from headgate.reading.port import Body
from headgate.reading.stream_facts import (
    DAY_CHARS,
    Summaries,
    connection_body,
    count_of,
    coverage_of,
    facts_of,
    field_flags,
)

#: Values are read of so many sources, fields and records at most, and shown of fields that have few.
_MOST_SOURCES = 4
_MOST_FIELDS = 8
_MOST_RECORDS = 20_000
_FEW_VALUES = 24
_SHOWN_VALUES = 5
_VALUE_CHARS = 40

_Place = tuple[GrantId | None, ConnectorKey, StreamName]
#: By grant, connector and stream: the most frequent values of fields with few, by field.
Values = Mapping[_Place, Mapping[FieldName, Sequence[str]]]


def _place(scope: StreamScope) -> _Place:
    return scope.grant_id, scope.connector_key, scope.stream


def compact_connector(group: Sequence[StreamScope], summaries: Summaries, values: Values) -> Body:
    """Describe every stream of a connector in a few words: one flag string for each field."""
    shared = Counter(scope.connections for scope in group).most_common(1)[0][0]
    rows = [_compact_stream(scope, summaries, values.get(_place(scope), {})) for scope in group]
    for row, scope in zip(rows, group, strict=True):
        if scope.connections != shared:
            row["granted_connections"] = [connection_body(connection) for connection in scope.connections]
    return {
        "connector_key": group[0].connector_key,
        "display_name": group[0].source.display_name,
        "granted_connections": [connection_body(granted) for granted in shared],
        "streams": rows,
    }


def _compact_stream(
    scope: StreamScope, summaries: Summaries, values: Mapping[FieldName, Sequence[str]]
) -> Body:
    capability = scope.capability
    key = [name for name in scope.declaration.primary_key if name in capability.fields]
    row: Body = {"name": scope.stream, "record_count": count_of(scope, summaries), **_line(scope, summaries)}
    optional: Body = {
        "primary_key": key if key != ["id"] else None,
        "cursor_field": capability.sort_field,
        "field_capabilities": {
            name: flag_line(field_flags(field)) for name, field in capability.fields.items()
        },
        "expand_capabilities": [_compact_expand(relation) for relation in capability.relations.values()],
        "views": list(capability.views),
        "values": {name: list(common) for name, common in values.items()},
    }
    row |= {member: value for member, value in optional.items() if value}
    return row | {"count": bool(capability.counts)}


def _line(scope: StreamScope, summaries: Summaries) -> Body:
    """Return which times the visible records span, and which visible fields say when, who, how much and what."""
    line, visible = scope.declaration.line, scope.capability.fields
    span = _span(scope, summaries)
    named: Body = {
        "time": line.time if line.time in visible else None,
        "title": next((name for name in (line.title, line.text) if name in visible), None),
        "who": [name for name in line.who if name in visible],
        "amount": line.amount if line.amount in visible else None,
    }
    shown = {part: name for part, name in named.items() if name}
    return {
        **({} if span is None else {"span": [iso(time)[:DAY_CHARS] for time in span]}),
        **({"line": shown} if shown else {}),
        **times_of([scope]),
        **coverage_of(scope, summaries),
    }


def _span(scope: StreamScope, summaries: Summaries) -> tuple[int, int] | None:
    if scope.declaration.line.time != time_field(scope):
        return None
    spans = [stored.span for stored in facts_of(scope, summaries) if stored.span is not None]
    return (min(first for first, _ in spans), max(last for _, last in spans)) if spans else None


def _compact_expand(capability: RelationCapability) -> Body:
    relation, expansion = capability.relation, capability.expansion
    body: Body = {
        "name": relation.name,
        "default_limit": expansion.default_limit,
        "max_limit": expansion.max_limit,
    }
    body |= {} if relation.stream == relation.name else {"stream": relation.stream}
    return (
        body if capability.refused is None else body | {"usable": False, "reason": capability.refused.value}
    )


async def common_values(read: CurrentRead, scopes: Sequence[StreamScope], summaries: Summaries) -> Values:
    """Read the most frequent visible values of fields that have few, where that takes no time to speak of."""
    values: dict[_Place, Mapping[FieldName, Sequence[str]]] = {}
    for scope in scopes[:_MOST_SOURCES]:
        names = [
            name
            for name in scope.capability.with_use(Use.GROUP_BY)
            if scope.capability.fields[name].field.kind is FieldKind.TEXT
        ]
        if 0 < count_of(scope, summaries) <= _MOST_RECORDS:
            values[_place(scope)] = {
                name: common
                for name in names[:_MOST_FIELDS]
                if (common := await _values_of(read, scope, name))
            }
    return values


async def _values_of(read: CurrentRead, scope: StreamScope, name: FieldName) -> Sequence[str]:
    plan = AggregatePlan(whole(scope), Metric.COUNT, group_by=name, limit=_FEW_VALUES + 1)
    async with read.home.computations.of(read.context.access):
        groups = (await read.home.store.aggregate(plan)).groups or ()
    if len(groups) > _FEW_VALUES:
        return ()
    texts = [group.key for group in groups if isinstance(group.key, str)]
    shown = [text for text in texts if len(text) <= _VALUE_CHARS][:_SHOWN_VALUES]
    # Without it the list would read as if it were all of them.
    more = [f"… {len(texts) - len(shown)} more"] if len(texts) > len(shown) else []
    return [*shown, *more] if shown else ()


def values_shown(
    scopes: Sequence[StreamScope], summaries: Summaries, values: Values
) -> tuple[Disclosed, ...]:
    """Name the fields of which a compact schema shows values: the times that records span, and frequent values."""
    shown: list[Disclosed] = []
    for scope in scopes:
        time = scope.declaration.line.time
        named = [
            *([time] if time is not None and _span(scope, summaries) else []),
            *values.get(_place(scope), {}),
        ]
        if named:
            fields = tuple(dict.fromkeys(named))
            shown += [Disclosed(connection.id, scope.stream, fields) for connection in scope.connections]
    return tuple(shown)
