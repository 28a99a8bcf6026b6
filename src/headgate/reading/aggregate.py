"""Aggregates: a number, or one for each group."""

from __future__ import annotations

import msgspec

from headgate.audit.journal import Disclosed
from headgate.model.ids import FieldName
from headgate.model.plan import AggregatePlan, TimeGroups
from headgate.model.query import AggregateQuery, Metric
from headgate.model.rows import Aggregate, Group
from headgate.model.warning import ReadWarning, index_building, records_damaged
from headgate.policy.decide import decide_aggregate
from headgate.reading.empty_answers import empty_notes
from headgate.reading.home import CurrentRead, Served, meta, short_meta
from headgate.reading.links import aggregate_link
from headgate.reading.port import Body
from headgate.reading.search import understood_body
from headgate.reading.stream_facts import read_coverage


async def aggregate(read: CurrentRead, query: AggregateQuery, page_bytes: int | None) -> Served:
    """Compute a number, or one for each group; with ``page_bytes`` in the short form."""
    decision = decide_aggregate(read.decisions.allowance, query)
    plan, (scope,) = decision.plan, decision.scopes
    # Words are looked for in the thread of searches.
    turns = read.home.searches if plan.reads_texts else read.home.computations
    async with turns.of(read.context.access):
        numbers = await read.home.store.aggregate(plan)
    body = _body(query, plan, numbers)
    notes, compared = (
        ((), ()) if numbers.filtered_record_count else await empty_notes(read, scope, plan.filters)
    )
    body |= {"links": {"self": aggregate_link(query)}, "meta": _meta(read, numbers, notes)}
    if plan.metric is Metric.COUNT:
        body |= await read_coverage(read, scope)
    fields = _aggregated_fields(plan)
    shown = [Disclosed(connection, query.stream, fields) for connection in plan.reach.connection_ids]
    return Served(body if page_bytes is None else _short(body), (*shown, *compared))


def _short(body: Body) -> Body:
    """Leave out the members that say nothing, and what repeats the call."""
    telling = {
        name: value
        for name, value in body.items()
        if name == "value" or (value is not None and name not in {"approximate", "limit", "links", "meta"})
    }
    for gap in ("missing_value_count", "unreadable_value_count"):
        if not telling.get(gap):
            telling.pop(gap, None)
    notes = short_meta(body["meta"])
    return {**telling, "meta": notes} if notes else telling


def _meta(read: CurrentRead, numbers: Aggregate, notes: tuple[ReadWarning, ...]) -> Body | msgspec.Raw:
    lacks = ((index_building(),) if numbers.is_index_building else ()) + notes
    lacks += tuple(records_damaged(numbers.damaged))
    if numbers.understood is None:
        return read.meta(lacks)
    return meta((*read.context.warnings, *lacks)) | {"understood": understood_body(numbers.understood)}


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
    if query.q is not None:
        body["q"] = query.q
    if numbers.quoted_count is not None:
        body["quoted_count"] = numbers.quoted_count
    if query.in_fields is not None:
        body["in"] = list(query.in_fields)
    if query.extract is not None:
        body |= {"extract": query.extract, "value_count": numbers.value_count}
    if numbers.missing_count is not None:
        body["missing_value_count"] = numbers.missing_count
    if numbers.unreadable_count is not None:
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
        **({"value": group.value} if plan.has_values else {}),
        # Few groups have any: a group without these members has none.
        **({"missing_value_count": group.missing_count} if group.missing_count else {}),
        **({"unreadable_value_count": group.unreadable_count} if group.unreadable_count else {}),
    }


def _aggregated_fields(plan: AggregatePlan) -> tuple[FieldName, ...]:
    keys = (key.field if isinstance(key, TimeGroups) else key for key in (plan.group_by, plan.then_by))
    named = [plan.field, *keys, *(condition.field for condition in plan.filters)]
    for texts in (plan.words, plan.extract):
        named += () if texts is None else texts.search_fields
    return tuple(dict.fromkeys(name for name in named if name is not None))
