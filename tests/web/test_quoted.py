"""Quoted text and threads: what a record repeats of another neither doubles hits nor counts, by REST, by MCP, in both stores."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

from headgate.model.grant import Grant, StreamGrant, TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.sources import declaring
from headgate.sources.mail.source import MAIL_STREAMS
from tests import postgres
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant

pytestmark = pytest.mark.anyio
_COUNTER = itertools.count()
ENGINES = ("file", *(("database",) if postgres.programs() else ()))
FIELDS = ("id", "thread_id", "subject", "from", "sent_at", "size", "folder", "body", "quoted")
DOCUMENT = declaring.declaration("mail", "Mail", MAIL_STREAMS)
LANTERN = "> The lantern by the gate is broken."
#: Key, subject, body, quoted text.
GARDEN = (
    *((f"own{n}", f"Garden {n}", f"The lantern of row {n} by the gate.", None) for n in range(7)),
    *((f"both{n}", f"Garden answer {n}", f"A new lantern {n}, gate too.", LANTERN) for n in range(3)),
    *((f"quoting{n}", f"Re: Garden {n}", f"Yes, on day {n}.", f"{LANTERN} {n}") for n in range(6)),
    # They look the same, and only the quoted text holds the word.
    *((f"twin{n}", "Re: Reminder", "Done.", LANTERN) for n in range(4)),
    # One word in its own text, the other one quoted.
    ("split", "Re: The fence", "The gate is painted.", "> And the lantern?"),
    ("part0", "The fence", "Only the gate.", None),
    ("part1", "Re: The fence again", "Thanks.", "> Only the gate."),
    ("cjk", "庭", "了解です。", "> 東京の灯籠が壊れた。"),
    ("named", "Re: The ladder", "Ask me tomorrow.", "> The ladder is too long."),
    ("odd", "Odd", None, ""),
)
OWN = {f"own{n}" for n in range(7)} | {f"both{n}" for n in range(3)}
QUOTING = {f"quoting{n}" for n in range(6)} | {f"twin{n}" for n in range(4)}


class Mailbox(NamedTuple):
    """A program with mail, and tokens that show more or less of it."""

    program: LocalProgram
    token: str
    home: str
    work: str

    async def granted(self, *streams: StreamGrant) -> str:
        return await self.program.grant(mail_grant(*streams))

    async def rest(self, path: str = "/v1/search", token: str | None = None, **params: Any) -> dict[str, Any]:
        written = {
            name: ",".join(value) if isinstance(value, list) else str(value) for name, value in params.items()
        }
        answer = await self.program.get(f"{path}?{urlencode(written)}", token or self.token)
        assert answer.status == 200, answer.content
        return answer.body

    async def tool(self, name: str, token: str | None = None, **arguments: Any) -> tuple[dict[str, Any], str]:
        params = {"name": name, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        answer = await self.program.ask("POST", "/mcp", token or self.token, body=body, headers=headers)
        result = answer.body["result"]
        assert not result.get("isError"), result
        return result["structuredContent"], result["content"][0]["text"]


def mail_grant(*streams: StreamGrant) -> Grant:
    version = DOCUMENT["declaration_version"]
    one = grant(*streams, id_=f"grt_{next(_COUNTER)}")
    return replace(one, source_id=DOCUMENT["source"]["id"], declaration_version=version)


def mail(*rows: tuple[str, str, str | None, str | None]) -> list[dict[str, Any]]:
    return [
        record(
            key, thread_id=f"t-{key}", subject=subject, body=body, quoted=quoted, size=10 ** (place % 3), folder="Inbox",
            sent_at=f"2026-03-{place + 1:02}T08:00:00Z", **{"from": "Ann <ann@example.org>"},
        )
        for place, (key, subject, body, quoted) in enumerate(rows)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=ENGINES)
async def box(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Mailbox]:
    place = tmp_path_factory.mktemp("quoted")
    flags = (
        {} if request.param == "file" else {"store_url": postgres.database_url(), "store_home": str(place)}
    )
    async with local_program(place, **flags) as program:
        await program.declare("mail", DOCUMENT)
        home, work = [await program.connect("mail", name) for name in ("Home", "Work")]
        await program.ingest(home, "messages", mail(*GARDEN))
        threads = [record(f"t-{key}", subject=subject) for key, subject, _, _ in GARDEN]
        await program.ingest(home, "threads", threads)
        await program.ingest(work, "threads", [record("t-w", subject="Garden at work")])
        both = (ConnectionId(home), ConnectionId(work))
        whole = mail_grant(
            stream_grant("messages", *FIELDS, connections=both),
            stream_grant("threads", "id", "subject", connections=both),
        )
        yield Mailbox(program, await program.grant(whole), home, work)


def keys(hits: list[dict[str, Any]]) -> list[str]:
    return [hit["record_key"] for hit in hits]


async def test_records_that_hold_the_words_only_in_quoted_text_are_counted_apart(box: Mailbox):
    structured, text = await box.tool("search", query="lantern", limit=25)
    meta = structured["data"]["meta"]
    assert (meta["count"], meta["quoted_count"]) == (21, 11)
    assert "partial_count" not in meta
    assert meta["understood"]["words"] == [{"word": "lantern", "count": 10, "quoted_count": 11}]
    assert "words: lantern 10 +11 quoted; 10 matched all, 11 more only in quoted text" in text
    assert set(keys(structured["data"]["data"])) == OWN
    assert "· in quoted text" not in text
    following, text = await box.tool(
        "search", query="lantern", limit=25, cursor=structured["data"]["next_cursor"]
    )
    shown = following["data"]["data"]
    assert all(hit["quoted"] for hit in shown)
    assert sum(1 + hit.get("alike", {}).get("count", 0) for hit in shown) == 11
    assert text.count("· in quoted text") == len(shown)
    assert not following["data"]["has_more"]


async def test_what_a_record_quotes_does_not_hide_what_it_says_itself(box: Mailbox):
    structured, text = await box.tool("search", query="ladder")
    hits = structured["data"]["data"]
    assert {hit["record_key"] for hit in hits} == {"named"}
    assert all(hit["snippet"] == {"field": "body", "text": "Ask me tomorrow."} for hit in hits)
    assert "too long" not in text


async def test_a_page_with_few_that_hold_the_words_goes_on_with_those_that_quote_them(box: Mailbox):
    first, text = await box.tool("search", query="new OR broken", collapse=False)
    hits = first["data"]["data"]
    assert set(keys(hits[:3])) == {"both0", "both1", "both2"}
    assert ["quoted" in hit for hit in hits] == [False] * 3 + [True] * 2
    assert "3 matched all, 10 more only in quoted text" in text
    assert first["data"]["has_more"]


async def test_a_word_that_stands_only_in_quoted_text_is_not_one_that_no_record_holds(box: Mailbox):
    structured, text = await box.tool("search", query="painted broken nowhere", limit=25)
    assert "words: painted 1, broken 0 +13 quoted, nowhere 0; " in text
    by_key = {hit["record_key"]: hit for hit in structured["data"]["data"]}
    assert by_key["split"]["missing"] == ["broken"]
    assert by_key["quoting1"] | {"missing": ["painted"], "quoted": True} == by_key["quoting1"]


async def test_a_word_that_is_quoted_beside_one_that_is_not_makes_no_match_of_its_own(box: Mailbox):
    body = await box.rest(q="gate lantern", limit=100)
    by_key = {hit["record_key"]: hit for hit in body["data"]}
    assert "quoted" not in by_key["own1"]
    assert "quoted" not in by_key["both1"]
    assert by_key["split"]["quoted"] is True
    assert "match" not in by_key["split"]
    places = [(1 if hit.get("quoted") else 0) if "missing" not in hit else 2 for hit in body["data"]]
    assert places == sorted(places)
    meta = body["meta"]
    assert meta["count"] == len(body["data"])
    assert meta["quoted_count"] == sum(1 for hit in body["data"] if hit.get("quoted"))
    assert meta.get("partial_count", 0) == sum(
        1 for hit in body["data"] if "missing" in hit and not hit.get("quoted")
    )


async def pages(box: Mailbox, q: str, surface: str, **asked: Any) -> list[dict[str, Any]]:
    """Follow the cursors to the end; returns the body of each page."""
    bodies, cursor = list[dict[str, Any]](), dict[str, str]()
    while True:
        if surface == "rest":
            bodies.append(await box.rest(q=q, **asked, **cursor))
        else:
            structured, text = await box.tool("search", query=q, **asked, **cursor)
            bodies.append(structured["data"])
            ids = re.findall("^   id=", text, re.MULTILINE)
            assert len(ids) == len(structured["results"]) == len(structured["data"]["data"])
        if not bodies[-1]["has_more"]:
            return bodies
        cursor = {"cursor": bodies[-1]["next_cursor"]}


@pytest.mark.parametrize("q", ["lantern", "gate lantern", "lantern fence"])
@pytest.mark.parametrize("collapse", [True, False])
@pytest.mark.parametrize("surface", ["rest", "tool"])
async def test_pages_show_every_match_once_and_those_that_quote_it_last(
    box: Mailbox, q: str, surface: str, *, collapse: bool
):
    for limit in (1, 2, 3, 4, 7, 10, 25, 100):
        folding = collapse if surface == "tool" else str(collapse).lower()
        bodies = await pages(box, q, surface, limit=limit, collapse=folding)
        shown = [hit for body in bodies for hit in body["data"]]
        alike = sum(hit.get("alike", {}).get("count", 0) for hit in shown)
        assert max(Counter(keys(shown)).values()) == 1
        assert len(shown) + alike == bodies[0]["meta"]["count"]
        assert q == "lantern fence" or set(keys(shown)) >= OWN
        assert collapse or not alike
        tiers = [2 if "missing" in hit else int("quoted" in hit) for hit in shown]
        assert tiers == sorted(tiers)


async def test_only_those_are_counted_and_added_up_that_hold_the_words_themselves(box: Mailbox):
    path = "/v1/streams/messages/aggregate"
    for more, count, quoted in (
        ({"q": "lantern"}, 10, 11),
        ({"q": "gate lantern"}, 10, 11),
        ({"q": '"lantern by the gate"'}, 0, 13),
        ({"q": "lantern", "filter[sent_at][lt]": "2026-03-13T00:00:00Z"}, 10, 2),
        ({"q": "lantern -broken"}, 7, 1),
        ({"q": "lantern", "in": "quoted"}, 14, None),
        ({"q": "lantern", "in": "body,quoted"}, 21, None),
        ({"q": "lantern", "in": "body"}, 10, None),
        ({"q": "灯籠"}, 0, 1),
        ({"q": "nowhere"}, 0, 0),
    ):
        body = await box.rest(path, metric="count", **more)
        assert (body["filtered_record_count"], body.get("quoted_count")) == (count, quoted), more
        assert body["value"] == count
    total = await box.rest(path, metric="sum", field="size", q="lantern")
    rows = mail(*GARDEN)
    assert total["value"] == sum(row["data"]["size"] for row in rows if row["key"] in OWN)
    groups = await box.rest(path, metric="count", group_by="folder", q="lantern")
    assert [group["count"] for group in groups["groups"]] == [10]
    assert groups["quoted_count"] == 11


async def test_a_number_over_words_says_how_many_more_quote_them(box: Mailbox):
    structured, text = await box.tool("aggregate", stream="messages", metric="count", q="lantern")
    assert structured["data"]["quoted_count"] == 11
    assert "11 more only in quoted text" in text
    named, text = await box.tool(
        "aggregate", stream="messages", metric="count", q="lantern", **{"in": ["body", "quoted"]}
    )
    assert named["data"]["value"] == 21
    assert "quoted_count" not in text


async def test_what_is_counted_without_hits_is_apart_too(box: Mailbox):
    structured, text = await box.tool("search", query="lantern", limit=0)
    assert (structured["data"]["meta"]["count"], structured["data"]["meta"]["quoted_count"]) == (21, 11)
    assert "10 matched all, 11 more only in quoted text" in text


async def test_values_are_not_read_from_quoted_text_unless_it_is_named(box: Mailbox):
    bills = [
        ("bill", "Bill", "The total is 40.", None),
        ("thanks", "Re: Bill", "Paid.", "> The total is 40."),
    ]
    await box.program.ingest(box.work, "messages", mail(*bills))
    path = "/v1/streams/messages/aggregate"
    extract = {"extract[after]": "the total is", "extract[type]": "number", "connection_id": box.work}
    once = await box.rest(path, metric="sum", **extract)
    assert (once["value"], once["value_count"]) == ("40", 1)
    twice = await box.rest(path, metric="sum", **extract, **{"in": "body,quoted"})
    assert (twice["value"], twice["value_count"]) == ("80", 2)


async def test_text_that_is_named_or_all_there_is_counts_like_any_other(box: Mailbox):
    body = await box.rest(q="lantern", limit=100, **{"in": "quoted"})
    assert body["meta"]["count"] == 14
    assert "quoted_count" not in body["meta"]
    assert not any("quoted" in hit for hit in body["data"])
    only = await box.granted(stream_grant("messages", "id", "quoted", connections=(ConnectionId(box.home),)))
    body = await box.rest(q="lantern", limit=100, token=only)
    assert body["meta"]["count"] == 14
    assert "quoted_count" not in body["meta"]


async def test_quoted_text_outside_the_grant_plays_no_part(box: Mailbox):
    plain = [name for name in FIELDS if name != "quoted"]
    token = await box.granted(stream_grant("messages", *plain, connections=(ConnectionId(box.home),)))
    structured, text = await box.tool("search", query="gate lantern", token=token)
    assert "quoted" not in text
    assert "quoted" not in json.dumps(structured)
    # Word for word what a mailbox gives that never had any.
    twin = await box.program.connect("mail", "Home")
    bare = [(key, subject, body, None) for key, subject, body, _ in GARDEN]
    await box.program.ingest(twin, "messages", mail(*bare))
    token_bare = await box.granted(stream_grant("messages", *FIELDS, connections=(ConnectionId(twin),)))
    _, same = await box.tool("search", query="gate lantern", token=token_bare)
    cursor = re.compile(r'next_cursor="[^"]+"')
    assert cursor.sub("", text) == cursor.sub("", same.replace(twin, box.home))


# Threads


async def test_a_thread_is_not_a_hit_beside_its_messages_unless_it_is_asked_for(box: Mailbox):
    body = await box.rest(q="fence", limit=100, connection_id=box.home)
    assert {hit["stream"] for hit in body["data"]} == {"messages"}
    assert body["meta"]["count"] == 3
    named = await box.rest(q="fence", streams="threads", limit=100)
    assert sorted(keys(named["data"])) == ["t-part0", "t-part1", "t-split"]
    both, _ = await box.tool("search", query="fence", streams=["threads", "messages"], limit=100)
    assert both["data"]["meta"]["count"] == 6


@pytest.mark.parametrize(
    "messages",
    [
        {"fields": ("id", "body")},
        {"time": TimeConstraint(FieldName("sent_at"), 0)},
        {"resources": frozenset({"part0"})},
        None,
    ],
    ids=["without its subject", "in a time", "some", "none"],
)
async def test_a_thread_is_found_where_its_messages_are_not_shown_whole(
    box: Mailbox, messages: dict[str, Any] | None
):
    here = (ConnectionId(box.home),)
    streams = [stream_grant("threads", "id", "subject", connections=here)]
    if messages is not None:
        shown = {"fields": FIELDS} | messages
        fields = shown.pop("fields")
        streams.append(stream_grant("messages", *fields, connections=here, **shown))
    body = await box.rest(q="fence", limit=100, token=await box.granted(*streams))
    threads = {hit["record_key"] for hit in body["data"] if hit["stream"] == "threads"}
    assert threads == {"t-part0", "t-part1", "t-split"}


async def test_threads_are_searched_on_connections_without_messages(box: Mailbox):
    both = (ConnectionId(box.home), ConnectionId(box.work))
    token = await box.granted(
        stream_grant("messages", *FIELDS, connections=both[:1]),
        stream_grant("threads", "id", "subject", connections=both),
    )
    body = await box.rest(q="garden", limit=100, token=token)
    assert [key for key in keys(body["data"]) if key.startswith("t-")] == ["t-w"]
    # The grants decide, not what is stored: here the other account's messages are granted, and it has none of these.
    body = await box.rest(q="garden", limit=100)
    assert not [key for key in keys(body["data"]) if key.startswith("t-")]
