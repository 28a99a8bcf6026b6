from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from msgspec.structs import replace

from headgate.errors import InvalidRequest
from headgate.model.ids import ConnectorKey, FieldName
from headgate.model.plan import SearchPlan, SearchReach, Term, parse_terms
from headgate.model.query import ExactFilter
from headgate.model.rows import Batch, Hit, SearchPage
from headgate.store.search import lexical as search_module
from headgate.store.sql import word_segments
from tests.store.declared import MARKS, NOTES, PAGES, document
from tests.store.engines import NOW, Driven
from tests.store.ledger import Ledger

TITLE, BODY = FieldName("title"), FieldName("body")


def _plan(
    ledger: Ledger, q: str, limit: int = 25, fields: tuple[FieldName, ...] = (TITLE, BODY), **narrowed: Any
):
    return SearchPlan((SearchReach(ledger.reach(**narrowed), fields),), parse_terms(q), limit)


def _found(ledger: Ledger, q: str, **narrowed: Any) -> set[str]:
    """Give the records that hold all the words."""
    page: SearchPage = ledger.store.search(_plan(ledger, q, **narrowed))
    whole = [hit.record.id for hit in page.hits if not hit.missing]
    assert (page.count, page.partial_count) == (len(whole), len(page.hits) - len(whole))
    return set(whole)


def _all_pages(ledger: Ledger, plan: SearchPlan) -> list[Hit]:
    hits: list[Hit] = []
    while True:
        page = ledger.store.search(plan)
        hits += page.hits
        if page.next is None:
            return hits
        plan = replace(plan, after=page.next)


def test_all_words_must_be_there_in_whatever_field(ledger: Ledger):
    ledger.put(
        {"id": "a", "title": "The bridge plan", "body": "by the river"},
        {"id": "b", "title": "bridge", "body": "plan b"},
        {"id": "c", "title": "bridges planned"},
    )
    assert _found(ledger, "bridge") == _found(ledger, "plan bridge") == {"a", "b", "c"}
    assert _found(ledger, '"bridge"') == _found(ledger, '"plan" "bridge"') == {"a", "b"}
    assert _found(ledger, "bridge river") == {"a"}
    assert _found(ledger, '"bridge plan"') == {"a"}
    assert _found(ledger, '"plan bridge"') == set()
    assert _found(ledger, "bridg*") == {"a", "b", "c"}
    assert _found(ledger, "plan* bridge*") == {"a", "b", "c"}
    assert _found(ledger, "nothing") == set()


@pytest.mark.parametrize(
    "q",
    [
        "AND",
        "a OR b",
        "NOT",
        "NEAR(a b)",
        "title:a",
        "{title body} : a",
        "- a",
        "a + b",
        "^a",
        'a"b',
        '"a',
        "a*b",
        "c0:a",
        "sh:s1",
        "s1",
        "t1",
        "(a",
        "a)",
        "'; DROP TABLE record; --",
        "a\\b",
        "%",
        "a:b:c",
        "a,b",
        "\ufeffa",
        "a\u0301\u0301",
        "rank",
        "fts",
    ],
)
def test_whatever_a_query_holds_it_is_only_words(ledger: Ledger, q: str):
    ledger.put({"id": "plain", "title": "nothing of the kind"}, {"id": "same", "title": q})
    try:
        assert "plain" not in _found(ledger, q)
    except InvalidRequest:
        assert not any(character.isalnum() for character in q)
    else:
        assert "same" in _found(ledger, q)


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("Crème Brûlée", ["creme", "CRÈME", "brulee", "brûl*"]),
        ("cre\u0300me", ["crème", "creme"]),
        ("die größe", ["GRÖSSE", "grösse", "größe", "GRÖẞE", "gros*", "grös*", "größ*"]),
        ("GRÖSSE und STRAẞE", ["größe", "straße", "strasse", "STRASSE"]),
        ("ß und ßa", ["ß", "ss", "ssa", "s*"]),
        ("ЁЛКА и счёт", ["ёлка", "СЧЁТ"]),
        ("ΟΔΥΣΣΕΥΣ", ["οδυσσευσ", "ΟΔΥΣΣΕΥΣ"]),
        ("東京都に行きました", ["東京", "京都", "東京都", "行", "に行き", "た"]),
        ("请求书 in the mail", ["请求书", "求", "请求 mail"]),
        ("안녕하세요 여러분", ["안녕", "하세요", "여러분", "녕"]),
        ("ｶﾀｶﾅ と カタカナ", ["カタ", "ｶﾀｶﾅ"]),
        ("ภาษาไทยง่ายมาก", ["ไทย", "ภาษา", "ง่าย"]),
        ("हिन्दी में लिखा हुआ", ["हिन्दी", "लिखा", "हि*"]),
        ("العربية مرحبا", ["مرحبا", "العربية"]),
        ("שלום עולם", ["שלום"]),
        ("naïve café №5 ½ a1b2", ["a1b2", "5", "naive cafe"]),
        ("x_y-z user@example.org", ["x", "y", "example", '"user example org"', "user@example.org"]),
    ],
)
def test_words_of_every_script_are_found_whatever_their_case_and_accents(
    ledger: Ledger, text: str, queries: list[str]
):
    ledger.put({"id": "a", "body": f"before {text} after"}, {"id": "other", "body": "before after"})
    for q in queries:
        page = ledger.store.search(_plan(ledger, q))
        assert (q, [hit.record.id for hit in page.hits]) == (q, ["a"])
        (snippet,) = page.hits[0].snippets
        assert (q, snippet.text.count("<mark>")) == (q, snippet.text.count("</mark>"))
        assert "<mark>" in snippet.text


