from __future__ import annotations

import math
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from headgate.errors import ResourceLimit
from headgate.model.ids import FieldName
from headgate.model.instants import instant, iso
from headgate.model.plan import AggregatePlan, TimeGroups
from headgate.model.query import Count, ExactFilter, Granularity, Metric
from headgate.model.rows import Aggregate, Group
from tests.store.engines import Driven
from tests.store.ledger import Ledger
from tests.store.model import decimal_sum, local_bucket


def _ask(ledger: Ledger, metric: Metric, field: str | None = None, **options: Any) -> Aggregate:
    name = None if field is None else FieldName(field)
    return ledger.store.aggregate(AggregatePlan(ledger.reach(), metric, name, **options))


def _groups(ledger: Ledger, field: str, limit: int = 10) -> list[tuple[Any, int]]:
    found = _ask(ledger, Metric.COUNT, group_by=FieldName(field), limit=limit)
    assert found.groups is not None
    assert found.filtered_record_count == sum(group.count for group in found.groups) + found.other_count
    return [(group.key, group.count) for group in found.groups]


def test_nothing_adds_up_to_nothing(ledger: Ledger):
    for _ in range(2):
        assert _ask(ledger, Metric.COUNT) == Aggregate(0, 0)
        assert _ask(ledger, Metric.SUM, "size") == Aggregate(0, 0, None, 0, 0, 0)
        assert _ask(ledger, Metric.COUNT_DISTINCT, "label") == Aggregate(0, 0, None, 0, 0, 0)
        assert (
            _ask(ledger, Metric.MIN, "size")
            == _ask(ledger, Metric.MAX, "at")
            == Aggregate(0, None, None, 0, 0, 0)
        )
        assert _ask(ledger, Metric.COUNT, group_by=FieldName("label")) == Aggregate(0, None, ())
        # The second time the stream is not new any more, and still empty.
        ledger.put({"id": "a"})
        ledger.remove("a")


def test_records_without_a_value_count_as_records_and_not_as_values(ledger: Ledger):
    ledger.put({"id": "a", "size": 5}, {"id": "b"}, {"id": "c", "size": None}, {"id": "d", "size": "9"})
    assert _ask(ledger, Metric.SUM, "size") == Aggregate(4, 5, None, 0, missing_count=2, unreadable_count=1)
    assert _ask(ledger, Metric.MIN, "size") == Aggregate(4, 5, None, 0, missing_count=2, unreadable_count=1)
    assert _ask(ledger, Metric.COUNT_DISTINCT, "size") == Aggregate(4, 1, None, 0, 2, 1)


def test_each_group_tells_how_many_values_were_missing_and_unreadable(ledger: Ledger):
    ledger.put(
        {"id": "a", "label": "red", "size": 5},
        {"id": "b", "label": "red", "size": "9"},
        {"id": "c", "label": "red"},
        {"id": "d", "label": "blue", "size": 4},
    )
    red, blue = _ask(ledger, Metric.SUM, "size", group_by=FieldName("label")).groups or ()
    assert red == Group("red", 3, 5, None, missing_count=1, unreadable_count=1)
    assert blue == Group("blue", 1, 4)


def test_unreadable_values_are_counted_within_the_reach_only(ledger: Ledger):
    ledger.put(
        {"id": "a", "size": "many", "at": "2026-01-01"}, {"id": "b", "size": "few", "at": "2026-02-01"}
    )
    ledger.put({"id": "a", "size": "several"}, connection=1)
    january = ledger.reach(connections=[0], until="2026-01-15")
    found = ledger.store.aggregate(AggregatePlan(january, Metric.SUM, FieldName("size")))
    assert (found.filtered_record_count, found.missing_count, found.unreadable_count) == (1, 0, 1)
    one = ledger.reach(connections=[0], resources=["b"])
    found = ledger.store.aggregate(AggregatePlan(one, Metric.SUM, FieldName("size")))
    assert (found.filtered_record_count, found.missing_count, found.unreadable_count) == (1, 0, 1)


def test_a_value_counts_as_unreadable_until_the_record_is_changed_or_removed(ledger: Ledger):
    ledger.put({"id": "a", "size": "many"}, {"id": "b", "size": "few"}, {"id": "c", "size": "some"})
    ledger.put({"id": "a", "size": 3})
    ledger.remove("b")
    found = _ask(ledger, Metric.SUM, "size")
    assert (found.value, found.missing_count, found.unreadable_count) == (3, 0, 1)
    ledger.store.delete_connection(ledger.ids[0])
    found = _ask(ledger, Metric.SUM, "size")
    assert (found.missing_count, found.unreadable_count) == (0, 0)


