"""Search by meaning and by both, with the real model over few records, and with a plain one where that does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate.errors import CursorExpired, InvalidRequest, Unsupported
from headgate.model.ids import FieldName
from headgate.model.plan import SearchPosition
from headgate.model.query import ExactFilter, SearchMode, SearchSort
from headgate.store.models.model import PASSAGE_CHARS
from tests.store.declared import DESK, document
from tests.store.engines import ENGINES
from tests.store.hostile_queries import HOSTILE_QUERIES
from tests.store.ledger import Ledger
from tests.store.semantic.meaning import (
    MODEL,
    MODES,
    MeaningHome,
    find,
    keys,
    made,
    meaning_ledger,
    opened,
    stalled,
    words_model,
)

_NOTES = (
    {"id": "a", "title": "Dr. Weber, Friday at ten", "body": "Please come fasting, we take blood."},
    {"id": "b", "title": "Roof", "body": "The invoice for the repair is due in thirty days."},
    {"id": "c", "title": "Weekend", "body": "We bake bread and cook soup for everyone."},
)


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path) -> MeaningHome:
    """A home with its records in a file, unless a test asks for each engine."""
    return MeaningHome(tmp_path / "home", getattr(request, "param", "sqlite"))


with_each_engine = pytest.mark.parametrize("home", list(ENGINES), indirect=True)


def test_a_question_finds_what_shares_no_word_with_it(home: MeaningHome):
    with meaning_ledger(home) as ledger:
        ledger.put(*_NOTES)
        made(ledger)
        assert keys(find(ledger, "appointment with my physician"))[0] == "a"
        assert keys(find(ledger, "what do I still have to pay"))[0] == "b"
        assert keys(find(ledger, "Kochen und Backen"))[0] == "c"
        assert keys(find(ledger, "physician", mode=SearchMode.LEXICAL)) == []


@with_each_engine
def test_hybrid_puts_first_what_words_and_meaning_both_find(home: MeaningHome):
    with meaning_ledger(home) as ledger:
        ledger.put(*_NOTES, {"id": "d", "title": "invoice", "body": "An old song."})
        made(ledger)
        page = find(ledger, "invoice for the repair", mode=SearchMode.HYBRID)
        assert keys(page)[0] == "b"
        found = {hit.record.id: set(hit.scores) for hit in page.hits}
        assert found["b"] == {SearchMode.LEXICAL, SearchMode.SEMANTIC}
        assert "<mark>" in page.hits[0].snippets[0].text


@pytest.mark.parametrize("mode", MODES)
def test_a_store_without_a_model_refuses(ledger: Ledger, mode: SearchMode):
    with pytest.raises(Unsupported):
        find(ledger, "anything", mode=mode)


# What may be seen


@pytest.mark.parametrize("mode", MODES)
def test_only_visible_texts_are_compared(home: MeaningHome, mode: SearchMode):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(
            {"id": "title", "title": "green apple", "body": "x", "at": "2026-01-01T00:00:00Z"},
            {"id": "body", "title": "x", "body": "green apple", "at": "2026-01-01T00:00:00Z"},
            {"id": "late", "title": "green apple", "at": "2026-06-01T00:00:00Z"},
            {"id": "timeless", "title": "green apple"},
        )
        ledger.put({"id": "other", "title": "green apple", "at": "2026-01-01T00:00:00Z"}, connection=1)
        made(ledger)
        narrow = ledger.reach(connections=[0], until="2026-03-01T00:00:00Z")
        assert keys(find(ledger, "green apple", mode=mode, reach=narrow, fields=["title"])) == ["title"]
        one = ledger.reach(connections=[0], resources=["body", "late"])
        assert keys(find(ledger, "green apple", mode=mode, reach=one, fields=["title"])) == ["late"]


@pytest.mark.parametrize("mode", MODES)
def test_hidden_texts_change_nothing_in_the_answer(engine: str, tmp_path: Path, mode: SearchMode):
    answers = []
    for name, hidden in (("left", "x"), ("right", "dentist appointment")):
        with meaning_ledger(MeaningHome(tmp_path / name, engine)) as ledger:
            for number in range(6):
                ledger.put({"id": f"h{number}", "title": hidden, "body": hidden}, connection=1)
                ledger.put(
                    {
                        "id": f"v{number}",
                        "title": f"Visit to the doctor, number {number}",
                        "body": hidden,
                        "at": f"2026-01-0{number + 1}T00:00:00Z",
                    },
                    *[{"id": f"l{number}", "title": hidden, "at": "2026-09-01T00:00:00Z"}] * (hidden != "x"),
                )
            made(ledger)
            reach = ledger.reach(connections=[0], fields=["id", "title"], until="2026-03-01T00:00:00Z")
            answers.append(
                [
                    [(hit.record.id, hit.scores, hit.snippets) for hit in page.hits]
                    for limit in (2, 50)
                    for q in ("dentist appointment", '"doctor" visit', "physician -dentist")
                    for page in [find(ledger, q, mode=mode, reach=reach, fields=["title"], limit=limit)]
                ]
            )
    assert answers[0] == answers[1]
    assert answers[0][0]


@pytest.mark.parametrize("mode", MODES)
def test_a_record_that_was_deleted_or_changed_is_not_found_by_its_former_text(
    home: MeaningHome, mode: SearchMode
):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"}, {"id": "b", "title": "green apple"})
        made(ledger)
        # What follows must hold before any vector is made anew.
        stalled(ledger)
        ledger.remove("a")
        assert keys(find(ledger, "green apple", mode=mode)) == ["b"]
        ledger.put({"id": "b", "title": "red car"})
        page = find(ledger, "green apple", mode=mode)
        assert keys(page) == []
        assert page.pending_count == 1


def test_a_change_of_another_field_leaves_the_vectors_of_a_text_as_they_are(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple", "body": "one"})
        made(ledger)
        stalled(ledger)
        ledger.put({"id": "a", "title": "green apple", "body": "two"})
        page = find(ledger, "green apple", fields=["title"])
        assert keys(page) == ["a"]
        assert page.pending_count == 0


def test_a_changed_text_is_found_by_what_it_says_now(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"})
        made(ledger)
        ledger.put({"id": "a", "title": "red car"})
        made(ledger)
        assert keys(find(ledger, "red car")) == ["a"]
        assert keys(find(ledger, "green apple")) == []
        ledger.remove("a")
        made(ledger)
        ledger.put({"id": "a", "title": "red car"})
        made(ledger)
        assert keys(find(ledger, "red car")) == ["a"]


# Queries


@pytest.mark.parametrize("mode", MODES)
def test_quoted_words_must_be_there_and_excluded_ones_must_not(home: MeaningHome, mode: SearchMode):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(
            {"id": "a", "title": "green apple pie"},
            {"id": "b", "title": "green apple tree"},
            {"id": "c", "title": "apple green"},
        )
        made(ledger)
        assert sorted(keys(find(ledger, "green apple -pie", mode=mode))) == ["b", "c"]
        assert sorted(keys(find(ledger, '"green apple"', mode=mode))) == ["a", "b"]


@with_each_engine
@pytest.mark.parametrize("mode", MODES)
def test_filters_narrow_every_mode(home: MeaningHome, mode: SearchMode):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(
            {"id": "a", "title": "green apple", "label": "x"},
            {"id": "b", "title": "green apple", "label": "y"},
        )
        made(ledger)
        only = (ExactFilter(FieldName("label"), "y"),)
        assert keys(find(ledger, "green apple", mode=mode, filters=only)) == ["b"]


def test_of_equal_texts_the_newest_comes_first_and_time_can_be_the_order(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(
            {"id": "a", "title": "green apple", "at": "2026-01-01T00:00:00Z"},
            {"id": "b", "title": "green apple", "at": "2026-01-02T00:00:00Z"},
            {"id": "c", "title": "green apple tree", "at": "2026-01-03T00:00:00Z"},
        )
        made(ledger)
        assert keys(find(ledger, "green apple")) == ["b", "a", "c"]
        for mode in MODES:
            assert keys(find(ledger, "green apple", mode=mode, sort=SearchSort.TIME)) == ["c", "b", "a"]


@with_each_engine
@pytest.mark.parametrize("mode", MODES)
def test_pages_show_every_hit_once_although_records_come_in_between(home: MeaningHome, mode: SearchMode):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(
            *(
                {"id": f"r{number:02}", "title": "green apple " + "tree " * (number % 6)}
                for number in range(23)
            )
        )
        made(ledger)
        shown: list[str] = []
        after: SearchPosition | None = None
        for number in range(10):
            page = find(ledger, "green apple", mode=mode, limit=5, after=after)
            shown += keys(page)
            after = page.next
            if after is None:
                break
            ledger.put({"id": f"new{number}", "title": "green apple"})
            made(ledger)
        assert {f"r{number:02}" for number in range(23)} <= set(shown)
        assert len(shown) == len(set(shown))


def test_a_page_of_both_goes_on_after_the_last_record_also_when_others_have_left(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put(*({"id": f"r{number}", "title": "green apple " + "tree " * number} for number in range(9)))
        made(ledger)
        first = find(ledger, "green apple", mode=SearchMode.HYBRID, limit=3)
        ledger.remove(keys(first)[0])
        rest = find(ledger, "green apple", mode=SearchMode.HYBRID, limit=9, after=first.next)
        assert sorted(keys(first) + keys(rest)) == [f"r{number}" for number in range(9)]


@pytest.mark.parametrize("mode", MODES)
def test_a_place_of_another_mode_is_refused(home: MeaningHome, mode: SearchMode):
    with meaning_ledger(home, words_model()) as ledger, pytest.raises(CursorExpired):
        find(ledger, "green apple", mode=mode, after=SearchPosition((2, 0, "")))


def test_a_long_text_is_found_by_a_passage_in_its_middle(home: MeaningHome):
    filler = "Nothing happened on this day, and nobody wrote. " * 300
    text = f"{filler}The surgeon said that my knee will heal by spring. {filler}"
    with meaning_ledger(home) as ledger:
        ledger.put({"id": "diary", "body": text}, {"id": "b", "body": filler[:400]})
        made(ledger)
        page = find(ledger, "what did the doctor say about my leg")
        assert keys(page)[0] == "diary"
        (snippet,) = page.hits[0].snippets
        assert snippet.field == "body"
        assert snippet.match_chars == pytest.approx(text.index("The surgeon"), abs=PASSAGE_CHARS)
        assert not snippet.complete
        shown = snippet.text.strip("…")
        assert text.startswith(shown, snippet.match_chars)


# Making vectors


@with_each_engine
def test_vectors_are_made_anew_when_the_model_changes(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"})
        made(ledger)
    again = opened(home, words_model("others"))
    try:
        ledger.store = again
        made(ledger)
        assert keys(find(ledger, "green apple")) == ["a"]
        assert home.rows("SELECT model FROM vector_shelf") == {"others digest of others 64"}
    finally:
        again.close()


def test_vectors_of_another_model_are_not_compared(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"})
        made(ledger)
        stalled(ledger)
        ledger.store.bare._model = words_model("others")
        page = find(ledger, "green apple")
        assert keys(page) == []
        assert page.pending_count == 1


def test_a_store_that_got_its_model_later_makes_all_vectors(home: MeaningHome):
    without = opened(home, None)
    ledger = Ledger(without, connections=1)
    ledger.put(*({"id": f"r{number}", "title": "green apple"} for number in range(200)))
    without.close()
    ledger.store = opened(home, words_model())
    try:
        made(ledger)
        assert find(ledger, "green apple", limit=100).ranked_count == 200
    finally:
        ledger.store.close()


def test_a_field_that_is_declared_later_gets_its_vectors(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "x", "label": "green apple"})
        made(ledger)
        assert keys(find(ledger, "green apple", fields=["label"])) == []
        newer = document()
        newer["declaration_version"] = "2"
        newer["streams"][0]["query"]["search"]["lexical_fields"].append("label")
        ledger.store.declare(DESK, newer)
        made(ledger)
        assert keys(find(ledger, "green apple", fields=["label"])) == ["a"]


@with_each_engine
def test_a_connection_that_is_removed_leaves_no_vectors(home: MeaningHome):
    with meaning_ledger(home, words_model()) as ledger:
        ledger.put({"id": "a", "title": "green apple"})
        ledger.put({"id": "b", "title": "green apple"}, connection=1)
        made(ledger)
        ledger.store.delete_connection(ledger.ids[1])
        assert keys(find(ledger, "green apple", reach=ledger.reach(connections=[0]))) == ["a"]
        assert home.rows("SELECT count(DISTINCT sid) FROM vector_block") == {1}


@pytest.mark.parametrize("mode", MODES)
def test_a_hostile_query_is_answered_within_its_bounds_or_refused_by_name_in_every_mode(
    home: MeaningHome, mode: SearchMode, monkeypatch: pytest.MonkeyPatch
):
    compared: list[str] = []
    refused: list[str | None] = []
    hits: list[int] = []
    embed = MODEL.vectors

    def noting(texts: Sequence[str]) -> Any:
        compared.extend(texts)
        return embed(texts)

    with meaning_ledger(home) as ledger:
        ledger.put({"id": "a", "title": "canal"})
        made(ledger)
        monkeypatch.setattr(MODEL, "vectors", noting)
        for q in HOSTILE_QUERIES:
            try:
                page = find(ledger, q, mode=mode)
            except InvalidRequest as refusal:
                refused.append(refusal.param)
            else:
                hits.append(len(page.hits))
    assert set(refused) == {"q"}
    assert max(hits) == 1
    assert max(map(len, compared)) <= 512
