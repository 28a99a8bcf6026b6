"""What the text of a search says about the query, and what stands in its structure."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from headgate.text.writing import SEARCH_TEXT
from tests.mcp.serve.test_bytes import message
from tests.mcp.serve.test_world import mail
from tests.mcp.serve.world import World, world
from tests.stitched import StitchedAccount


def in_an_account(work: Callable[[World], Awaitable[None]]) -> None:
    async def go() -> None:
        async with world(
            (StitchedAccount("mail", "Home mail", 0), StitchedAccount("mail", "Work mail", 0))
        ) as made:
            await made.add(
                "Home mail",
                "messages",
                message("all", "the invoices of the canal", subject="Gloves", sent_at="2026-01-01T00:00:00Z"),
                message("part", "the canal", subject="Gloves", sent_at="2026-02-01T00:00:00Z"),
            )
            await work(made)

    asyncio.run(go())


def test_the_text_says_how_the_query_was_understood_and_which_words_a_hit_misses():
    async def work(w: World) -> None:
        found = await w.call(mail(w), "search", q="where is the invoice for gloves canal")
        assert (
            "words: invoice 1 (also invoices), gloves 2, canal 2; left out: where, is, the, for; "
            "1 matched all, 1 some"
        ) in found.text
        meta = found.structured["data"]["meta"]
        assert (meta["count"], meta["partial_count"]) == (2, 1)
        assert meta["understood"]["words"][0] == {"word": "invoice", "count": 1, "forms": ["invoices"]}
        assert ' · not: "invoice"' in found.text
        hits = found.structured["data"]["data"]
        assert [(hit["record_key"], hit.get("missing")) for hit in hits] == [
            ("all", None),
            ("part", ["invoice"]),
        ]

    in_an_account(work)


def test_each_alternative_has_its_own_count():
    async def work(w: World) -> None:
        found = await w.call(mail(w), "search", q='invoice OR gloves OR zeppelin OR "blue gloves" canal')
        (alternatives, canal) = found.structured["data"]["meta"]["understood"]["words"]
        counts = {"invoice": 1, "gloves": 2, "zeppelin": 0, '"blue gloves"': 0}
        assert alternatives["alternatives"] == counts
        assert (alternatives["count"], canal["count"]) == (2, 2)
        assert "alternatives" not in canal
        words = 'invoice 1 OR gloves 2 OR zeppelin 0 OR "\\"blue gloves\\"" 0: together 2, canal 2'
        assert f"words: {words}; 2 matched all" in found.text
        since = {"sent_at": {"gte": "2026-01-15"}}
        narrow = await w.call(mail(w), "search", q="invoice OR gloves", streams=["messages"], filter=since)
        assert "words: invoice 0 OR gloves 1: together 1; 1 matched all" in narrow.text

    in_an_account(work)


def test_a_corrected_word_and_a_sender_are_found_and_the_newest_come_first_on_request():
    async def work(w: World) -> None:
        found = await w.call(mail(w), "search", q="glvoes")
        assert "glvoes 0 (taken for gloves 2)" in found.text
        people = await w.call(mail(w), "search", q="Albrecht", sort="time")
        assert [hit["record_key"] for hit in people.structured["data"]["data"]] == ["part", "all"]
        assert people.structured["results"][0]["who"] == "Ines Albrecht"

    in_an_account(work)


def test_a_query_of_many_long_words_leaves_the_text_within_its_budget():
    async def work(w: World) -> None:
        found = await w.call(
            mail(w), "search", q=" ".join(f"canal{'x' * 24}{n}" for n in range(15)) + " canal"
        )
        assert len(found.text.encode()) <= SEARCH_TEXT

    in_an_account(work)
