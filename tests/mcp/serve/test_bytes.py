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
from headgate.model.query import SearchQuery
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
def test_a_page_of_25_hits_has_at_most_36_000_bytes(words: str):
    async def work(w: World) -> None:
        for account in ("Home mail", "Work mail"):
            await w.add(account, "messages", *(message(f"m{n:05}", SENTENCE * 9) for n in range(20)))
        found = await w.call(mail(w), "search", q=words, limit=25)
        assert len(found.structured["results"]) == 25
        assert all(result["match_windows"] for result in found.structured["results"])
        assert max(sizes(found)) <= 36_000

    in_two_accounts(work)


@pytest.mark.requirement("S1-39")
def test_a_page_of_100_hits_fits_and_its_envelope_is_whole():
    async def work(w: World) -> None:
        for account in ("Home mail", "Work mail"):
            await w.add(account, "messages", *(message(f"m{n:05}", SENTENCE * 9) for n in range(60)))
        found = await w.call(mail(w), "search", q="bridge", limit=100)
        assert len(found.structured["results"]) == 100
        assert max(sizes(found)) <= 100_000
        port = w.port(mail(w))
        body = (await port.search(SearchQuery("bridge", limit=100))).body()
        for hit, whole in zip(found.structured["data"]["data"], body["data"], strict=True):
            excerpts, wholes = hit.pop("evidence_excerpts"), whole.pop("evidence_excerpts")
            assert hit == whole
            assert [one["field_path"] for one in excerpts] == [one["field_path"] for one in wholes]

    in_two_accounts(work)


@pytest.mark.requirement("S3-03")
def test_every_hit_that_is_only_begun_can_be_read_on_at_every_limit():
    async def work(w: World) -> None:
        rows = [message(f"m{n:05}", "canal " + SENTENCE * (9 if n % 10 else 0)) for n in range(100)]
        for account in ("Home mail", "Work mail"):
            await w.add(account, "messages", *rows)
        access = mail(w)
        for limit in range(1, 101):
            found = (await w.call(access, "search", q="canal", limit=limit)).structured
            assert len(found["results"]) == limit
            hits = found["data"]["data"]
            for result, hit in zip(found["results"], hits, strict=True):
                begun = [one["field_path"] for one in hit["evidence_excerpts"] if one["truncated"]]
                calls = [one["read"]["args"] for one in result.get("match_windows", ())]
                assert [one["field_path"] for one in calls] == begun
                assert bool(begun) == (int(hit["record_key"][1:]) % 10 > 0)
        ladder = found["content_ladder"]
        assert "read_tool with the id" in ladder["note"]
        result = next(one for one in found["results"] if "match_windows" in one)
        arguments = {"id": result["id"], **result["match_windows"][0]["read"]["args"]}
        read = await w.call(access, ladder["read_tool"], **arguments)
        assert read.structured["window"]["text"].startswith("canal The bridge needs planks")

    in_two_accounts(work)


def test_hits_that_cannot_fit_are_refused_with_what_to_do():
    async def work(w: World) -> None:
        rows = (message(f"m{n:05}" + "k" * 200, "世界 bridge canal " * 60) for n in range(100))
        await w.add("Home mail", "messages", *rows)
        answer = await w.call(mail(w), "search", q="bridge", limit=100)
        assert answer.structured["error"]["code"] == "resource_limit"
        assert "smaller limit" in answer.structured["error"]["hint"]
        assert max(sizes(await w.call(mail(w), "search", q="bridge", limit=25))) <= 100_000

    in_two_accounts(work)


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


def test_a_page_of_25_records_is_little_larger_than_its_records_and_its_text():
    async def work(w: World) -> None:
        await w.add("Home mail", "messages", *(message(f"m{n:05}", SENTENCE * 6) for n in range(25)))
        page = await w.call(mail(w), "query_records", stream="messages", limit=25)
        records = len(msgspec.json.encode(page.structured["data"]["data"]))
        assert len(page.structured["data"]["data"]) == 25
        assert max(sizes(page)) <= 1.2 * records + len(page.text.encode())

    in_two_accounts(work)


def test_a_page_with_two_fields_of_a_megabyte_has_at_most_100_000_bytes():
    async def work(w: World) -> None:
        long = [message(f"long{n}", "Wörter über Wörter. " * 50_000) for n in range(2)]
        await w.add("Home mail", "messages", *long, *(message(f"m{n}", SENTENCE) for n in range(23)))
        page = await w.call(mail(w), "query_records", stream="messages", limit=25)
        assert max(sizes(page)) <= 100_000
        entries = page.structured["content_ladder"]["records"]
        windows = {one["record_id"]: one["field_windows"][0] for one in entries}
        assert set(windows) == {"long0", "long1"}
        for window in windows.values():
            assert (window["field_path"], window["size_chars"]) == ("body", 1_000_000)
            read = await w.call(mail(w), window["read"]["tool"], **window["read"]["args"])
            assert read.structured["window"]["text"].startswith("Wörter über")

    in_two_accounts(work)
