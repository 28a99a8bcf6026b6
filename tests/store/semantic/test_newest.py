"""The order in which vectors are made: the newest records first, whatever comes in meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.model.query import SearchMode
from headgate.store.changes.vector_making import RECORDS_AT_ONCE
from headgate.store.format.vector_gaps import MadeVectors, NumberRange
from headgate.store.models.model import MeaningModel
from tests.store.declared import PAGES
from tests.store.engines import ENGINES
from tests.store.ledger import Ledger
from tests.store.semantic.meaning import WAIT_SECONDS, MeaningHome, WordEmbedder, find, keys, made, opened

_COUNT = 3 * RECORDS_AT_ONCE


class _Noting(WordEmbedder):
    """Notes the texts in the order in which they come, and from a text on waits to be let go on."""

    def __init__(self, stops_at: str = "") -> None:
        super().__init__()
        self.texts: list[str] = []
        self._stops_at = stops_at
        self.has_stopped, self.goes_on = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        if self._stops_at in texts:
            self.has_stopped.set()
            assert self.goes_on.wait(WAIT_SECONDS)
        return super().embed(texts)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> MeaningHome:
    """A home whose records have no vectors yet."""
    place = MeaningHome(tmp_path / "home", getattr(request, "param", "sqlite"))
    store = opened(place, None)
    try:
        ledger = Ledger(store, connections=1)
        ledger.put(*({"id": f"n{number}", "title": _title(number)} for number in range(_COUNT)))
    finally:
        store.close()
    return place


with_each_engine = pytest.mark.parametrize("home", list(ENGINES), indirect=True)


def _title(number: int) -> str:
    return f"title{number}"


def _again(home: MeaningHome, embedder: WordEmbedder) -> Ledger:
    ledger = Ledger.__new__(Ledger)
    ledger.store = opened(home, MeaningModel(lambda: embedder))
    ledger.ids = tuple(one.id for one in ledger.store.connections())
    return ledger


@with_each_engine
def test_the_newest_records_have_their_vectors_first(home: MeaningHome):
    noting = _Noting()
    ledger = _again(home, noting)
    try:
        made(ledger)
        portions = [noting.texts[at : at + RECORDS_AT_ONCE] for at in range(0, _COUNT, RECORDS_AT_ONCE)]
        numbers = [{int(text.removeprefix("title")) for text in portion} for portion in portions]
        assert numbers == [
            set(range(end - RECORDS_AT_ONCE, end)) for end in range(_COUNT, 0, -RECORDS_AT_ONCE)
        ]
    finally:
        ledger.store.close()


@with_each_engine
def test_what_comes_in_while_older_records_wait_goes_before_them(home: MeaningHome):
    noting = _Noting(stops_at=_title(_COUNT - 1))
    ledger = _again(home, noting)
    try:
        assert noting.has_stopped.wait(WAIT_SECONDS)
        ledger.put({"id": "new", "title": "green apple"}, {"id": "n0", "title": "yellow pear"})
        noting.goes_on.set()
        made(ledger)
        assert noting.texts.index("green apple") < noting.texts.index(_title(1))
        # What changed before its turn came is found as it is now, and nothing is left out.
        assert keys(find(ledger, "yellow pear"))[0] == "n0"
        assert set(map(_title, range(1, _COUNT))) <= set(noting.texts)
        assert find(ledger, "green apple").pending_count == 0
    finally:
        ledger.store.close()


@with_each_engine
def test_a_few_new_records_do_not_wait_for_the_many_of_another_stream(home: MeaningHome):
    noting = _Noting(stops_at=_title(_COUNT - 1))
    ledger = _again(home, noting)
    try:
        assert noting.has_stopped.wait(WAIT_SECONDS)
        ledger.put({"id": 1, "text": "green apple"}, stream=PAGES)
        noting.goes_on.set()
        made(ledger)
        assert noting.texts.index("green apple") < 2 * RECORDS_AT_ONCE
        assert set(map(_title, range(_COUNT))) < set(noting.texts)
    finally:
        noting.goes_on.set()
        ledger.store.close()


@with_each_engine
def test_what_waits_is_counted_among_the_visible_records_alone(home: MeaningHome):
    newest, second = _COUNT - 1, _COUNT - 1 - RECORDS_AT_ONCE
    noting = _Noting(stops_at=_title(second))
    ledger = _again(home, noting)
    try:
        assert noting.has_stopped.wait(WAIT_SECONDS)
        assert find(ledger, _title(newest)).pending_count == _COUNT - RECORDS_AT_ONCE
        seen = ledger.reach(resources=[f"n{newest}", f"n{newest - 1}"])
        page = find(ledger, _title(newest), reach=seen, mode=SearchMode.HYBRID)
        assert (page.pending_count, keys(page)[0]) == (0, f"n{newest}")
        both = ledger.reach(resources=[f"n{newest}", f"n{second}"])
        assert find(ledger, _title(newest), reach=both).pending_count == 1
        noting.goes_on.set()
        made(ledger)
        assert find(ledger, _title(newest)).pending_count == 0
    finally:
        noting.goes_on.set()
        ledger.store.close()


@with_each_engine
def test_a_process_that_ends_between_goes_on_with_what_is_left(home: MeaningHome):
    first = _Noting(stops_at=_title(_COUNT - 1))
    ledger = _again(home, first)
    assert first.has_stopped.wait(WAIT_SECONDS)
    closing = threading.Thread(target=ledger.store.close)
    # The thread ends after its portion; it is closing before it may finish that.
    closing.start()
    first.goes_on.set()
    closing.join(WAIT_SECONDS)
    second = _Noting()
    ledger = _again(home, second)
    try:
        made(ledger)
        assert sorted(first.texts + second.texts) == sorted(map(_title, range(_COUNT)))
        assert find(ledger, "title5 title7", mode=SearchMode.HYBRID).pending_count == 0
    finally:
        ledger.store.close()


@given(
    st.lists(
        st.one_of(
            st.integers(1, 90).map(lambda count: (count, 0)), st.integers(1, 40).map(lambda most: (0, most))
        )
    )
)
def test_every_record_is_made_once_the_newest_first(steps: Sequence[tuple[int, int]]):
    total, state, numbers = 0, MadeVectors(), set[int]()
    for added, most in (*steps, *[(0, 1000)] * (len(steps) + 1)):
        total += added
        newest = state.newest(total, most) if most else None
        if newest is None:
            continue
        portion = set(range(newest.first, newest.last + 1))
        assert not portion & numbers
        waiting = set(range(1, total + 1)) - numbers - portion
        assert len(state.gaps) > 32 or not waiting or max(waiting) < newest.last
        numbers |= portion
        state = MadeVectors.read(*state.with_made(NumberRange(*newest)).noted())
    assert numbers == set(range(1, total + 1))
    assert not state.missing(total)
