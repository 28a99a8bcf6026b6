"""Hits that are alike are shown as one, and each is still counted, logged and reachable."""

from __future__ import annotations

import re
from typing import Any

import pytest

from headgate.mcp.serve.results import Outcome
from headgate.model.query import SearchQuery
from tests.mcp.serve.test_bytes import in_two_accounts, message
from tests.mcp.serve.test_world import mail
from tests.mcp.serve.world import World

DAYS = [f"2026-0{month}-{day:02}T08:00:00Z" for month in range(1, 4) for day in range(1, 21)]


def reminders(count: int, text: str = "Water the lantern tree.") -> list[dict[str, Any]]:
    return [message(f"r{n:02}", text, subject="Reminder", sent_at=DAYS[n % len(DAYS)]) for n in range(count)]


async def pages(w: World, limit: int, **more: Any) -> list[Any]:
    """Follow the printed cursor to the last page."""
    answers, cursor = list[Any](), dict[str, str]()
    while True:
        answer = await w.call(mail(w), "search", query="lantern", limit=limit, **more, **cursor)
        answers.append(answer)
        printed = re.search(r'next_cursor="([^"]+)"', answer.text)
        if printed is None:
            return answers
        cursor = {"cursor": printed[1]}


def hits_of(answers: list[Any]) -> list[dict[str, Any]]:
    return [hit for answer in answers for hit in answer.structured["data"]["data"]]


def test_hits_that_are_alike_are_one_hit_that_says_how_many_and_of_which_days():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *reminders(20), message("m1", "a lantern for Ines"))
        found = await w.call(mail(w), "search", query="lantern")
        assert len(found.structured["results"]) == 2
        alike = [hit.get("alike") for hit in found.structured["data"]["data"]]
        times = {"earliest": "2026-01-01T08:00:00Z", "latest": "2026-01-19T08:00:00Z"}
        assert {"count": 19, **times} in alike
        assert '"Home mail" · 19 more alike, 2026-01-01 to 2026-01-19\n' in found.text
        assert "count=exact:21" in found.text

    in_two_accounts(work)


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 25, 100])
def test_what_pages_print_and_what_is_alike_make_the_count(limit: int):
    async def work(w: World) -> None:
        # In both accounts, and with others in between.
        others = [message(f"m{n:02}", f"lantern {n}", sent_at=DAYS[n]) for n in range(30)]
        await w.add("Home mail", "messages", *reminders(40), *others)
        await w.add("Work mail", "messages", *reminders(15))
        folded = await pages(w, limit)
        hits = hits_of(folded)
        assert len(hits) + sum(hit.get("alike", {}).get("count", 0) for hit in hits) == 85
        printed = [
            int(number) for answer in folded for number in re.findall(r"(\d+) more alike", answer.text)
        ]
        assert sum(len(re.findall("^   id=", answer.text, re.MULTILINE)) for answer in folded) == len(hits)
        assert len(hits) + sum(printed) == 85
        assert len(hits) < 85 or limit == 1
        single = hits_of(await pages(w, limit, collapse=False))
        assert len({(hit["connection_id"], hit["record_key"]) for hit in single}) == len(single) == 85

    in_two_accounts(work)


def test_records_of_different_texts_are_not_alike():
    async def work(w: World) -> None:
        texts = ["Water the lantern tree.", "Water the lantern tree, and the fern."]
        for n, text in enumerate(texts):
            await w.add("Home mail", "messages", message(f"m{n}", text, subject="Reminder"))
        await w.add("Work mail", "messages", message("m0", texts[0], subject="Reminder"))
        found = await w.call(mail(w), "search", query="lantern")
        assert len(found.structured["results"]) == 3
        assert "alike" not in found.text

    in_two_accounts(work)


def test_hits_with_long_texts_are_alike_wherever_they_stand_on_a_page():
    async def work(w: World) -> None:
        # The first by words; then others, which are better than its twin; the first hits show more of a text.
        long = "lantern " + "and the fern needs water every other day " * 9
        others = [message(f"m{n}", f"lantern {n} " + long, sent_at=DAYS[30 + n]) for n in range(7)]
        twins = [message(f"t{n}", long, subject="Twin", sent_at=DAYS[n * 50]) for n in range(2)]
        await w.add("Home mail", "messages", *others, *twins)
        found = await w.call(mail(w), "search", query="lantern", sort="time")
        hits = found.structured["data"]["data"]
        assert [hit["record_key"] for hit in hits] == ["t1", *(f"m{n}" for n in range(6, -1, -1))]
        assert hits[0]["alike"]["count"] == 1

    in_two_accounts(work)


