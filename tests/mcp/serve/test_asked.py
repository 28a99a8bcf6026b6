"""A search takes the days, the sender and the order that its question names, says so, and hides no answer by it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta, timezone
from typing import Any

from headgate.model.plan import HIT_CHARS
from headgate.model.query import SearchQuery
from headgate.text.writing import HITS_BYTES, page_bytes
from tests.mcp.serve.test_bytes import message
from tests.mcp.serve.test_world import MAIL, mail
from tests.mcp.serve.world import NOW, World, world
from tests.stitched import StitchedAccount

#: Today is 21 September 2026, a Monday.
ROWS = (
    message("spring", "the canal is low", subject="A", sent_at="2026-04-10T12:00:00Z"),
    message("summer", "the canal is high", subject="B", sent_at="2026-07-10T12:00:00Z"),
    message("bob", "the canal is closed", subject="C", sender="Bob Lund", sent_at="2026-07-11T12:00:00Z"),
    message("film", "canal last summer wine", subject="D", sent_at="2024-01-10T12:00:00Z"),
    message("edge", "the lock opens", subject="E", sent_at="2026-03-31T23:30:00Z"),
)


def in_an_account(work: Callable[[World], Awaitable[None]]) -> None:
    async def go() -> None:
        async with world(
            (StitchedAccount("mail", "Home mail", 0), StitchedAccount("mail", "Work mail", 0))
        ) as made:
            made.read_services.zone = timezone(timedelta(0))
            await made.add("Home mail", "messages", *ROWS)
            await work(made)

    asyncio.run(go())


async def keys(w: World, q: str, access: Any = None, **more: Any) -> tuple[list[str], dict[str, Any], str]:
    found = await w.call(access or mail(w), "search", query=q, **more)
    hits = found.structured["data"]["data"]
    understood = found.structured["data"]["meta"]["understood"]
    return [hit["record_key"] for hit in hits], understood, found.text


def test_days_narrow_a_search_and_the_answer_says_so():
    async def work(w: World) -> None:
        found, understood, text = await keys(w, "canal last spring")
        assert found == ["spring"]
        days = [{"first": "2026-03-01", "last": "2026-05-31"}]
        assert understood["asked"] == [{"phrase": "last spring", "days": days}]
        assert [word["word"] for word in understood["words"]] == ["canal"]
        assert 'taken as: "last spring" = 2026-03-01..2026-05-31 (understand=false: as words)' in text
        counted, _, text = await keys(w, "canal last spring", limit=0)
        assert (counted, "1 matched all" in text) == ([], True)

    in_an_account(work)


def test_an_agent_can_have_the_words_alone():
    async def work(w: World) -> None:
        found, understood, text = await keys(w, "canal last spring", understand=False)
        assert set(found) == {"spring", "summer", "bob", "film"}
        assert "asked" not in understood
        assert "taken as" not in text

    in_an_account(work)


def test_days_that_leave_no_record_are_not_used_and_the_answer_says_so():
    async def work(w: World) -> None:
        found, understood, text = await keys(w, "canal in 2019")
        assert set(found) == {"spring", "summer", "bob", "film"}
        assert "asked" not in understood
        assert [phrase["phrase"] for phrase in understood["not_used"]] == ["in 2019"]
        assert "not used, as nothing fits:" in text

    in_an_account(work)


def test_a_record_that_holds_the_whole_question_is_not_hidden_by_its_days():
    async def work(w: World) -> None:
        # In the summer there is a canal, but no wine: the words of a title are no days.
        found, understood, _ = await keys(w, "canal last summer wine")
        assert found[0] == "film"
        assert [phrase["phrase"] for phrase in understood["not_used"]] == ["last summer"]

    in_an_account(work)


def test_a_sender_narrows_a_search_where_a_visible_sender_has_the_name():
    async def work(w: World) -> None:
        await w.add(
            "Home mail", "messages", message("told", "Bob saw the canal", sent_at="2026-07-12T12:00:00Z")
        )
        found, understood, text = await keys(w, "messages from Bob about the canal")
        assert found == ["bob"]
        assert understood["asked"] == [{"phrase": "messages from Bob", "sender": "Bob"}]
        assert "sender Bob" in text
        found, understood, _ = await keys(w, "messages from Zoe canal last summer")
        assert set(found) == {"bob", "summer", "told"}
        assert [phrase["phrase"] for phrase in understood["not_used"]] == ["messages from Zoe"]
        blind = mail(w, fields=tuple(name for name in MAIL if name != "sender"))
        found, understood, _ = await keys(w, "messages from Bob about the canal", blind)
        assert (found[0], "asked" in understood) == ("told", False)

    in_an_account(work)


def test_days_say_nothing_to_a_grant_that_does_not_show_the_time():
    async def work(w: World) -> None:
        blind = mail(w, fields=tuple(name for name in MAIL if name != "sent_at"))
        found, understood, _ = await keys(w, "canal last spring", blind)
        assert set(found) == {"spring", "summer", "bob", "film"}
        assert "asked" not in understood

    in_an_account(work)


def test_the_latest_come_first():
    async def work(w: World) -> None:
        found, understood, text = await keys(w, "latest canal")
        assert found == ["bob", "summer", "spring", "film"]
        assert understood["asked"] == [{"phrase": "latest", "sort": "time"}]
        assert "latest = newest first" in text

    in_an_account(work)


def test_later_pages_keep_what_the_first_one_understood_after_midnight():
    async def work(w: World) -> None:
        rows = (
            message(f"y{n}", f"canal {n}", subject=f"Y{n}", sent_at="2026-09-20T12:00:00Z") for n in range(3)
        )
        await w.add("Home mail", "messages", *rows)
        first = await w.call(mail(w), "search", query="canal yesterday", limit=2)
        meta = first.structured["data"]["meta"]
        w.read_services.clock = lambda: NOW + 12 * 3600 * 1_000_000
        cursor = first.structured["data"]["next_cursor"]
        second = await w.call(mail(w), "search", query="canal yesterday", limit=2, cursor=cursor)
        pages = [*first.structured["data"]["data"], *second.structured["data"]["data"]]
        assert sorted(hit["record_key"] for hit in pages) == ["y0", "y1", "y2"]
        assert second.structured["data"]["meta"]["understood"]["asked"] == meta["understood"]["asked"]
        assert (await keys(w, "canal yesterday"))[1]["not_used"]

    in_an_account(work)


def test_a_day_begins_where_the_owner_is():
    async def work(w: World) -> None:
        assert (await keys(w, "lock opens in April"))[1]["not_used"]
        w.read_services.zone = timezone(timedelta(hours=2))
        # The times of this stream are of no known zone: as a clock showed them.
        assert (await keys(w, "lock opens in April"))[1]["not_used"]
        assert (await keys(w, "lock opens in March"))[0] == ["edge"]

    in_an_account(work)


def test_a_resource_server_takes_words_alone_unless_it_is_asked_to_understand():
    async def work(w: World) -> None:
        port = w.port(mail(w))
        plain = (await port.search(SearchQuery("canal last spring"))).body()
        assert plain["meta"]["understood"].keys() == {"words"}
        asked = (await port.search(SearchQuery("canal last spring", understand=True))).body()
        assert [hit["record_key"] for hit in asked["data"]] == ["spring"]
        assert "understand=true" in asked["links"]["self"]
        form = {"line_chars": HIT_CHARS, "page_bytes": page_bytes(10, 10, HITS_BYTES)}
        short = (await port.search(SearchQuery("canal last spring", limit=10), **form)).body()
        assert [hit["record_key"] for hit in short["data"]] == ["spring"]

    in_an_account(work)
