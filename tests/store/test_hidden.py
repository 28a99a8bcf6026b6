"""Two stores that differ only in what a reach does not cover give answers that are equal byte for byte."""

from __future__ import annotations

import itertools
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from headgate.model.ids import FieldName
from headgate.model.plan import (
    AggregatePlan,
    ChangesPlan,
    PagePlan,
    RecordPlan,
    SearchPlan,
    SearchReach,
    Term,
    TimeGroups,
    WordCondition,
)
from headgate.model.query import Count, Granularity, Metric, Order
from tests.store.engines import fresh
from tests.store.ledger import Ledger
from tests.store.plans import KEYS, NOTE, TIMES, WORDS

VISIBLE = ("id", "title", "size", "label", "done", "at")
HIDDEN = ("body", "code", "weight", "day", "seen_at", "extra", "")
UNTIL = "2026-03-29T01:00:00Z"


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[dict[str, Any], dict[str, Any]]:
    """Give a record in two versions: alike in what is visible, each with its own hidden fields."""
    left, right = draw(NOTE), draw(NOTE)
    shown = {name: left[name] for name in VISIBLE if name in left}
    return tuple(
        shown | {name: value for name, value in one.items() if name in HIDDEN} for one in (left, right)
    )  # type: ignore[return-value]


def _answers(ledger: Ledger) -> list[Any]:
    store = ledger.store
    reach = ledger.reach(connections=[0], fields=VISIBLE, until=UNTIL)
    pages = [
        store.page(PagePlan(reach, limit, order, count=Count.EXACT, with_extent=True))
        for limit, order in itertools.product((2, 50), Order)
    ]
    title = (FieldName("title"),)
    searches = [
        store.search(SearchPlan((SearchReach(reach, title, quoted_fields=quoted),), (Term((word,)),), limit))
        for word, limit, quoted in itertools.product(WORDS[:8], (2, 50), ((), title))
    ]
    numbers = [
        store.aggregate(AggregatePlan(reach, Metric.COUNT)),
        store.aggregate(AggregatePlan(reach, Metric.SUM, FieldName("size"))),
        store.aggregate(AggregatePlan(reach, Metric.COUNT, group_by=FieldName("label"), limit=2)),
        store.aggregate(
            AggregatePlan(
                reach, Metric.COUNT, group_by=TimeGroups(FieldName("at"), Granularity.DAY, "Europe/Berlin")
            )
        ),
    ]
    numbers += [
        store.aggregate(
            AggregatePlan(reach, metric, field, words=WordCondition((Term((word,)),), title, quoted))
        )
        for word, quoted in itertools.product(WORDS[:8], ((), title))
        for metric, field in ((Metric.COUNT, None), (Metric.SUM, FieldName("size")))
    ]
    records = [store.record(RecordPlan(reach, key)) for key in KEYS]
    return [pages, searches, numbers, records, store.summaries([reach])]


def _changes(ledger: Ledger, since: int) -> tuple[list[Any], int]:
    reach = ledger.reach(connections=[0], fields=VISIBLE, until=UNTIL)
    found = ledger.store.changes(ChangesPlan(reach, 100, since))
    return [*found.entries], found.horizon


def _plain(ledger: Ledger, answer: Any) -> str:
    """Write an answer down with the ids and change numbers that are each store's own taken out."""
    text = repr(answer)
    for number, connection_id in enumerate(ledger.ids):
        text = text.replace(connection_id, f"connection {number}")
    return re.sub(r"SearchPosition\(place=\([^)]*\)\)", "a place", text)


def _fill(ledger: Ledger, side: int, batches: list[Any], noise: list[Any]) -> list[str]:
    seen: list[str] = []
    since = 0
    for batch in batches:
        ledger.put(*(pair[side] for pair in batch))
        # What is hidden altogether: another connection, and records out of time.
        for other in noise[side]:
            ledger.put(other, connection=1)
        entries, since = _changes(ledger, since)
        seen.append(_plain(ledger, entries))
    seen.append(_plain(ledger, _answers(ledger)))
    return seen


@settings(
    max_examples=12,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    batches=st.lists(st.lists(_pairs(), min_size=1, max_size=6), min_size=1, max_size=4),
    noise=st.tuples(st.lists(NOTE, max_size=4), st.lists(NOTE, max_size=4)),
)
def test_what_is_hidden_has_no_part_in_any_answer(engine: str, batches: list[Any], noise: Any):
    seen_by_side: list[list[str]] = []
    for side in (0, 1):
        with fresh(engine) as store:
            seen_by_side.append(_fill(Ledger(store, connections=2), side, batches, noise))
    assert seen_by_side[0] == seen_by_side[1]


@pytest.mark.parametrize("hidden", [0, 1, 40])
def test_hidden_records_move_neither_pages_nor_hits(engine: str, hidden: int):
    with fresh(engine) as store:
        ledger = Ledger(store, connections=2)
        for number in range(40):
            ledger.put({"id": f"s{number}", "title": "apple pear", "at": TIMES[0]})
            if number < hidden:
                ledger.put({"id": f"h{number}", "title": "apple " * 9, "at": TIMES[8]})
        reach = ledger.reach(connections=[0], fields=["id"], until=UNTIL)
        page = store.page(PagePlan(reach, 5, count=Count.EXACT))
        hits = store.search(SearchPlan((SearchReach(reach, (FieldName("title"),)),), (Term(("apple",)),), 5))
    assert ([record.id for record in page.records], page.count) == (["s9", "s8", "s7", "s6", "s5"], 40)
    assert [hit.record.id for hit in hits.hits] == ["s0", "s1", "s10", "s11", "s12"]
    assert (hits.count, hits.ranked_count) == (40, 40)


@pytest.mark.parametrize("first", [0, 1])
def test_which_connection_had_something_hidden_first_does_not_settle_ties(engine: str, first: int):
    with fresh(engine) as store:
        ledger = Ledger(store, connections=2)
        ledger.put({"id": "h", "at": TIMES[8]}, connection=first)
        for connection in (1, 0):
            ledger.put({"id": "a", "title": "apple", "at": TIMES[0]}, connection=connection)
        reach = ledger.reach(until=UNTIL)
        page = store.page(PagePlan(reach, 5, Order.ASC))
        hits = store.search(
            SearchPlan((SearchReach(reach, (FieldName("title"),)),), (Term(("apple",)),), 5)
        ).hits
        found = store.record(RecordPlan(reach, KEYS[0]))
        changed = store.changes(ChangesPlan(reach, 9, 0)).entries
        for records in (page.records, found, changed, [hit.record for hit in hits]):
            assert [record.connection_id for record in records] == [*ledger.ids]