def test_hits_that_are_alike_are_logged():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *reminders(12))
        await w.call(mail(w), "search", query="lantern")
        shown = {key for part in w.log.written[-1].parts for key in part.record_ids}
        assert shown == {f"r{n:02}" for n in range(12)}

    in_two_accounts(work)


def test_only_the_form_for_models_shows_alike_hits_as_one_unless_it_is_asked_for():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *reminders(12))
        port = w.port(mail(w))
        plain = (await port.search(SearchQuery("lantern"))).body()["data"]
        assert len(plain) == 12
        (hit,) = (await port.search(SearchQuery("lantern", collapse=True))).body()["data"]
        assert hit["alike"]["count"] == 11
        assert hit["object"] == "search_result"
        (hit,) = (await port.search(SearchQuery("lantern"), page_bytes=5_000)).body()["data"]
        assert hit["alike"]["count"] == 11
        form = {"line_chars": 256, "page_bytes": 9_000}
        assert len((await port.search(SearchQuery("lantern", collapse=False), **form)).body()["data"]) == 12

    in_two_accounts(work)


def keys_of(answer: Outcome) -> list[str]:
    return [hit["record_key"] for hit in answer.structured["data"]["data"]]


def test_few_hits_with_all_the_words_are_followed_by_those_with_most_and_the_others_come_with_the_cursor():
    async def work(w: World) -> None:
        two = [message(f"two{n}", f"a fern and moss {n}") for n in range(2)]
        one = [message(f"one{n}", f"a fern {n}") for n in range(3)]
        others = [message(f"other{n}", f"a stone {n}") for n in range(20)]
        await w.add(
            "Home mail", "messages", message("all", "a lantern, a fern and moss"), *two, *one, *others
        )
        asked = {"query": "lantern fern moss"}
        first = await w.call(mail(w), "search", **asked)
        assert keys_of(first) == ["all", "two0", "two1"]
        assert "1 matched all, 5 some" in first.text
        second = await w.call(mail(w), "search", **asked, cursor=first.structured["data"]["next_cursor"])
        assert sorted(keys_of(second)) == ["one0", "one1", "one2"]

    in_two_accounts(work)


def test_a_page_ends_before_hits_that_hold_far_fewer_words_than_its_first():
    async def work(w: World) -> None:
        one = [message(f"one{n}", f"a fern {n}") for n in range(6)]
        others = [message(f"other{n}", f"a stone {n}") for n in range(20)]
        await w.add("Home mail", "messages", message("three", "a lantern, a fern and moss"), *one, *others)
        asked = {"query": "lantern fern moss zeppelin"}
        first = await w.call(mail(w), "search", **asked)
        assert keys_of(first) == ["three"]
        rest = await w.call(mail(w), "search", **asked, cursor=first.structured["data"]["next_cursor"])
        assert sorted(keys_of(rest)) == [f"one{n}" for n in range(6)]

    in_two_accounts(work)


def test_hits_that_lack_words_come_with_the_cursor_where_enough_have_all():
    async def work(w: World) -> None:
        ferns = [message(f"f{n}", f"a fern {n}") for n in range(3)]
        both = [message(f"b{n}", f"a lantern and a fern {n}") for n in range(5)]
        await w.add("Home mail", "messages", *both, *reminders(3), *ferns)
        first = await w.call(mail(w), "search", query="lantern fern")
        assert sorted(keys_of(first)) == [f"b{n}" for n in range(5)]
        assert "5 matched all, 6 some" in first.text
        assert first.text.startswith(
            "search: 5 hit(s) with all the words; the others lack some. has_more=true"
        )
        cursor = first.structured["data"]["next_cursor"]
        second = await w.call(mail(w), "search", query="lantern fern", cursor=cursor)
        assert len(second.structured["results"]) == 4
        assert second.text.startswith("search: 4 hit(s). ")
        assert [hit["alike"]["count"] for hit in second.structured["data"]["data"] if "alike" in hit] == [2]

    in_two_accounts(work)


def test_a_word_that_no_record_holds_is_named_in_the_head_and_not_in_every_hit():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message("all", "a lantern and a fern"), *reminders(3))
        none = await w.call(mail(w), "search", query="lantern orchid")
        assert len(none.structured["results"]) == 2
        assert "orchid 0; 0 matched all, 4 some" in none.text
        assert "not:" not in none.text

    in_two_accounts(work)