def test_a_marked_word_is_marked_whole(ledger: Ledger):
    ledger.put({"id": "a", "body": "यह हिन्दी है, cre\u0300me bru\u0302le\u0301e!"})
    for q, marked in (("हिन्दी", "<mark>हिन्दी</mark>"), ("creme", "<mark>cre\u0300me</mark>")):
        (hit,) = ledger.store.search(_plan(ledger, q)).hits
        assert marked in hit.snippets[0].text


def test_a_phrase_may_go_from_one_script_into_another(ledger: Ledger):
    ledger.put(
        {"id": "a", "body": "日本語 x1 apple"},
        {"id": "b", "body": "日本語x1"},
        {"id": "c", "body": "x1 日本語"},
    )
    assert _found(ledger, '"日本語 x1"') == {"a", "b"}
    assert _found(ledger, '"本語 x1 apple"') == {"a"}
    assert _found(ledger, '"日本 x1"') == set()
    assert _found(ledger, '"x1 日"') == {"c"}


def test_a_character_of_half_a_word_of_a_spaced_script_finds_nothing(ledger: Ledger):
    ledger.put({"id": "a", "body": "bridges हिन्दी"})
    assert _found(ledger, "brid") == _found(ledger, "हिन") == set()


# What may be seen


@pytest.mark.parametrize("letter", ["x", "\u00e9"])
@pytest.mark.parametrize("length", [63, 64, 65, 130, 20_000])
def test_a_word_of_any_length_is_found(ledger: Ledger, letter: str, length: int):
    ledger.put({"id": "a", "body": f"see {letter * length}."}, {"id": "b", "body": f"{letter * 40}"})
    assert _found(ledger, (letter * length)[:500]) == {"a"}
    assert _found(ledger, f"{letter * 50}*") == {"a"}


def test_only_named_fields_match_and_show(ledger: Ledger):
    ledger.put(
        {"id": "a", "title": "apple", "body": "secret"}, {"id": "b", "title": "secret", "body": "apple"}
    )
    assert _found(ledger, "secret", fields=(TITLE,)) == {"b"}
    assert _found(ledger, "apple secret", fields=(TITLE,)) == set()
    (hit,) = ledger.store.search(_plan(ledger, "apple", fields=(TITLE,))).hits
    assert (hit.matched_fields, [snippet.field for snippet in hit.snippets]) == ((TITLE,), [TITLE])


def test_a_reach_bounds_a_search(ledger: Ledger):
    for connection in (0, 1):
        ledger.put(
            *(
                {"id": f"{month}", "title": "apple", "at": f"2026-0{month}-01T00:00:00Z"}
                for month in (1, 2, 3)
            ),
            {"id": "never", "title": "apple"},
            connection=connection,
        )
    assert len(ledger.store.search(_plan(ledger, "apple")).hits) == 8
    assert _found(ledger, "apple", connections=[1]) == {"1", "2", "3", "never"}
    assert _found(ledger, "apple", connections=[1], since="2026-02-01") == {"2", "3"}
    assert _found(ledger, "apple", connections=[0], until="2026-02-01") == {"1"}
    assert _found(ledger, "apple", connections=[0], resources=["3", "never"]) == {"3", "never"}
    bounded = replace(_plan(ledger, "apple", connections=[0]), filters=(ExactFilter(FieldName("id"), "2"),))
    assert [hit.record.id for hit in ledger.store.search(bounded).hits] == ["2"]


def test_a_time_bound_is_exact_to_the_microsecond(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "title": "apple", "at": f"2026-01-01T00:00:00.00000{n}Z"} for n in range(4)))
    found = _found(ledger, "apple", since="2026-01-01T00:00:00.000001Z", until="2026-01-01T00:00:00.000003Z")
    assert found == {"1", "2"}


