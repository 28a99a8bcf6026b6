"""By the text alone: find out what can be computed, compute it, and compare it with what was written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from tests.journeys.agent import TextAgent
from tests.journeys.sessions import SharedHome
from tests.journeys.worlds import WAYS, Record

Groups = dict[tuple[Any, ...], float]


def grouped(records: list[Record], key: Callable[[Record], tuple[Any, ...]], field: str) -> Groups:
    found: Groups = defaultdict(float)
    for record in records:
        found[key(record)] += record[field]
    return dict(found)


def month(time: str) -> str:
    return time[:7]


#: A connector of a world, its stream, and fields to compute with: a number, a group and a time.
PLACES = (
    ("crowd", "bank0", "payments", ("amount", "payee", "paid_at")),
    ("crowd", "bank23", "payments", ("amount", "payee", "paid_at")),
    ("stitched", "mail", "messages", ("size", "sender", "sent_at")),
    ("stitched", "chat", "messages", ("reactions", "author", "sent_at")),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("world", "connector", "stream", "fields"), PLACES)
def test_numbers_are_those_of_the_records(
    home: SharedHome, world: str, connector: str, stream: str, fields: tuple[str, str, str], way: str
):
    agent, truth = TextAgent(home.session(world, way)), home.worlds[world]
    (source,) = [one for one in agent.sources(stream) if one.connector_key == connector]
    records = [record for one in source.connections for record in truth.written[one, stream]]
    place = {"stream": stream, "connector_key": connector}
    number, group, time = fields
    assert number in source.aggregations["sum"]
    assert group in source.aggregations["group_by"]
    assert time in source.aggregations["group_by_time"]
    values = [record[number] for record in records]
    assert agent.number(**place, metric="count") == len(records)
    for metric, expected in {"sum": sum(values), "min": min(values), "max": max(values)}.items():
        assert agent.number(**place, metric=metric, field=number) == expected
    distinct = len({record[group] for record in records})
    assert agent.number(**place, metric="count_distinct", field=group) == distinct
    summed = {**place, "metric": "sum", "field": number}
    by_month = {"group_by_time": time, "granularity": "month"}
    assert agent.groups(**summed, **by_month) == grouped(records, lambda one: (month(one[time]),), number)
    assert agent.groups(**summed, group_by=group) == grouped(records, lambda one: (one[group],), number)


@pytest.mark.parametrize("way", WAYS)
def test_groups_that_do_not_fit_are_read_with_the_printed_cursor(home: SharedHome, way: str):
    agent, truth = TextAgent(home.session("crowd", way)), home.worlds["crowd"]
    (source,) = [one for one in agent.sources("payments") if one.connector_key == "bank0"]
    records = [record for one in source.connections for record in truth.written[one, "payments"]]
    place = {"stream": "payments", "connector_key": "bank0", "metric": "sum", "field": "amount"}
    both = {"group_by": "payee", "group_by_time": "paid_at", "granularity": "month"}
    assert "groups that are not printed" in agent.ask("aggregate", **place, **both, limit=100)
    assert agent.groups(**place, **both) == grouped(records, _by_both, "amount")


@pytest.mark.parametrize("way", WAYS)
def test_a_sum_by_payee_and_month_of_one_account_is_exact(home: SharedHome, way: str):
    agent, truth = TextAgent(home.session("crowd", way)), home.worlds["crowd"]
    expected: Groups = {}
    found: Groups = {}
    for source in agent.sources("payments")[:2]:
        for one in source.connections:
            records = truth.written[one, "payments"]
            expected |= {(one, *key): value for key, value in grouped(records, _by_both, "amount").items()}
            place = {"stream": "payments", "connection_id": one, "metric": "sum", "field": "amount"}
            groups = agent.groups(**place, group_by="payee", group_by_time="paid_at", granularity="month")
            found |= {(one, *key): value for key, value in groups.items()}
    assert found == expected


def _by_both(record: Record) -> tuple[Any, ...]:
    return record["payee"], month(record["paid_at"])