def test_integers_add_up_beyond_64_bits(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "size": 2**63 - 1} for n in range(3)), {"id": "x", "size": 1})
    ledger.put({"id": "y", "size": -(2**63) + 1}, connection=1)
    assert _ask(ledger, Metric.SUM, "size").value == 2 * (2**63 - 1) + 1
    assert _ask(ledger, Metric.MAX, "size").value == 2**63 - 1
    assert _ask(ledger, Metric.MIN, "size").value == -(2**63) + 1


def test_numbers_add_up_as_they_are_written_and_are_rounded_once_in_whatever_order_they_came(ledger: Ledger):
    values = [1e300, 0.1, 0.2, 0.3, 1e16, 1.0, -1e16, -1e300, 1e-300, 0.7] * 3
    for n, value in enumerate(values):
        ledger.put({"id": f"{n}", "weight": value}, connection=n % 2)
    assert _ask(ledger, Metric.SUM, "weight").value == decimal_sum(values)


def test_a_sum_that_no_number_can_hold_is_refused(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "weight": 1e308} for n in range(3)))
    with pytest.raises(ResourceLimit):
        _ask(ledger, Metric.SUM, "weight")


def test_there_is_only_one_zero(ledger: Ledger):
    ledger.send(b'{"data":{"id":"a","weight":-0.0}}', b'{"data":{"id":"b","weight":0}}')
    for found in (
        _groups(ledger, "weight")[0][0],
        *(_ask(ledger, one, "weight").value for one in (Metric.MIN, Metric.MAX, Metric.SUM)),
    ):
        assert math.copysign(1, found) == 1


def test_times_are_given_the_way_their_field_writes_them(ledger: Ledger):
    ledger.put(
        {"id": "a", "day": "2026-01-02", "at": "2026-01-02T01:00:00+01:00"},
        {"id": "b", "day": "2025-12-31", "at": "2026-01-02T00:00:00.5Z"},
    )
    assert _ask(ledger, Metric.MIN, "day").value == "2025-12-31"
    assert _ask(ledger, Metric.MIN, "at").value == "2026-01-02T00:00:00Z"
    assert _ask(ledger, Metric.MAX, "at").value == "2026-01-02T00:00:00.500000Z"
    assert _groups(ledger, "day") == [("2025-12-31", 1), ("2026-01-02", 1)]


def test_groups_are_the_largest_first_then_in_order_and_the_rest_is_counted(ledger: Ledger):
    for n, label in enumerate(["b", "a", "b", "c", None, "a", "d", None]):
        ledger.put({"id": f"{n}", "label": label}, connection=n % 2)
    assert _groups(ledger, "label") == [("a", 2), ("b", 2), (None, 2), ("c", 1), ("d", 1)]
    assert _groups(ledger, "label", limit=2) == [("a", 2), ("b", 2)]
    assert _ask(ledger, Metric.COUNT, group_by=FieldName("label"), limit=2).other_count == 4


def test_every_kind_of_value_can_be_grouped(ledger: Ledger):
    ledger.put(
        {"id": "a", "size": 1, "weight": 1.5, "done": True, "at": "2026-01-01T00:00:00Z", "title": ""},
        {"id": "b", "size": 1.0, "weight": 2, "done": False, "at": "2026-01-01T01:00:00+01:00"},
        {"id": "c", "size": None, "weight": "1.5", "done": 1, "at": "soon", "title": "x"},
    )
    assert _groups(ledger, "size") == [(1, 2), (None, 1)]
    assert _groups(ledger, "weight") == [(1.5, 1), (2.0, 1), (None, 1)]
    assert _groups(ledger, "done") == [(False, 1), (True, 1), (None, 1)]
    assert _groups(ledger, "at") == [("2026-01-01T00:00:00Z", 2), (None, 1)]
    assert _groups(ledger, "title") == [("", 1), ("x", 1), (None, 1)]


def test_numbers_stay_true_while_records_change(ledger: Ledger):
    for n in range(30):
        ledger.put({"id": f"{n % 7}", "size": n, "label": f"l{n % 3}"}, {"id": f"x{n}", "label": "new"})
        if n % 5 == 0:
            ledger.remove(f"x{n}")
        stored = ledger.page().records
        assert _ask(ledger, Metric.COUNT).value == len(stored)
        found = _ask(ledger, Metric.COUNT, filters=(ExactFilter(FieldName("label"), "new"),)).value
        assert found == sum(record.id.startswith("x") for record in stored)


