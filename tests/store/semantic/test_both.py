"""Search by both where a query asks for no mode: as soon as what is visible has its vectors, and by words until then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as some

from headgate.errors import ModelUnavailable
from headgate.model.plan import SearchPosition
from headgate.model.query import SearchMode
from headgate.model.rows import SearchPage
from headgate.store.models.model import MeaningModel
from headgate.store.search import both
from headgate.store.search.merging import BEST, FIRST, by_coverage, merged
from tests.store.engines import ENGINES
from tests.store.ledger import Ledger
from tests.store.semantic.meaning import (
    MeaningHome,
    WordEmbedder,
    find,
    keys,
    made,
    meaning_ledger,
    stalled,
    words_model,
)

_RANKED = some.dictionaries(some.integers(0, 40), some.floats(-1, 30), max_size=40)
with_each_engine = pytest.mark.parametrize("home", list(ENGINES), indirect=True)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> MeaningHome:
    return MeaningHome(tmp_path / "home", getattr(request, "param", "sqlite"))


def find_either(ledger: Ledger, q: str, **options: Any) -> SearchPage:
    """Search as a query that names no mode does."""
    return find(ledger, q, mode=SearchMode.HYBRID, or_words=True, **options)


@with_each_engine
def test_it_is_by_words_until_every_visible_text_has_its_vectors(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"}, {"id": "b", "title": "apple"})
        made(ledger)
        page = find_either(ledger, "green apple")
        assert (page.mode, page.matched_all, page.pending_count) == (SearchMode.HYBRID, 1, 0)
        stalled(ledger)
        ledger.put({"id": "c", "title": "green apple"})
        page = find_either(ledger, "green apple")
        assert (page.mode, page.count, page.pending_count) == (SearchMode.LEXICAL, 2, 1)
        assert keys(page) == keys(find(ledger, "green apple", mode=SearchMode.LEXICAL))


def test_hidden_texts_without_vectors_do_not_decide(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple", "at": "2026-01-01T00:00:00Z"})
        made(ledger)
        stalled(ledger)
        ledger.put({"id": "other", "title": "green apple"}, connection=1)
        ledger.put({"id": "late", "title": "green apple", "at": "2026-09-01T00:00:00Z"})
        seen = ledger.reach(connections=[0], until="2026-03-01T00:00:00Z")
        assert find_either(ledger, "apple", reach=seen).mode is SearchMode.HYBRID
        assert find_either(ledger, "apple", reach=ledger.reach(connections=[0])).mode is SearchMode.LEXICAL


def test_where_no_visible_field_has_vectors_it_is_by_words(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple", "label": "x"})
        made(ledger)
        assert find_either(ledger, "green", fields=["label"]).mode is SearchMode.LEXICAL


@with_each_engine
def test_pages_that_began_by_words_go_on_by_words(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(*({"id": f"r{number}", "title": "green apple"} for number in range(7)))
        place = find(ledger, "green apple", mode=SearchMode.LEXICAL, limit=3)
        made(ledger)
        rest = find_either(ledger, "green apple", limit=9, after=place.next)
        assert rest.mode is SearchMode.LEXICAL
        assert sorted(keys(place) + keys(rest)) == [f"r{number}" for number in range(7)]


def test_pages_of_both_go_on_by_both_although_vectors_are_missing_meanwhile(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(*({"id": f"r{number}", "title": "green apple"} for number in range(7)))
        made(ledger)
        first = find_either(ledger, "green apple", limit=3)
        stalled(ledger)
        ledger.put({"id": "new", "title": "green apple"})
        rest = find_either(ledger, "green apple", limit=9, after=first.next)
        assert rest.mode is SearchMode.HYBRID
        assert sorted(keys(first) + keys(rest)) == [f"r{number}" for number in range(7)]


def test_where_more_records_hold_all_words_than_are_merged_pages_lead_to_each(
    home: MeaningHome, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(both, "LISTED_MOST", 5)
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(*({"id": f"r{number}", "title": "green apple"} for number in range(9)))
        made(ledger)
        shown: list[str] = []
        after: SearchPosition | None = None
        while not shown or after is not None:
            page = find_either(ledger, "green apple", limit=4, after=after)
            shown += keys(page)
            after = page.next
        assert sorted(shown) == [f"r{number}" for number in range(9)]


def test_a_model_that_does_not_answer_leaves_the_search_by_words(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"})
        made(ledger)

        def load() -> WordEmbedder:
            raise ModelUnavailable

        ledger.store.bare._model = MeaningModel(load)
        assert find_either(ledger, "green").mode is SearchMode.LEXICAL
        with pytest.raises(ModelUnavailable):
            find(ledger, "green", mode=SearchMode.HYBRID)


@given(_RANKED, _RANKED, some.floats(0, 3))
def test_the_best_of_either_list_are_among_the_first_and_nothing_is_lost_or_doubled(
    by_words: dict[int, float], by_meaning: dict[int, float], weight: float
):
    order = merged(by_words, by_meaning, weight)
    assert sorted(order) == sorted(by_words.keys() | by_meaning.keys())
    for ranked in (by_words, by_meaning):
        things = list(ranked)
        shown = {*order[:FIRST]}
        for thing in things[:BEST]:
            as_good = [other for other in things if ranked[other] == ranked[thing]]
            assert thing in shown or any(other in shown for other in as_good)


def test_of_many_that_are_as_good_those_that_hold_the_words_stay_first():
    by_words = dict.fromkeys(range(12), 20.0)
    by_meaning = dict.fromkeys([*range(100, 110), *range(12)], 0.5)
    assert merged(by_words, by_meaning, 0.5)[:FIRST] == list(range(10))


def test_the_fewer_words_of_the_question_records_hold_the_more_meaning_counts():
    by_words, by_meaning = {"a": 30.0}, {"b": 0.6, "a": 0.2}
    assert merged(by_words, by_meaning, 0.5 * by_coverage(1.0)) == ["a", "b"]
    assert merged(by_words, by_meaning, 0.5 * by_coverage(0.1)) == ["b", "a"]
    factors = [by_coverage(part / 10) for part in range(11)]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] == 1


def test_how_much_of_a_question_records_hold_counts_words_that_are_nowhere_and_parts_of_runs(
    home: MeaningHome,
):
    weights: list[float] = []

    def noting(coverage: float) -> float:
        weights.append(coverage)
        return 1.0

    with meaning_ledger(home, words_model()) as ledger, pytest.MonkeyPatch.context() as patch:
        patch.setattr(both, "by_coverage", noting)
        ledger.put({"id": "a", "title": "green apple 東京の天気"}, {"id": "b", "title": "car"})
        made(ledger)
        for asked in ("green apple", "green physician appointment", "physician", "天気予報", "天気"):
            find_either(ledger, asked)
    whole, third, nothing, run, word = weights
    assert (whole, nothing, word) == (1.0, 0.0, 1.0)
    assert 0.1 < third < 1 / 3
    assert 0 < run < 1
