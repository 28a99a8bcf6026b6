"""Paging with nothing but the text: every record is seen exactly once, whatever the keys, scripts and limits are."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from headgate.mcp.serve.handles import KnownRecords
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.reference import RecordRef
from headgate.sources.demo import DemoAccount
from headgate.text.budget import size
from tests.mcp.serve.test_bytes import in_two_accounts, message
from tests.mcp.serve.test_world import mail
from tests.mcp.serve.world import World, world

WORDS = {"latin": "bridge plank ", "cjk": "bridge 世界は広い橋 ", "hidden": "bridge \u202e\u200b "}
LEFT = re.compile(r"(\d+) more of this page are not printed.*?repeat the call (.*?) and with limit=(\d+)")


def ids_in(tool: str, text: str) -> list[str]:
    """Read the ids as a client does that has only the text."""
    if tool == "query_records":
        return re.findall(r"^record\[\d+\] .* id=(.*)$", text, re.MULTILINE)
    first = re.findall(r"^first_fetch_id=(.*)$", text, re.MULTILINE)
    return [*first, *re.findall(r"^\d+\. .* id=(.*)$", text, re.MULTILINE)]


async def walked(w: World, tool: str, limit: int, **arguments: Any) -> list[str]:
    """Follow what the text says until there is no more, and give the ids of the pages that were whole."""
    access, seen, cursor = mail(w), list[str](), dict[str, str]()
    while True:
        answer = await w.call(access, tool, limit=limit, **arguments, **cursor)
        if answer.is_error:
            smaller = int(re.search(r"such as limit=(\d+)", answer.text)[1])
            assert 0 < smaller < limit
            limit = smaller
            continue
        assert size(answer.text) <= 8_000
        ids = ids_in(tool, answer.text)
        left = LEFT.search(answer.text)
        rows = len(answer.structured["data"]["data"])
        assert len(ids) + (int(left[1]) if left else 0) == rows
        assert len(ids) >= min(rows, 25)
        if left:
            assert left[2] == ("with the same cursor" if cursor else "without cursor")
            assert int(left[3]) < limit
            limit = int(left[3])
            continue
        seen += ids
        going = re.search(r'next_cursor="([^"]+)"', answer.text)
        if going is None:
            return seen
        cursor = {"cursor": going[1]}


@pytest.mark.parametrize("script", WORDS)
@pytest.mark.parametrize("key_chars", [3, 150, 300, 1_000])
def test_paging_by_the_text_shows_every_id_exactly_once(script: str, key_chars: int):
    async def work(w: World) -> None:
        words = WORDS[script]
        for account in ("Home mail", "Work mail"):
            rows = [
                message(f"{n:03}" + "k" * (key_chars - 3), words * 40, subject=words * 8) for n in range(60)
            ]
            await w.add(account, "messages", *rows)
        for limit in (1, 7, 25, 60) if key_chars == 3 else (25, 60):
            for tool, arguments in (("query_records", {"stream": "messages"}), ("search", {"q": "bridge"})):
                seen = await walked(w, tool, limit, **arguments)
                assert len(seen) == len(set(seen)) == 120

    in_two_accounts(work)


def test_a_key_of_a_thousand_characters_is_printed_as_a_short_handle_that_opens_it():
    async def work(w: World) -> None:
        key = "k" * 1_000
        await w.add("Home mail", "messages", message(key, "The bridge is long. " * 300))
        for tool, arguments in (("query_records", {"stream": "messages"}), ("search", {"q": "bridge"})):
            (printed,) = ids_in(tool, (await w.call(mail(w), tool, **arguments)).text)
            assert printed.startswith("pdpp://record/")
            assert len(printed) <= 100
            opened = await w.call(mail(w), "fetch", id=printed)
            assert (opened.structured["id"], opened.structured["metadata"]["record_id"]) == (printed, key)
            read = await w.call(mail(w), "read_record_field", id=printed, field_path="body")
            assert read.structured["record"]["record_id"] == key
        access = mail(w)
        w.handles = type(w.handles)(w.read_services.sealer)
        gone = await w.call(access, "fetch", id=printed)
        assert gone.structured["error"]["code"] == "invalid_result_id"
        assert "repeat the search or the query" in gone.text

    in_two_accounts(work)


def test_only_the_records_that_were_printed_last_are_remembered():
    known = KnownRecords(limit=2)
    refs = [RecordRef(ConnectionId("c"), StreamName("s"), RecordId(str(n))) for n in range(3)]
    digests = [known.add(ref) for ref in refs]
    assert [known.find(digest) for digest in digests] == [None, *refs[1:]]


def test_the_source_of_a_record_is_printed_where_a_page_has_several():
    async def go() -> None:
        async with world((DemoAccount("mail", "Home mail", 0), DemoAccount("mail", "Work mail", 0))) as w:
            await w.add("Home mail", "messages", message("m1", "short"))
            one = await w.call(mail(w), "query_records", stream="messages")
            assert "source=" not in one.text
            await w.add("Work mail", "messages", message("m2", "short"))
            two = await w.call(mail(w), "query_records", stream="messages")
            assert set(re.findall(r'source=("[^"]+")', two.text)) == {'"Home mail"', '"Work mail"'}

    asyncio.run(go())
