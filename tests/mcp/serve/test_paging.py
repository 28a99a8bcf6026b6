"""Paging with nothing but the text: every record is seen exactly once, whatever the keys, scripts and limits are."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings, strategies as st

from headgate.text.writing import size
from tests.mcp.serve.prepared import names_the_key
from tests.mcp.serve.test_bytes import in_two_accounts, message
from tests.mcp.serve.test_world import mail
from tests.mcp.serve.world import World, world
from tests.stitched import StitchedAccount

WORDS = {"latin": "bridge plank ", "cjk": "bridge 世界は広い橋 ", "hidden": "bridge \u202e\u200b "}
LEFT = re.compile(r"(\d+) more of this page are not printed.*?repeat the call (.*?) and with limit=(\d+)")


def ids_in(tool: str, text: str) -> list[str]:
    """Read the ids as a client does that has only the text."""
    if tool == "query_records":
        return re.findall(r"^\d+\. .* \| id=(.*)$", text, re.MULTILINE)
    return re.findall(r"^   id=(.*)$", text, re.MULTILINE)


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
        # Each is printed once: it stands in as many lines as there are ids that it is a part of.
        lines = answer.text.splitlines()
        assert all(_holding(one, lines) == _holding(one, ids) for one in ids if len(one) > 40)
        left = LEFT.search(answer.text)
        # A page of hits is what is printed.
        assert tool != "search" or not left
        rows = len(answer.structured["data"]["data"])
        assert len(ids) + (int(left[1]) if left else 0) == rows
        # A cursor holds the key of the last row: of a long one it takes space that other rows would have had.
        if len(going_on(answer.text) or "") < 600:
            assert len(ids) >= min(rows, 25)
        if left:
            assert left[2] == ("with the same cursor" if cursor else "without cursor")
            assert int(left[3]) < limit
            limit = int(left[3])
            continue
        seen += ids
        going = going_on(answer.text)
        if going is None:
            return seen
        cursor = {"cursor": going}


def _holding(part: str, texts: list[str]) -> int:
    return sum(part in text for text in texts)


def going_on(text: str) -> str | None:
    found = re.search(r'next_cursor="([^"]+)"', text)
    return None if found is None else found[1]


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
            for tool, arguments in (
                ("query_records", {"stream": "messages"}),
                ("search", {"q": "bridge", "collapse": False}),
            ):
                seen = await walked(w, tool, limit, **arguments)
                assert len(seen) == len(set(seen)) == 120

    in_two_accounts(work)


LETTERS = {"latin": "abc/_ ", "cjk": "世界橋の", "arabic": "جسر ", "emoji": "🌉👩‍👩‍👧", "mixed": "a世ج🌉\n"}


SCRIPTS = st.sampled_from(sorted(LETTERS)).flatmap(
    lambda script: st.text(st.sampled_from(LETTERS[script]), min_size=1, max_size=6)
)
STEMS = st.lists(st.tuples(SCRIPTS, st.sampled_from([1, 30, 160, 201, 1_018])), min_size=1, max_size=6)


def keys_of(stems: list[tuple[str, int]], count: int) -> list[str]:
    """Make different keys of the lengths that the stems have."""
    chosen = [(*stems[n % len(stems)], f"{n:03}") for n in range(count)]
    return [(mark + letters * length)[:length].strip() + mark for letters, length, mark in chosen]


@settings(
    deadline=None,
    max_examples=12,
    suppress_health_check=list(HealthCheck),
    # Making an example smaller would take minutes.
    phases=(Phase.explicit, Phase.generate),
)
@given(STEMS, st.integers(1, 60), st.sampled_from(sorted(WORDS)), st.integers(1, 100), st.integers(1, 100))
@example([("世", 1_018)], 30, "cjk", 25, 100)
@example([("k", 1_018)], 60, "latin", 100, 25)
@example([("k", 1), ("k", 160)], 60, "latin", 60, 40)
# One key is the beginning of another: 0030 and 003003.
@example([("a", 1), *[("k", 30)] * 2, (" ", 160), *[("k", 30)] * 2], 38, "cjk", 27, 43)
def test_paging_shows_every_id_exactly_once_for_all_keys_scripts_and_limits(
    stems: list[tuple[str, int]], count: int, script: str, first: int, second: int
):
    keys = keys_of(stems, count)

    async def work(w: World) -> None:
        words = WORDS[script]
        await w.add("Home mail", "messages", *(message(key, words * 30, subject=words) for key in keys))
        for tool, arguments in (
            ("query_records", {"stream": "messages"}),
            ("search", {"q": "bridge", "collapse": False}),
        ):
            for limit in (first, second):
                seen = await walked(w, tool, limit, **arguments)
                assert len(seen) == len(set(seen)) == len(keys)
            opened = [w.handles.read_id(one) for one in seen]
            assert {key for key in keys for one in opened if names_the_key(one, key)} == set(keys)

    in_two_accounts(work)


def test_the_source_of_a_record_is_printed_where_a_page_has_several():
    async def go() -> None:
        async with world(
            (StitchedAccount("mail", "Home mail", 0), StitchedAccount("mail", "Work mail", 0))
        ) as w:
            await w.add("Home mail", "messages", message("m1", "short"))
            one = await w.call(mail(w), "query_records", stream="messages")
            assert '\nall: source="Home mail"\n' in one.text
            await w.add("Work mail", "messages", message("m2", "short"))
            two = await w.call(mail(w), "query_records", stream="messages")
            assert set(re.findall(r'("[^"]+") \| id=', two.text)) == {'"Home mail"', '"Work mail"'}

    asyncio.run(go())