def test_streams_are_searched_together_and_each_by_its_own_terms(ledger: Ledger):
    ledger.put({"id": "a", "title": "apple", "body": "pear"})
    ledger.put({"note": "a", "n": 1, "text": "apple", "hidden": "pear"}, stream=MARKS)
    ledger.put({"id": 1, "text": "apple pear"}, stream=PAGES, connection=1)
    reaches = (
        SearchReach(ledger.reach(fields=["id"]), (TITLE,)),
        SearchReach(ledger.reach(MARKS, fields=["n"]), (FieldName("text"),)),
        SearchReach(ledger.reach(PAGES, connections=[0]), (FieldName("text"),)),
    )
    page = ledger.store.search(SearchPlan(reaches, (Term(("apple",)),), 10))
    assert {(hit.record.stream, hit.record.body) for hit in page.hits} == {
        (NOTES, b'{"id":"a"}'),
        (MARKS, b'{"n":1}'),
    }
    assert ledger.store.search(SearchPlan(reaches, (Term(("pear",)),), 10)).hits == ()


def test_a_filter_holds_in_streams_of_one_name_of_several_connectors(ledger: Ledger):
    other = ConnectorKey("other desk")
    source = document()
    source["source"]["id"] = "https://registry.example/connectors/other"
    ledger.store.declare(other, source)
    second = ledger.store.create_connection(other, "Other").id
    ledger.put({"id": "a", "title": "bridge", "size": 1}, {"id": "b", "title": "bridge", "size": 2})
    for key, size in (("c", 1), ("d", 2)):
        line = json.dumps({"data": {"id": key, "title": "bridge", "size": size}}).encode()
        assert ledger.store.ingest(Batch(second, NOTES, [line], NOW)).accepted == 1
    reaches = [ledger.reach(), replace(ledger.reach(), connection_ids=(second,))]
    plan = SearchPlan(
        tuple(SearchReach(reach, (TITLE,)) for reach in reaches),
        parse_terms("bridge"),
        5,
        filters=(ExactFilter(FieldName("size"), 2),),
    )
    assert {hit.record.id for hit in ledger.store.search(plan).hits} == {"b", "d"}


def test_the_time_of_a_hit_is_given_only_to_readers_that_may_see_it(ledger: Ledger):
    ledger.put({"id": "a", "title": "apple", "at": "2026-01-01T00:00:00Z"})
    (seen,) = ledger.store.search(_plan(ledger, "apple")).hits
    assert seen.authored_at == 1_767_225_600_000_000
    (hidden,) = ledger.store.search(
        SearchPlan((SearchReach(ledger.reach(fields=["id"]), (TITLE,)),), (Term(("apple",)),), 5)
    ).hits
    assert hidden.authored_at is None


def test_the_old_words_of_a_record_are_forgotten(ledger: Ledger):
    ledger.put({"id": "a", "title": "apple"}, {"id": "b", "body": "東京都"})
    ledger.put({"id": "a", "title": "pear"}, {"id": "b", "body": "京都"})
    assert _found(ledger, "apple") == _found(ledger, "東京") == set()
    assert _found(ledger, "pear") == {"a"}
    ledger.remove("a", "b")
    assert _found(ledger, "pear") == _found(ledger, "京都") == set()
    ledger.put({"id": "a", "title": "plum"})
    assert (_found(ledger, "plum"), _found(ledger, "pear")) == ({"a"}, set())


# Order, pages and recall


@pytest.mark.parametrize("waiting", [0, 2, 100])
def test_texts_that_changed_are_forgotten_however_many_wait_to_be_noted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, waiting: int
):
    monkeypatch.setattr(word_segments, "_WAITING_MOST", waiting)
    ledger.put(*({"id": f"k{n}", "title": f"plum p{n}"} for n in range(6)))
    for turn in range(20):
        n = turn * 5 % 6
        ledger.put({"id": f"k{n}", "title": f"turn t{turn}"})
        assert (_found(ledger, f"t{turn}"), _found(ledger, f"p{n}")) == ({f"k{n}"}, set())
        assert _found(ledger, f"t{turn - 6}") == set()
    assert _found(ledger, "plum") == set()
    ledger.remove("k0")
    assert _found(ledger, "turn") == {f"k{n}" for n in range(1, 6)}
    ledger.put({"id": "k0", "title": "plum again"})
    assert _found(ledger, "plum") == {"k0"}


