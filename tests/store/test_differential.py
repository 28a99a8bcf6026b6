"""Random records, then random plans: whatever a store answers, looking at everything must give the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from msgspec.structs import replace

from headgate.model.ids import ConnectionId
from headgate.model.plan import ChangesPlan, PagePlan, SearchPlan
from headgate.model.query import Count
from headgate.model.record import Record
from headgate.model.rows import Extent, OnInvalid
from tests.store.declared import declared
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger, body
from tests.store.model import LiveRecord, Model, without_quoted
from tests.store.plans import aggregate_plans, batches, changes_plans, page_plans, search_plans

_CONNECTIONS = 3
_ASKED = 8
#: Connections get new ids in every example, so an example cannot be made smaller step by step.
_SETTINGS = settings(
    max_examples=30,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
Plans = Callable[[Sequence[ConnectionId]], st.SearchStrategy[Any]]


class _Both:
    """The same lines in a store and in the model."""

    def __init__(self, store: Driven) -> None:
        self.ledger = Ledger(store, connections=_CONNECTIONS)
        self.model = Model(declared())
        #: The store's change number after each batch, beside the model's.
        self.numbers = [(_number(self.ledger), 0)]

    def take(self, batch: tuple[Any, ...]) -> None:
        connection, stream, lines = batch
        report = self.ledger.send(
            *(json.dumps(line).encode() for line in lines),
            stream=stream,
            connection=connection,
            on_invalid=OnInvalid.KEEP,
        )
        assert (report.accepted, report.errors) == (len(lines), ())
        self.model.take(self.ledger.ids[connection], stream, lines, NOW)
        self.numbers.append((_number(self.ledger), len(self.model.log)))


def _number(ledger: Ledger) -> int:
    return ledger.store.changes(ChangesPlan(ledger.reach(), 1, 0)).horizon


def _filled(store: Driven, data: st.DataObject) -> _Both:
    both = _Both(store)
    for batch in data.draw(st.lists(batches(_CONNECTIONS), min_size=1, max_size=8)):
        both.take(batch)
    return both


def _same_record(record: Record, expected_record: LiveRecord, fields: Sequence[str]) -> bool:
    expected = {name: expected_record.values[name] for name in fields if name in expected_record.values}
    return (record.id, record.emitted_at) == (expected_record.key, expected_record.emitted_at) and list(
        body(record).items()
    ) == list(expected.items())


def _walked(store: Driven, plan: PagePlan) -> list[Record]:
    found: list[Record] = []
    for _ in range(100):
        page = store.page(plan)
        found += page.records
        assert len(page.records) == plan.limit or page.next is None
        if page.next is None:
            return found
        plan = replace(plan, after=page.next)
    raise AssertionError("the pages never end")


@_SETTINGS
@given(st.data())
def test_pages_hold_every_record_once_and_in_order(store: Driven, data: st.DataObject):
    both = _filled(store, data)
    for plan in data.draw(st.lists(page_plans(both.ledger.ids), min_size=_ASKED, max_size=_ASKED)):
        first, found, expected = store.page(plan), _walked(store, plan), both.model.page(plan)
        assert [record.id for record in found] == [expected_record.key for expected_record in expected]
        by_place = {
            (expected_record.connection_id, expected_record.key): expected_record
            for expected_record in expected
        }
        assert len({(record.connection_id, record.id) for record in found}) == len(expected)
        for record in found:
            assert _same_record(record, by_place[record.connection_id, record.id], plan.reach.fields)
        assert first.count == (None if plan.count is Count.NONE else len(expected))
        assert first.extent == (Extent(*both.model.extent(plan)) if plan.with_extent else None)


@_SETTINGS
@given(st.data())
def test_aggregates_are_exact(store: Driven, data: st.DataObject):
    both = _filled(store, data)
    for plan in data.draw(st.lists(aggregate_plans(both.ledger.ids), min_size=_ASKED, max_size=_ASKED)):
        numbers = store.aggregate(plan)
        assert (numbers.understood is None) == (plan.words is None)
        assert replace(numbers, understood=None) == both.model.aggregate(plan)


@_SETTINGS
@given(st.data())
def test_changes_are_exactly_what_a_reader_needs(store: Driven, data: st.DataObject):
    both = _filled(store, data)
    now = both.numbers[-1][0]
    for _ in range(_ASKED):
        since, in_model = data.draw(st.sampled_from(both.numbers))
        plan = data.draw(changes_plans(both.ledger.ids, since))
        if in_model == 0:
            plan = replace(plan, since=0)
        found = _session(store, plan, now)
        expected = both.model.changes(replace(plan, since=in_model))
        assert found.keys() == expected.keys()
        for place, expected_record in expected.items():
            entry = found[place]
            assert isinstance(entry, Record) == (expected_record is not None)
            if expected_record is not None:
                assert _same_record(entry, expected_record, plan.reach.fields)


def _session(store: Driven, plan: ChangesPlan, horizon: int) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for _ in range(100):
        page = store.changes(plan)
        assert page.horizon == horizon
        for entry in page.entries:
            assert (entry.connection_id, entry.id) not in found
            found[entry.connection_id, entry.id] = entry
        if page.next is None:
            return found
        plan = replace(plan, horizon=page.horizon, after=page.next)
    raise AssertionError("the pages never end")


@_SETTINGS
@given(st.data())
def test_search_finds_exactly_the_visible_records_that_hold_all_terms(store: Driven, data: st.DataObject):
    both = _filled(store, data)
    for plan in data.draw(st.lists(search_plans(both.ledger.ids), min_size=_ASKED, max_size=_ASKED)):
        expected, own = both.model.search(plan), both.model.search(without_quoted(plan))
        first, every = store.search(plan), _hits(store, plan)
        hits = [hit for hit in every if not hit.missing]
        # First those with every word, of these those last that only quote one; then those with some of the words.
        assert every[: len(hits)] == hits
        assert not any(hit.is_quoted for hit in hits[: len(own)])
        assert all(hit.is_quoted for hit in hits[len(own) :])
        found = [(hit.record.connection_id, hit.record.stream, hit.record.id) for hit in hits]
        assert Counter(found) == Counter(expected.keys())
        assert (first.count, first.ranked_all) == (len(own), True)
        assert {place for place, hit in zip(found, hits, strict=True) if not hit.is_quoted} == own.keys()
        assert first.quoted_count == sum(hit.is_quoted for hit in every)
        assert len(every) == len(own) + first.partial_count + first.quoted_count
        for place, hit in zip(found, hits, strict=True):
            assert set(hit.matched_fields) == expected[place]
            for snippet in hit.snippets:
                assert snippet.text.count("<mark>") == snippet.text.count("</mark>") > 0


def _hits(store: Driven, plan: SearchPlan) -> list[Any]:
    hits: list[Any] = []
    for _ in range(100):
        page = store.search(plan)
        hits += page.hits
        if page.next is None:
            return hits
        plan = replace(plan, after=page.next)
    raise AssertionError("the pages never end")
