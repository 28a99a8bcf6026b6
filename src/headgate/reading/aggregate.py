"""Aggregates: a number, or one for each group."""

from __future__ import annotations

from headgate.model.disclosure import Disclosed
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, TimeGroups
from headgate.model.query import AggregateQuery
from headgate.model.rows import Aggregate, Group
from headgate.policy.decide import decide_aggregate
from headgate.reading.home import CurrentRead, Served
from headgate.reading.links import aggregate_link
from headgate.reading.port import Body


async def aggregate(read: CurrentRead, query: AggregateQuery) -> Served:
    """Compute a number, or one for each group."""
    plan = decide_aggregate(read.decisions.allowance, query).plan
    async with read.home.computations.of(read.context.access):
        numbers = await read.home.store.aggregate(plan)
    body = _body(query, plan, numbers) | {"links": {"self": aggregate_link(query)}, "meta": read.meta()}
    fields = _aggregated_fields(plan)
    return Served(
        body,
        tuple(Disclosed(connection, query.stream, fields) for connection in plan.reach.connection_ids),
    )


def _body(query: AggregateQuery, plan: AggregatePlan, numbers: Aggregate) -> Body:
    """Return a number, or groups."""
    by_time = plan.group_by if isinstance(plan.group_by, TimeGroups) else plan.then_by
    body: Body = {
        "object": "aggregation",
        "stream": query.stream,
        "metric": query.metric,
        "field": query.field,
        "group_by": query.group_by,
        "group_by_time": query.group_by_time,
        "granularity": query.granularity,
        "time_zone": None if by_time is None else by_time.time_zone,
        "approximate": False,
        "filtered_record_count": numbers.filtered_record_count,
    }
    if numbers.missing_count is not None:
        body["missing_value_count"] = numbers.missing_count
        body["unreadable_value_count"] = numbers.unreadable_count
    if numbers.groups is None:
        return body | {"value": numbers.value}
    groups = [_group_row(plan, group) for group in numbers.groups]
    return body | {"limit": plan.limit, "groups": groups, "other_count": numbers.other_count}


def _group_row(plan: AggregatePlan, group: Group) -> Body:
    return {
        "key": group.key,
        **({} if plan.then_by is None else {"time": group.time}),
        "count": group.count,
        **({} if plan.field is None else {"value": group.value}),
        # Few groups have any: a group without these members has none.
        **({"missing_value_count": group.missing_count} if group.missing_count else {}),
        **({"unreadable_value_count": group.unreadable_count} if group.unreadable_count else {}),
    }


def _aggregated_fields(plan: AggregatePlan) -> tuple[FieldName, ...]:
    keys = (key.field if isinstance(key, TimeGroups) else key for key in (plan.group_by, plan.then_by))
    named = [plan.field, *keys, *(condition.field for condition in plan.filters)]
    return tuple(dict.fromkeys(name for name in named if name is not None))