@pytest.mark.parametrize(
    ("zone", "around"),
    [
        ("Europe/Berlin", "2026-03-29T01:00:00Z"),
        ("Europe/Berlin", "2026-10-25T01:00:00Z"),
        ("America/New_York", "2026-11-01T06:00:00Z"),
        ("America/New_York", "1883-11-18T17:00:00Z"),
        ("Asia/Kathmandu", "1985-12-31T18:30:00Z"),
        ("Africa/Monrovia", "1972-01-07T00:44:30Z"),
        ("Australia/Lord_Howe", "2026-04-04T15:00:00Z"),
        ("Pacific/Apia", "2011-12-30T10:00:00Z"),
        ("Europe/Amsterdam", "1937-07-01T00:00:00Z"),
        ("UTC", "1969-12-31T23:59:00Z"),
    ],
)
def test_buckets_are_those_of_the_clock_on_the_wall(ledger: Ledger, zone: str, around: str):
    middle = instant(around)
    assert middle is not None
    times = [middle + step * 60_000_000 * 17 + 1 for step in range(-12, 13)] + [middle - 1, middle]
    ledger.put(*({"id": f"{n}", "at": iso(time)} for n, time in enumerate(times)))
    for granularity in Granularity:
        groups = TimeGroups(FieldName("at"), granularity, zone)
        found = _ask(ledger, Metric.COUNT, group_by=groups, limit=100)
        names = [local_bucket(time, granularity, ZoneInfo(zone)) for time in times]
        assert [(group.key, group.count) for group in found.groups or ()] == [
            (name, names.count(name)) for name in sorted(set(names))
        ]


def test_records_without_a_time_are_one_group_at_the_end(ledger: Ledger):
    ledger.put({"id": "a", "at": "2026-05-05T00:00:00Z"}, {"id": "b"}, {"id": "c", "at": "soon"})
    groups = TimeGroups(FieldName("at"), Granularity.YEAR, "UTC")
    found = _ask(ledger, Metric.COUNT, group_by=groups)
    assert [(group.key, group.count) for group in found.groups or ()] == [("2026-01-01", 1), (None, 2)]
    cut = _ask(ledger, Metric.COUNT, group_by=groups, limit=1)
    assert (len(cut.groups or ()), cut.other_count) == (1, 2)


def test_the_first_and_the_last_years_break_nothing(ledger: Ledger):
    ledger.put(
        {"id": "a", "at": "0001-01-01T00:00:00Z"},
        {"id": "b", "at": "9999-12-31T23:59:59.999999Z"},
        {"id": "c", "at": "0001-01-01T00:00:00+14:00"},
    )
    for zone in ("Pacific/Kiritimati", "America/Los_Angeles"):
        for granularity in Granularity:
            found = _ask(ledger, Metric.COUNT, group_by=TimeGroups(FieldName("at"), granularity, zone))
            # A time before the first year is none at all.
            assert [group.count for group in found.groups or ()] == [1, 1, 1]
            assert (found.groups or ())[-1].key is None
    assert _ask(ledger, Metric.MIN, "at").value == "0001-01-01T00:00:00Z"


def _values(found: Aggregate) -> list[tuple[Any, ...]]:
    assert found.groups is not None
    assert found.filtered_record_count == sum(group.count for group in found.groups) + found.other_count
    return [(group.key, group.value) for group in found.groups]


def test_groups_of_all_connections_have_exact_sums_minima_maxima_and_distinct_counts(ledger: Ledger):
    sizes = [("a", 5), ("b", 2**62), ("a", -20), ("b", 2**62), ("c", None), (None, 1), ("b", 3)]
    for n, (label, size) in enumerate(sizes):
        ledger.put({"id": f"{n}", "label": label, "size": size}, connection=n % 2)
    by = FieldName("label")
    found = _ask(ledger, Metric.SUM, "size", group_by=by)
    # What was spent may be written as negative amounts: the sign does not count for the order.
    assert _values(found) == [("b", 2**63 + 3), ("a", -15), (None, 1), ("c", 0)]
    assert found.missing_count == 1
    assert _values(_ask(ledger, Metric.MIN, "size", group_by=by)) == [
        ("a", -20), (None, 1), ("b", 3), ("c", None),
    ]  # fmt: skip
    assert _values(_ask(ledger, Metric.MAX, "size", group_by=by)) == [
        ("b", 2**62), ("a", 5), (None, 1), ("c", None),
    ]  # fmt: skip
    assert _values(_ask(ledger, Metric.COUNT_DISTINCT, "size", group_by=by)) == [
        ("a", 2), ("b", 2), (None, 1), ("c", 0),
    ]  # fmt: skip


def test_the_groups_within_the_limit_are_those_with_the_largest_values_not_the_most_records(ledger: Ledger):
    ledger.put(*({"id": f"s{n}", "label": "often", "size": 1} for n in range(5)))
    ledger.put({"id": "x", "label": "large", "size": 100}, connection=1)
    found = _ask(ledger, Metric.SUM, "size", group_by=FieldName("label"), limit=1)
    assert (_values(found), found.other_count) == ([("large", 100)], 5)