def test_a_match_in_a_title_comes_before_a_match_in_prose_and_the_newer_first(ledger: Ledger):
    ledger.put(
        {"id": "prose", "body": "an apple, and one more apple", "at": "2026-03-01T00:00:00Z"},
        {"id": "old", "title": "apple", "at": "2026-01-01T00:00:00Z"},
        {"id": "new", "title": "apple", "at": "2026-02-01T00:00:00Z"},
    )
    hits = ledger.store.search(_plan(ledger, "apple")).hits
    assert [hit.record.id for hit in hits] == ["new", "old", "prose"]


@pytest.mark.parametrize("limit", [7, 100])
def test_pages_of_hits_hold_every_match_once_however_many_there_are(
    ledger: Ledger, limit: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search_module, "RANKED_MOST", 300)
    ledger.put(
        *(
            {
                "id": f"{n:04}",
                "title" if n % 3 else "body": "apple",
                "at": f"2026-01-{n % 27 + 1:02}T00:00:00Z",
            }
            for n in range(700)
        )
    )
    plan = _plan(ledger, "apple", limit)
    first = ledger.store.search(plan)
    assert (first.count, first.ranked_all) == (700, False)
    assert first.ranked_count == 300
    keys = [hit.record.id for hit in _all_pages(ledger, plan)]
    assert (len(keys), len(set(keys))) == (700, 700)


def test_what_comes_and_goes_between_pages_neither_repeats_nor_hides_a_hit(ledger: Ledger):
    ledger.put(
        *(
            {
                "id": f"{n:04}",
                "title" if n % 50 == 0 else "body": "apple",
                "at": f"2026-{n % 12 + 1:02}-01T00:00:00Z",
            }
            for n in range(500)
        )
    )
    plan = _plan(ledger, "apple", 40)
    found: list[str] = []
    gone: set[str] = set()
    for step in range(100):
        page = ledger.store.search(plan)
        found += [hit.record.id for hit in page.hits]
        if page.next is None:
            break
        plan = replace(plan, after=page.next)
        leaving = {key for key in (f"{step * 31 % 500:04}", f"{step * 77 % 500:04}") if key not in found}
        gone |= leaving
        ledger.remove(*leaving)
        ledger.put(
            *(
                {"id": f"new{step}-{n}", "body": "apple", "at": f"2026-{n}-01T00:00:00Z"}
                for n in ("02", "07", "12")
            )
        )
    assert len(found) == len(set(found))
    assert {f"{n:04}" for n in range(500)} - set(found) <= gone


def test_snippets_show_the_words_around_the_first_match(ledger: Ledger):
    text = "lorem " * 50 + "apple" + " ipsum" * 50
    ledger.put({"id": "a", "title": "an apple", "body": text})
    (hit,) = ledger.store.search(_plan(ledger, "apple")).hits
    title, body = sorted(hit.snippets, key=lambda snippet: -len(snippet.field))
    assert (title.text, title.complete, title.match_chars) == ("an <mark>apple</mark>", True, 3)
    assert body.text.startswith("…lorem")
    assert body.text.endswith("…")
    assert (body.complete, body.match_chars) == (False, 300)


def test_a_match_deep_in_a_long_text_is_shown(ledger: Ledger):
    text = "é" * 8190 + " apple pie " + "x " * 30_000
    ledger.put({"id": "a", "body": text})
    for q in ("apple", '"apple pie"'):
        (hit,) = ledger.store.search(_plan(ledger, q)).hits
        assert hit.snippets[0].match_chars == 8191
        assert "<mark>apple" in hit.snippets[0].text


def test_a_records_own_marks_do_not_pass_for_ours(ledger: Ledger):
    ledger.put({"id": "a", "body": "</mark> apple <mark> </mark><mark>apple"})
    (hit,) = ledger.store.search(_plan(ledger, "apple")).hits
    text = hit.snippets[0].text
    assert text.count("<mark>") == text.count("</mark>") == text.count("<mark>apple</mark>") == 2


# Non-interference


@settings(
    max_examples=20,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.data())
def test_hidden_text_moves_no_hit(store: Driven, data: st.DataObject):
    words = st.lists(st.sampled_from(["apple", "pear", "plum", "日本"]), max_size=6).map(" ".join)
    ledger = Ledger(store, connections=2)
    shown = data.draw(st.lists(words, min_size=3, max_size=12))
    plan = _plan(ledger, "apple", 5, (TITLE,), connections=[0])
    answers = []
    for _ in range(2):
        ledger.put(
            *(
                {"id": f"{n}", "title": text, "body": data.draw(words), "size": n}
                for n, text in enumerate(shown)
            )
        )
        ledger.put(*({"id": f"{n}", "title": data.draw(words)} for n in range(4)), connection=1)
        answers.append(
            [(hit.record.id, hit.matched_fields, hit.snippets) for hit in _all_pages(ledger, plan)]
        )
    assert json.dumps(answers[0], default=repr) == json.dumps(answers[1], default=repr)
