"""What a search finds beside the words as they were typed, in which order, and how it says so."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from headgate.errors import InvalidRequest
from headgate.model.ids import FieldName
from headgate.model.plan import SearchPlan, SearchReach, parse_terms
from headgate.model.query import SearchSort
from headgate.model.rows import SearchPage
from headgate.store.changes.word_index import WordMerging
from headgate.store.search import lexical as search_module
from headgate.store.sql.database import Database
from tests.store.declared import DESK, document, stream_of
from tests.store.hostile_queries import HOSTILE_QUERIES
from tests.store.ledger import Ledger

TITLE, BODY = FieldName("title"), FieldName("body")


def ask(ledger: Ledger, q: str, limit: int = 25, **narrowed: Any) -> SearchPage:
    fields = narrowed.pop("search_fields", (TITLE, BODY))
    return ledger.store.search(
        SearchPlan((SearchReach(ledger.reach(**narrowed), fields),), parse_terms(q), limit)
    )


def keys(page: SearchPage) -> list[str]:
    return [hit.record.id for hit in page.hits]


def whole(page: SearchPage) -> list[str]:
    return [hit.record.id for hit in page.hits if not hit.missing]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        ("the invoices of the bridge and the plans", ["invoice", "invoiced", "bridges", "plan"]),
        ("die Rechnungen für das Haus und die Brücke", ["Rechnung", "brücken", "hauses"]),
        ("les factures de la maison et les ponts", ["facture", "maisons", "pont"]),
        ("las facturas de la casa y los puentes", ["factura", "casas", "puente"]),
        ("как и когда мы получили счета за дома", ["счет", "дом"]),
        ("시스템이 멈추었습니다", ["시스템", "시스템을", "시스템은"]),
        ("het is de brug die door een boer wordt gebruikt en niet meer gebouwd", ["gebruik", "gebruiken"]),
    ],
)
def test_other_forms_of_a_word_match_in_the_language_of_the_text(
    ledger: Ledger, text: str, queries: list[str]
):
    ledger.put({"id": "a", "body": text}, {"id": "other", "body": "nothing of the kind"})
    for q in queries:
        page = ask(ledger, q)
        assert (q, whole(page)) == (q, ["a"])
        assert "<mark>" in page.hits[0].snippets[0].text


def test_the_word_as_it_was_typed_comes_before_its_other_forms(ledger: Ledger):
    ledger.put(
        {"id": "other", "body": "the invoices are here", "at": "2026-05-01T00:00:00Z"},
        {"id": "exact", "body": "the invoice is here", "at": "2026-01-01T00:00:00Z"},
    )
    page = ask(ledger, "invoice")
    assert keys(page) == ["exact", "other"]
    assert [(one.word, one.forms) for one in page.understood.words] == [("invoice", ("invoices",))]


@pytest.mark.parametrize(
    ("text", "queries"),
    [
        (
            "paid on 3 March 2026",
            ["2026-03-03", "3 March 2026", "March 3, 2026", "3. März 2026", "03.03.2026"],
        ),
        ("paid on 2026-03-03", ["3 March 2026", "2026-03-03", "3 mars 2026"]),
        ("a total of 1.234,50 EUR", ["1234.50", "1,234.5", "1.234,50", "1234,50 EUR"]),
        ("a total of 1234.5", ["1.234,50", "1'234.50"]),
    ],
)
def test_dates_and_numbers_match_however_they_are_written(ledger: Ledger, text: str, queries: list[str]):
    ledger.put({"id": "a", "body": text}, {"id": "other", "body": "paid on 4 April 2027, 1.235,50 EUR"})
    for q in queries:
        page = ask(ledger, q)
        assert (q, whole(page)) == (q, ["a"])
        assert "<mark>" in page.hits[0].snippets[0].text


@pytest.mark.parametrize(
    "q", ["brigde", "brdge", "bridgee", "rbidge", "xridge", "ridge", "abridge", "bxidge"]
)
def test_one_typing_error_is_forgiven_where_nothing_else_matches(ledger: Ledger, q: str):
    ledger.put({"id": "a", "title": "bridge"}, {"id": "b", "title": "fridges"})
    page = ask(ledger, q)
    assert keys(page) == ["a"]
    assert page.understood.words[0].corrected == ("bridge",)
    ledger.put({"id": "c", "title": q})
    page = ask(ledger, q)
    assert (keys(page), page.understood.words[0].corrected) == (["c"], ())


@pytest.mark.parametrize("q", ["brde", "plna", '"brigde"', "brigde*", "bridegs"])
def test_short_words_quoted_words_and_two_errors_are_not_corrected(ledger: Ledger, q: str):
    ledger.put({"id": "a", "title": "bridge plan"})
    assert keys(ask(ledger, q)) == []


def test_records_with_most_of_the_words_follow_and_name_what_they_miss(ledger: Ledger):
    ledger.put(
        {"id": "all", "body": "canal gloves saw"},
        {"id": "two", "body": "canal saw"},
        {"id": "one", "body": "canal"},
    )
    page = ask(ledger, "canal gloves saw")
    assert [(hit.record.id, hit.missing) for hit in page.hits] == [("all", ()), ("two", ("gloves",))]
    assert (page.count, page.partial_count) == (1, 1)
    assert keys(ask(ledger, "canal gloves saw", limit=1)) == ["all"]


def test_of_a_long_question_one_rare_word_is_enough_and_several_frequent_ones_are_not(ledger: Ledger):
    ledger.put(
        *({"id": f"often{n}", "body": "canal saw boat"} for n in range(40)),
        {"id": "rare", "body": "gloves"},
        {"id": "none", "body": "something else"},
    )
    page = ask(ledger, "canal saw boat gloves ladder rope wheel")
    assert keys(page) == ["rare"]
    assert page.hits[0].missing == ("canal", "saw", "boat", "ladder", "rope", "wheel")
    assert (page.count, page.partial_count) == (0, 1)


def test_a_run_without_spaces_is_found_by_its_parts_where_it_is_not_found_whole(ledger: Ledger):
    ledger.put(
        {"id": "file", "body": "設定ファイルの場所"},
        {"id": "network", "body": "ネットワークの設定と方法"},
        *({"id": f"other{n}", "body": "別の話です"} for n in range(20)),
    )
    page = ask(ledger, "ネットワーク設定方法")
    assert [(hit.record.id, hit.missing) for hit in page.hits] == [
        ("network", ("ネットワーク設定方法",)),
        ("file", ("ネットワーク設定方法",)),
    ]
    assert (page.count, page.partial_count) == (0, 2)
    assert [one.word for one in page.understood.words] == ["ネットワーク設定方法"]
    assert "<mark>設定</mark>" in page.hits[1].snippets[0].text
    assert whole(ask(ledger, "設定ファイル")) == ["file"]
    assert "<mark>設定ファイル</mark>" in ask(ledger, "設定ファイル").hits[0].snippets[0].text
    assert keys(ask(ledger, '"ネットワーク設定方法"')) == []


def test_a_very_long_run_without_spaces_has_a_bounded_number_of_parts(ledger: Ledger):
    ledger.put({"id": "a", "body": "一丁"})
    run = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    page = ask(ledger, f"{run} canal")
    assert (keys(page), len(page.understood.words)) == (["a"], 2)


def test_of_more_partial_matches_than_are_ranked_those_with_the_most_words_stay(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(search_module, "RANKED_MOST", 4)
    ledger.put(
        {"id": "whole", "body": "canal gloves saw", "at": "2026-01-01T00:00:00Z"},
        {"id": "two", "body": "gloves saw", "at": "2026-01-02T00:00:00Z"},
        *({"id": f"one{n}", "body": "canal", "at": f"2026-02-0{n + 1}T00:00:00Z"} for n in range(6)),
        *({"id": f"other{n}", "body": "nothing", "at": "2026-03-01T00:00:00Z"} for n in range(6)),
    )
    page = ask(ledger, "canal gloves saw")
    assert (keys(page), page.ranked_all) == (["whole", "two"], True)


def test_a_question_may_have_as_many_words_as_a_person_types(ledger: Ledger):
    ledger.put({"id": "a", "body": "the gloves are in the shed"})
    long = "you asked me to look for the thing that I lost in spring and I do not know where it was put by us"
    assert keys(ask(ledger, f"{long} but it was about the gloves that are in our old shed")) == ["a"]
    with pytest.raises(InvalidRequest):
        ask(ledger, " ".join(f"w{n}" for n in range(65)))


def test_a_full_page_of_whole_matches_has_no_partial_ones_and_neither_have_those_after_it(ledger: Ledger):
    ledger.put(*({"id": f"{n}", "body": "canal saw"} for n in range(5)), {"id": "part", "body": "canal"})
    plan = SearchPlan((SearchReach(ledger.reach(), (TITLE, BODY)),), parse_terms("canal saw"), 4)
    first = ledger.store.search(plan)
    assert first.next is not None
    second = ledger.store.search(replace(plan, after=first.next))
    assert (len(first.hits), len(second.hits), second.next) == (4, 1, None)
    assert not any(hit.missing for hit in (*first.hits, *second.hits))


def test_a_phrase_and_an_excluded_word_stay_strict_and_or_takes_either(ledger: Ledger):
    ledger.put(
        {"id": "a", "body": "bridge plan for the canal"},
        {"id": "b", "body": "plan of a bridge"},
        {"id": "c", "body": "canal draft"},
    )
    assert keys(ask(ledger, '"bridge plan" canal gloves')) == ["a"]
    assert set(keys(ask(ledger, "canal -draft"))) == {"a"}
    assert set(keys(ask(ledger, "plan -canal"))) == {"b"}
    assert set(keys(ask(ledger, 'plan -"bridge plan"'))) == {"b"}
    assert set(whole(ask(ledger, "draft OR bridge"))) == {"a", "b", "c"}
    assert set(whole(ask(ledger, "canal draft OR bridge"))) == {"a", "c"}
    assert ask(ledger, "canal -draft").understood.excluded == ("draft",)


def test_words_without_a_subject_do_not_decide_unless_there_are_no_others(ledger: Ledger):
    ledger.put({"id": "a", "body": "paid the invoice"}, {"id": "b", "body": "the who and when"})
    page = ask(ledger, "when did we pay for the invoice?")
    assert whole(page) == []
    assert [hit.record.id for hit in page.hits] == ["a"]
    assert page.understood.left_out == ("when", "did", "we", "for", "the")
    assert whole(ask(ledger, "the who")) == ["b"]


def test_particles_do_not_decide_in_japanese_unless_there_is_nothing_else(ledger: Ledger):
    ledger.put(
        {"id": "a", "body": "全消去とは、ハードディスクを"},
        {"id": "b", "body": "食べ物"},
        {"id": "c", "body": "食べた物"},
    )
    page = ask(ledger, "ハードディスクの全消去")
    assert (whole(page), page.understood.left_out) == (["a"], ("の",))
    assert [word.word for word in page.understood.words] == ["ハードディスク", "全消去"]
    assert "<mark>全消去</mark>" in page.hits[0].snippets[0].text
    assert whole(ask(ledger, "食べ物")) == ["b"]
    for q in ("とは", "「とは」"):
        assert (whole(ask(ledger, q)), ask(ledger, q).understood.left_out) == (["a"], ())
    assert whole(ask(ledger, '"ハードディスクの全消去"')) == []


def test_pairs_of_characters_gain_nothing_by_standing_together(ledger: Ledger):
    ledger.put(
        {"id": "together", "body": "東京都 木", "at": "2026-01-01T00:00:00Z"},
        {"id": "apart", "body": "東京 都庁", "at": "2026-05-01T00:00:00Z"},
    )
    assert keys(ask(ledger, "東京都庁")) == ["apart", "together"]


def test_a_rare_word_weighs_more_than_a_frequent_one(ledger: Ledger):
    ledger.put(
        *({"id": f"{n}", "body": "canal"} for n in range(20)),
        {"id": "frequent", "body": "canal water lock", "at": "2026-05-01T00:00:00Z"},
        {"id": "rare", "body": "gloves water lock", "at": "2026-01-01T00:00:00Z"},
    )
    assert keys(ask(ledger, "water lock canal gloves"))[:2] == ["rare", "frequent"]


def test_a_title_does_not_make_up_for_words_that_are_missing(ledger: Ledger):
    ledger.put(
        *({"id": f"{n}", "body": "something else"} for n in range(30)),
        {"id": "title", "title": "canal canal", "body": "boats"},
        {"id": "text", "title": "notes", "body": "the canal and its gloves, " + "by the way " * 5},
    )
    ledger.put({"id": "other", "body": "a ladder"})
    order = keys(ask(ledger, "canal gloves ladder"))
    assert order.index("text") < order.index("title")


def test_a_record_with_every_word_that_there_is_comes_before_better_matches_of_some(ledger: Ledger):
    long = "word " * 600
    ledger.put(
        *({"id": f"{n}", "body": "something else"} for n in range(30)),
        {"id": "both", "body": f"{long} canal {long} gloves {long}"},
        *({"id": f"one{n}", "title": "canal", "body": "canal"} for n in range(3)),
    )
    page = ask(ledger, "canal gloves zeppelins")
    assert keys(page) == ["both", "one0", "one1", "one2"]
    assert page.hits[0].missing == ("zeppelins",)
    first = ask(ledger, "canal gloves zeppelins", limit=1)
    ledger.put({"id": "later", "body": "zeppelins"})
    assert first.next is not None
    plan = SearchPlan(
        (SearchReach(ledger.reach(), (TITLE, BODY)),),
        parse_terms("canal gloves zeppelins"),
        25,
        after=first.next,
    )
    assert [key for key in keys(ledger.store.search(plan)) if key != "later"] == ["one0", "one1", "one2"]


def test_a_word_that_was_taken_for_another_ranks_below_words_that_are_there(ledger: Ledger):
    ledger.put(
        *({"id": f"{n}", "body": "something else"} for n in range(30)),
        {"id": "corrected", "title": "packing list", "body": "packing"},
        *({"id": f"fine{n}", "body": "it is fine"} for n in range(9)),
    )
    assert keys(ask(ledger, "parking fine")) == [*(f"fine{n}" for n in range(9)), "corrected"]
    assert keys(ask(ledger, "parking")) == ["corrected"]


def test_words_that_stand_together_come_before_words_far_apart(ledger: Ledger):
    ledger.put(
        {"id": "far", "body": "canal " + "x " * 40 + "gloves", "at": "2026-05-01T00:00:00Z"},
        {"id": "near", "body": "x " * 40 + "canal gloves", "at": "2026-01-01T00:00:00Z"},
    )
    assert keys(ask(ledger, "canal gloves")) == ["near", "far"]


def test_the_newest_come_first_where_that_is_asked_for(ledger: Ledger):
    ledger.put(
        {"id": "title", "title": "canal", "at": "2026-01-01T00:00:00Z"},
        {"id": "prose", "body": "canal", "at": "2026-05-01T00:00:00Z"},
        {"id": "never", "title": "canal"},
    )
    plan = SearchPlan((SearchReach(ledger.reach(), (TITLE, BODY)),), parse_terms("canal"), 2)
    newest = replace(plan, sort=SearchSort.TIME)
    first = ledger.store.search(newest)
    second = ledger.store.search(replace(newest, after=first.next))
    assert (keys(first), keys(second)) == (["prose", "title"], ["never"])
    assert keys(ledger.store.search(replace(plan, limit=9)))[-1] == "prose"


def test_times_that_may_not_be_seen_have_no_part_in_the_order(ledger: Ledger):
    ledger.put(
        {"id": "a", "title": "canal", "at": "2026-01-01T00:00:00Z"},
        {"id": "b", "title": "canal", "at": "2026-05-01T00:00:00Z"},
    )
    reach = SearchReach(ledger.reach(fields=["id"]), (TITLE,), shows_time=False)
    for sort in SearchSort:
        assert keys(ledger.store.search(SearchPlan((reach,), parse_terms("canal"), 9, sort=sort))) == [
            "a",
            "b",
        ]


def test_people_are_found_by_name_and_address_also_in_fields_that_a_later_version_adds(ledger: Ledger):
    ledger.put({"id": "old", "title": "x", "sender": "Ines Albrecht", "recipients": [{"name": "Bo"}]})
    wider = document("2")
    properties = stream_of(wider, "notes")["schema"]["properties"]
    properties |= {"sender": {"type": "string"}, "recipients": {"type": "array"}}
    ledger.store.declare(DESK, wider)
    ledger.put(
        {"id": "new", "recipients": [{"name": "Ines Albrecht", "address": "ines@example.org"}, "bo@x.org"]}
    )
    people = (FieldName("sender"), FieldName("recipients"))
    assert set(keys(ask(ledger, "albrecht", search_fields=people))) == {"old", "new"}
    assert keys(ask(ledger, "ines@example.org", search_fields=people)) == ["new"]
    assert set(keys(ask(ledger, "bo", search_fields=people))) == {"old", "new"}
    (hit,) = ask(ledger, "ines@example.org", search_fields=people).hits
    assert [(one.field, "<mark>ines@example.org</mark>" in one.text) for one in hit.snippets] == [
        ("recipients", True)
    ]


def test_a_text_with_very_many_words_is_found_to_its_end_and_phrases_over_its_parts_too(ledger: Ledger):
    words = ["lorem"] * 64_990 + ["seam", "left", "right", "mend"] * 10 + ["ipsum"] * 70_000 + ["ending"]
    ledger.put({"id": "a", "body": " ".join(words)})
    for q in ("ending", '"left right mend seam left"', '"ipsum ending"'):
        assert keys(ask(ledger, q)) == ["a"]
    assert keys(ask(ledger, '"ending ipsum"')) == []


def test_a_changed_text_is_found_by_its_new_words_only_and_an_unchanged_one_stays(ledger: Ledger):
    ledger.put({"id": "a", "title": "canal", "body": "gloves", "size": 1})
    ledger.put({"id": "a", "title": "canal", "body": "saw", "size": 2})
    assert [keys(ask(ledger, q)) for q in ("canal", "gloves", "saw")] == [["a"], [], ["a"]]
    ledger.put({"id": "a", "title": "canal", "body": "saw", "at": "2026-05-01T00:00:00Z"})
    found = ask(ledger, "canal", since="2026-04-01", until="2026-06-01")
    assert keys(found) == ["a"]
    ledger.remove("a")
    assert [keys(ask(ledger, q)) for q in ("canal", "gloves", "saw")] == [[], [], []]


def test_many_small_batches_are_found_before_and_after_their_segments_are_merged(ledger: Ledger):
    for n in range(40):
        ledger.put({"id": f"{n:02}", "title": f"canal number{n}", "body": "gloves" if n % 2 else "saw"})
        if n % 5 == 0:
            ledger.remove(f"{n:02}")
    expected = {f"{n:02}" for n in range(40) if n % 5}
    assert set(keys(ask(ledger, "canal", limit=100))) == expected
    ledger.store.run(ledger.store.bare._writer.run(_merge_all, in_transaction=False))
    sizes = ledger.store.run(ledger.store.bare._writer.run(_segment_sizes))
    assert set(Counter((sid, fid) for sid, fid, *_ in sizes).values()) == {1}
    assert set(keys(ask(ledger, "canal", limit=100))) == expected
    assert set(whole(ask(ledger, "canal gloves", limit=100))) == {key for key in expected if int(key) % 2}


def _segment_sizes(database: Database) -> list[tuple[int, ...]]:
    return database.all(database.sql["word_segment_sizes"])


def _merge_all(database: Database) -> None:
    while WordMerging().step(database):
        pass


@pytest.mark.parametrize("q", HOSTILE_QUERIES, ids=range(len(HOSTILE_QUERIES)))
def test_a_hostile_query_is_answered_within_its_bounds_or_refused_by_name(ledger: Ledger, q: str):
    ledger.put({"id": "a", "title": "canal"})
    try:
        page = ask(ledger, q)
    except InvalidRequest as refusal:
        refused, hits, words = refusal.param, 0, 0
    else:
        refused, hits, words = "q", len(page.hits), len(page.understood.words)
    assert (refused, hits <= 1, words <= 16) == ("q", True, True)