@pytest.mark.parametrize(
    "spread", [[1e16, 1.0, -1e16, 0.1], [1e308, 1.0, -1e308, 1e-308], [0.1, 0.2, 0.3, -0.0]]
)
def test_numbers_of_a_group_add_up_as_they_are_written_and_are_rounded_once(
    ledger: Ledger, spread: list[float]
):
    for n, value in enumerate(spread * 3):
        ledger.put(
            {"id": f"{n}", "label": "all", "weight": value}, {"id": f"o{n}", "label": "one"}, connection=n % 2
        )
    found = _ask(ledger, Metric.SUM, "weight", group_by=FieldName("label"))
    assert _values(found) == [("all", decimal_sum(spread * 3)), ("one", 0.0)]


def test_a_sum_of_a_group_that_no_number_can_hold_is_refused(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "label": "all", "weight": 1e308} for n in range(3)))
    with pytest.raises(ResourceLimit):
        _ask(ledger, Metric.SUM, "weight", group_by=FieldName("label"))


def test_sums_by_time_are_in_the_order_of_time_with_records_without_a_time_last(ledger: Ledger):
    months = ["2026-02-03T00:00:00Z", "2026-01-31T23:30:00Z", None, "2026-02-05T00:00:00Z"]
    for n, at in enumerate(months):
        ledger.put({"id": f"{n}", "at": at, "size": 10**n}, connection=n % 2)
    by_month = TimeGroups(FieldName("at"), Granularity.MONTH, "Europe/Berlin")
    found = _ask(ledger, Metric.SUM, "size", group_by=by_month)
    assert _values(found) == [("2026-02-01", 1011), (None, 100)]
    assert _values(_ask(ledger, Metric.MAX, "size", group_by=by_month, limit=1)) == [("2026-02-01", 1000)]


def test_two_keys_make_a_group_of_each_pair(ledger: Ledger):
    rows = [("a", "2026-01-01"), ("a", "2026-02-01"), ("b", "2026-01-02"), ("a", "2026-01-05"), (None, None)]
    for n, (label, day) in enumerate(rows):
        at = None if day is None else f"{day}T00:00:00Z"
        ledger.put({"id": f"{n}", "label": label, "at": at, "size": n}, connection=n % 2)
    by_month = TimeGroups(FieldName("at"), Granularity.MONTH, "UTC")
    counted = _ask(ledger, Metric.COUNT, group_by=FieldName("label"), then_by=by_month)
    assert [(group.key, group.time, group.count) for group in counted.groups or ()] == [
        ("a", "2026-01-01", 2), ("b", "2026-01-01", 1), ("a", "2026-02-01", 1), (None, None, 1),
    ]  # fmt: skip
    summed = _ask(ledger, Metric.SUM, "size", group_by=FieldName("label"), then_by=by_month, limit=2)
    assert [(group.key, group.time, group.value) for group in summed.groups or ()] == [
        (None, None, 4), ("a", "2026-01-01", 3),
    ]  # fmt: skip
    assert summed.other_count == 2


def test_pairs_that_lie_far_apart_are_different_groups(ledger: Ledger):
    ledger.put(
        *(
            {"id": f"{n}", "label": f"l{n % 40}", "at": f"{1900 + n}-01-01T00:{n % 60:02}:00Z", "size": n}
            for n in range(120)
        )
    )
    minutes = TimeGroups(FieldName("at"), Granularity.MINUTE, "UTC")
    found = _ask(ledger, Metric.SUM, "size", group_by=FieldName("label"), then_by=minutes, limit=100)
    assert [(group.key, group.time, group.value) for group in found.groups or ()] == [
        (f"l{n % 40}", f"{1900 + n}-01-01T00:{n % 60:02}", n) for n in range(119, 19, -1)
    ]


def test_any_number_of_connections_is_one_answer(store: Driven):
    ledger = Ledger(store, connections=12)
    for n in range(12):
        ledger.put(
            {"id": "a", "label": f"l{n % 2}", "size": n, "weight": 0.1, "at": "2026-01-01"}, connection=n
        )
    assert _values(_ask(ledger, Metric.SUM, "size", group_by=FieldName("label"))) == [("l1", 36), ("l0", 30)]
    assert _ask(ledger, Metric.SUM, "weight").value == 1.2
    assert _ask(ledger, Metric.COUNT_DISTINCT, "label").value == 2
    page = ledger.page(filters=(ExactFilter(FieldName("label"), "l1"),), limit=4, count=Count.EXACT)
    assert (len(page.records), page.count) == (4, 6)
