"""The size of answers, on fixed records: a model pays for every byte."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from headgate.mcp.serve.results import Outcome, ServerIdentity, result_of
from headgate.mcp.serve.tools import surface_of
from headgate.model.kinds import PUBLISHER
from headgate.model.plan import HIT_CHARS
from headgate.model.query import SearchQuery
from headgate.text.writing import HITS_BYTES, page_bytes
from tests.mcp.serve.prepared import CountingPort, found, hit, run
from tests.mcp.serve.test_kinds import built_in_source_ids
from tests.mcp.serve.test_world import mail
from tests.mcp.serve.world import World, world
from tests.stitched import StitchedAccount

VERSIONS = ("2025-11-25", "2026-07-28")
SENTENCE = "The bridge needs planks, and the canal is high this week; bring gloves and a saw. "


def in_two_accounts(work: Callable[[World], Awaitable[None]]) -> None:
    async def go() -> None:
        async with world(
            (StitchedAccount("mail", "Home mail", 0), StitchedAccount("mail", "Work mail", 0))
        ) as made:
            await work(made)

    asyncio.run(go())


def message(key: str, body: str, **more: Any) -> dict[str, Any]:
    return {
        "id": key,
        "subject": f"About the bridge {key}",
        "sender": "Ines Albrecht",
        "sent_at": "2026-07-02T00:00:00Z",
        "body": body,
        **more,
    }


def sizes(outcome: Outcome) -> list[int]:
    """Count the bytes of a whole result in each era."""
    assert not outcome.is_error, outcome.text
    return [
        len(msgspec.json.encode(result_of(outcome, ServerIdentity("0.1.0"), version))) for version in VERSIONS
    ]


def test_the_list_of_tools_has_at_most_10_000_bytes_whatever_a_grant_shows():
    names = [*(path.rpartition("/")[2] for path in built_in_source_ids()), "elsewhere"]
    surface = surface_of(has_meaning=True).naming(f"{PUBLISHER}/{name}" for name in names)
    assert "other records" in surface.tools[0]["description"]
    assert len(msgspec.json.encode({"tools": surface.tools})) <= 10_000


@pytest.mark.parametrize("words", ["canal", "canal gloves", "bridge"])
def test_a_usual_page_of_hits_has_at_most_14_000_bytes_and_none_more_than_24_000(words: str):
    async def work(w: World) -> None:
        for account in ("Home mail", "Work mail"):
            rows = (message(f"m{n:05}", SENTENCE * 9, subject=f"About bridge {n}") for n in range(20))
            await w.add(account, "messages", *rows)
        usual = await w.call(mail(w), "search", q=words)
        assert len(usual.structured["results"]) == 10
        assert all(result["match_windows"] for result in usual.structured["results"])
        assert max(sizes(usual)) <= 14_000
        large = await w.call(mail(w), "search", q=words, limit=100)
        assert len(large.structured["results"]) > 10
        assert max(sizes(large)) <= 24_000

    in_two_accounts(work)


@pytest.mark.requirement("S1-39")
@pytest.mark.parametrize("limit", [1, 10, 100])
def test_the_envelope_of_a_page_of_hits_is_that_of_the_resource_server(limit: int):
    async def work(w: World) -> None:
        for account in ("Home mail", "Work mail"):
            rows = (message(f"m{n:05}", SENTENCE * 9, subject=f"Bridge {n}") for n in range(60))
            await w.add(account, "messages", *rows)
        found = await w.call(mail(w), "search", q="bridge", limit=limit)
        form = {"line_chars": HIT_CHARS, "page_bytes": page_bytes(limit, 10, HITS_BYTES)}
        body = (await w.port(mail(w)).search(SearchQuery("bridge", limit=limit), **form)).body()
        envelope = found.structured["data"]
        moved = zip(found.structured["results"], body["data"], strict=True)
        for result, row in moved:
            # What the record is stands beside the id; the rest of a hit is left as it is.
            assert row.pop("line").items() <= result.items()
            windows = [
                {"size_chars": read.pop("size_chars"), "read": {"args": read}}
                for read in [row.pop("read", None)]
                if read
            ]
            assert result.get("match_windows", []) == windows
        assert envelope.pop("next_cursor")
        assert body.pop("next_cursor")
        assert envelope == body

    in_two_accounts(work)


@pytest.mark.requirement("S3-03")
@pytest.mark.parametrize("limit", [1, 7, 10, 100])
def test_every_hit_that_is_only_begun_can_be_read_on_at_every_limit(limit: int):
    async def work(w: World) -> None:
        rows = [message(f"m{n:05}", "canal " + SENTENCE * (9 if n % 10 else 0)) for n in range(100)]
        await w.add("Home mail", "messages", *rows)
        access, cursor, keys = mail(w), dict[str, str](), list[str]()
        while True:
            page = await w.call(access, "search", q="canal", limit=limit, collapse=False, **cursor)
            found = page.structured
            assert len(found["results"]) <= limit
            for result, row in zip(found["results"], found["data"]["data"], strict=True):
                keys.append(row["record_key"])
                places = [one["read"]["args"]["field_path"] for one in result.get("match_windows", ())]
                assert places == (["body"] if int(row["record_key"][1:]) % 10 else [])
            if "next_cursor" not in found["data"] or limit < 7:
                break
            cursor = {"cursor": found["data"]["next_cursor"]}
        assert limit < 7 or sorted(keys) == sorted(row["id"] for row in rows)
        result = next((one for one in found["results"] if "match_windows" in one), None)
        if result is not None:
            assert "read_tool with the id" in found["content_ladder"]["note"]
            arguments = {"id": result["id"], **result["match_windows"][0]["read"]["args"]}
            read = await w.call(access, found["content_ladder"]["read_tool"], **arguments)
            assert "The bridge needs planks" in read.structured["window"]["text"]

    in_two_accounts(work)


def test_a_page_of_hits_with_long_keys_and_wide_letters_is_cut_and_goes_on():
    async def work(w: World) -> None:
        rows = [message(f"m{n:05}" + "k" * 200, f"世界 bridge {n} canal " * 60) for n in range(100)]
        await w.add("Home mail", "messages", *rows)
        access, cursor, keys = mail(w), dict[str, str](), list[str]()
        while True:
            page = await w.call(access, "search", q="bridge", limit=100, collapse=False, **cursor)
            assert max(sizes(page)) <= 24_000
            keys += [row["record_key"] for row in page.structured["data"]["data"]]
            if not page.structured["data"]["has_more"]:
                break
            cursor = {"cursor": page.structured["data"]["next_cursor"]}
        assert sorted(keys) == sorted(row["id"] for row in rows)

    in_two_accounts(work)


def test_hits_of_another_server_that_cannot_fit_are_refused_with_what_to_do():
    hits = [hit(f"m{n}" + "世" * 600, title="t" * 500) for n in range(100)]
    outcome = run(CountingPort(search=found(*hits)), "search", q="bridge", limit=100)
    assert outcome.structured["error"]["code"] == "resource_limit"
    assert "smaller limit" in outcome.structured["error"]["hint"]


def test_a_record_of_800_bytes_is_fetched_in_at_most_2_400_bytes_in_either_era():
    async def work(w: World) -> None:
        row = message("m00001", "", subject="About the bridge")
        row["body"] = (SENTENCE * 9)[: 800 - len(msgspec.json.encode(row))]
        assert len(msgspec.json.encode(row)) == 800
        await w.add("Home mail", "messages", row)
        opened = await w.call(mail(w), "fetch", id=f"{w.connections['Home mail']}/messages:m00001")
        assert opened.structured["text"] == row["body"]
        assert max(sizes(opened)) <= 2_400

    in_two_accounts(work)


def channels(outcome: Outcome) -> tuple[int, int]:
    """Count the bytes of the text and of the structure."""
    return len(outcome.text.encode()), len(msgspec.json.encode(outcome.structured))


def test_a_mail_of_800_characters_is_fetched_in_1_500_bytes_of_each_channel():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message("m1", (SENTENCE * 10)[:800]))
        opened = await w.call(mail(w), "fetch", id="home-mail/messages:m1")
        assert (SENTENCE * 10)[:800] in opened.text
        assert max(channels(opened)) <= 1_500

    in_two_accounts(work)


@pytest.mark.parametrize("unit", [SENTENCE, "世界は広い。", '"\\', "\u0001", "👩‍👩‍👧"])
@pytest.mark.parametrize("key", ["m1", "k" * 1_000, "世" * 1_000])
def test_a_document_and_a_window_that_were_not_asked_for_more_have_at_most_24_000_bytes(unit: str, key: str):
    text = unit * (1_000_000 // len(unit))

    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message(key, text, subject="The bridge"))
        (row,) = (await w.call(mail(w), "query_records", stream="messages")).whole()["structuredContent"][
            "data"
        ]["data"]
        opened = await w.call(mail(w), "fetch", id=row["fetch_id"])
        assert max(sizes(opened)) <= 24_000
        document = opened.whole()["structuredContent"]
        assert document["metadata"]["text_truncated"] is True
        (rung,) = document["metadata"]["content_ladder"]["field_windows"]
        window = await w.call(mail(w), rung["read"]["tool"], **rung["read"]["args"])
        assert max(sizes(window)) <= 24_000
        begun = document["text"].removesuffix("…") + window.structured["window"]["text"]
        assert text.startswith(begun)
        asked = await w.call(
            mail(w), "read_record_field", id=row["fetch_id"], field_path="body", limit_chars=16_384
        )
        assert len(asked.text.encode()) <= 20_000
        # What goes on begins where the window ends.
        assert asked.structured["window"]["end_chars"] == len(asked.structured["window"]["text"])
        assert asked.structured["window"]["next_cursor"]

    in_two_accounts(work)


@pytest.mark.parametrize("at", [0, 300_000])
def test_a_window_around_a_match_that_is_cut_still_holds_the_match(at: int):
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", message("m1", "世" * at + " the match " + "界" * 300_000))
        for context in ({}, {"before_chars": 8_000, "after_chars": 8_000}, {"limit_chars": 16_384}):
            asked = {"id": "home-mail/messages:m1", "field_path": "body", "q": "the match"}
            window = await w.call(mail(w), "read_record_field", **asked, **context)
            assert "the match" in window.structured["window"]["text"]
            assert len(window.text.encode()) <= 20_000

    in_two_accounts(work)


@pytest.mark.parametrize("sentences", [0, 6])
def test_a_usual_page_of_records_has_at_most_14_000_bytes_and_none_more_than_24_000(sentences: int):
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *(message(f"m{n:05}", SENTENCE * sentences) for n in range(100)))
        page = await w.call(mail(w), "query_records", stream="messages")
        assert len(page.structured["data"]["data"]) >= 14
        assert max(sizes(page)) <= 14_000
        large = await w.call(mail(w), "query_records", stream="messages", limit=100)
        assert len(large.structured["data"]["data"]) > len(page.structured["data"]["data"])
        assert max(sizes(large)) <= 24_000
        # The cursor goes on after the last row that is shown, at every size of a page.
        keys, cursor = [row["id"] for row in large.structured["data"]["data"]], large
        while cursor.structured["data"]["has_more"]:
            going = cursor.structured["data"]["next_cursor"]
            cursor = await w.call(mail(w), "query_records", stream="messages", cursor=going)
            keys += [row["id"] for row in cursor.structured["data"]["data"]]
        assert sorted(keys) == sorted(set(keys)) == [f"m{n:05}" for n in range(100)]

    in_two_accounts(work)


def test_a_page_with_two_fields_of_a_megabyte_has_at_most_14_000_bytes():
    async def work(w: World) -> None:
        long = [message(f"long{n}", "Wörter über Wörter. " * 50_000) for n in range(2)]
        await w.add("Home mail", "messages", *long, *(message(f"m{n}", SENTENCE) for n in range(10)))
        page = await w.call(mail(w), "query_records", stream="messages")
        assert max(sizes(page)) <= 14_000
        ladder = page.structured["content_ladder"]
        windows = {one["fetch_id"]: one["field_windows"][0] for one in ladder["records"]}
        assert set(windows) == {"home-mail/messages:long0", "home-mail/messages:long1"}
        for fetch_id, window in windows.items():
            assert (window["field_path"], window["size_chars"]) == ("body", 1_000_000)
            read = await w.call(mail(w), ladder["read_tool"], id=fetch_id, field_path=window["field_path"])
            assert read.structured["window"]["text"].startswith("Wörter über")

    in_two_accounts(work)
