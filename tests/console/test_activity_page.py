"""Activity: alarms on what is unusual, and the log as a file."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest

from headgate.audit.activity import find_alarms
from headgate.model.ids import ClientId, ConnectionId, GrantId
from headgate.model.instants import DAY_US, iso
from tests.console.browsers import Browser, Shown, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.on_socket import headgate
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
ANN = ClientId("ann")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    ("before", "today", "is_alarm"),
    [
        ([5, 5, 5], 51, True),
        ([5, 5, 5], 50, False),
        ([1, 1, 1], 49, False),
        ([5, 5], 5000, False),
        ([5, 0, 5, 0, 5], 51, True),
        ([5, 5, 5, 1000], 90, True),
        ([], 5000, False),
    ],
)
def test_more_than_ten_times_the_usual_is_an_alarm(before: list[int], today: int, *, is_alarm: bool):
    reads = {100 - place: {ANN: count} for place, count in enumerate(reversed(before), 1)}
    found = [one for one in find_alarms({**reads, 100: {ANN: today}}, 10) if one.day == 100]
    assert bool(found) is is_alarm
    assert find_alarms({**reads, 100: {ANN: today}}, 0) == ()


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        await made.declare("mail", declaration())
        yield made


async def _reading_agent(program: LocalProgram) -> str:
    connection = await program.connect("mail", "Home mail")
    await program.ingest(connection, "messages", [record(f"m{n}", subject="x") for n in range(60)])
    made = grant(stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),)))
    return await program.grant(made)


async def _read(program: LocalProgram, token: str, limit: int) -> None:
    answer = await program.get(f"/v1/streams/messages/records?limit={limit}", token)
    assert answer.status == 200


async def test_an_unusual_day_is_an_alarm_on_the_pages_and_on_the_terminal(
    program: LocalProgram, tmp_path: Path
):
    token = await _reading_agent(program)
    for _ in range(3):
        await _read(program, token, 5)
        program.clock.at += DAY_US
    browser = await signed_in(program)
    assert "on a usual day" not in (await browser.get("/console/activity")).words
    await _read(program, token, 60)
    shown = await browser.get("/console/activity")
    assert "agent read 60 records on" in shown.words
    assert "on a usual day it reads 5." in shown.words
    assert "more than 10 times its usual" in shown.words
    assert "on a usual day it reads 5." in (await browser.get("/console")).words
    home = str(program.services.home.path)
    done = await asyncio.to_thread(headgate, tmp_path, "--home", home, "audit", "list", "--alarms", "--json")
    (alarm,) = json.loads(done.out)
    assert (alarm["client_id"], alarm["records"], alarm["usual"]) == ("agent", 60, 5)


async def test_the_log_is_exported_as_a_table_and_filtered(program: LocalProgram):
    token = await _reading_agent(program)
    await _read(program, token, 2)
    browser: Browser = await signed_in(program)
    await browser.get("/console/search?q=x")
    shown = await browser.get("/console/activity/export?format=csv&client=agent")
    assert shown.header("content-type") == "text/csv; charset=utf-8"
    (row,) = csv.DictReader(io.StringIO(shown.text))
    assert (row["client"], row["records"], row["streams"], row["fields"]) == (
        "agent",
        "2",
        "messages",
        "subject id",
    )
    assert len((await browser.get("/console/activity/export?client=agent")).text.splitlines()) == 1
    whole = await browser.get("/console/activity/export")
    # It is sent while it is read: how long it becomes is not known before.
    assert [one.header("content-length") for one in (whole, shown)] == [None, None]
    everything = whole.text.splitlines()
    assert {json.loads(one)["client_id"] for one in everything} == {"agent", None}
    assert (
        "/console/activity/export?format=csv&amp;client=agent"
        in (await browser.get("/console/activity?client=agent")).text
    )


@asynccontextmanager
async def _searched(place: Path, **settings: str) -> AsyncIterator[tuple[LocalProgram, Browser]]:
    """Serve a program in which an agent has searched, by MCP and by REST, also with a request that was refused."""
    async with local_program(place, **settings) as program:
        await program.declare("mail", declaration())
        token = await _reading_agent(program)
        call = {"name": "search", "arguments": {"q": "=roof <b> of Ann"}}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
        headers = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]
        assert (await program.ask("POST", "/mcp", token, body=body, headers=headers)).status == 200
        assert (await program.get("/v1/search?q=gutter&streams[]=none", token)).status == 403
        assert (await program.get("/v1/streams", token)).status == 200
        yield program, await signed_in(program)


async def test_the_words_of_searches_are_not_logged_until_the_owner_has_them_logged(tmp_path: Path):
    async with _searched(tmp_path) as (program, browser):
        for path in ("/console/activity", "/console/activity/export", "/console/activity/export?format=csv"):
            assert "of Ann" not in (await browser.get(path)).text
        files = [path for path in program.services.home.path.rglob("*") if path.is_file()]
        assert not [path for path in files if b"of Ann" in path.read_bytes()]
        settings = (await browser.get("/console/settings")).words
        assert "words are not logged" in settings
        assert "HEADGATE_LOG_QUERIES=true" in settings


async def test_with_log_queries_the_words_of_agents_are_on_the_page_in_the_list_and_in_exports(
    tmp_path: Path,
):
    async with _searched(tmp_path, log_queries="true") as (program, browser):
        await browser.get("/console/search?q=mine-alone")
        shown = await browser.get("/console/activity?only=all")
        assert "“=roof <b> of Ann”" in shown.words
        assert "“gutter”" in shown.words
        assert "<b>" not in shown.text
        assert "mine-alone" not in shown.text
        assert "words are logged" in (await browser.get("/console/settings")).words
        lines = (await browser.get("/console/activity/export")).text.splitlines()
        words = [json.loads(one).get("words") for one in lines]
        assert [one for one in words if one] == ["=roof <b> of Ann", "gutter"]
        table = await browser.get("/console/activity/export?format=csv&client=agent")
        rows = csv.DictReader(io.StringIO(table.text))
        assert [row["words"] for row in rows if row["words"]] == ["'=roof <b> of Ann", "gutter"]
        home = str(program.services.home.path)
        listed = await asyncio.to_thread(headgate, tmp_path, "--home", home, "audit", "list")
        assert '"gutter"' in listed.out
        assert (await asyncio.to_thread(headgate, tmp_path, "--home", home, "audit", "verify")).code == 0


async def _read_twice_more(program: LocalProgram, token: str) -> str:
    """Read the newest record by its id, and return its page."""
    answer = await program.get("/v1/streams/messages/records?limit=1", program.owner)
    (found,) = answer.body["data"]
    for _ in range(2):
        assert (await program.get(f"/v1/streams/messages/records/{found['id']}", token)).status == 200
    return f"/console/records/messages/{found['id']}?connection_id={found['connection_id']}"


async def test_a_name_that_looks_like_a_formula_is_no_formula_in_the_table(program: LocalProgram):
    connection = await program.connect("mail", "Home mail")
    plain = grant(stream_grant("messages", "id", connections=(ConnectionId(connection),)))
    made = replace(plain, client_id=ClientId("=HYPERLINK(1)"))
    await program.get("/v1/streams", await program.grant(made))
    shown = await (await signed_in(program)).get("/console/activity/export?format=csv")
    assert "'=HYPERLINK(1)" in [row["client"] for row in csv.DictReader(io.StringIO(shown.text))]


def test_alarms_are_listed_on_the_terminal(tmp_path: Path):
    done = headgate(tmp_path, "--home", "home", "audit", "list", "--alarms", "--json")
    assert json.loads(done.out) == []
    plain = headgate(tmp_path, "--home", "home", "audit", "list", "--alarms")
    assert "No client read more than 10 times its usual." in plain.err


async def _agent_of_two_sources(program: LocalProgram) -> tuple[str, str, str]:
    """Give an agent subjects of one source and everything of another, and return its token and the sources."""
    home, work = await program.connect("mail", "Home mail"), await program.connect("mail", "Bank")
    await program.ingest(home, "messages", [record(f"m{n}", subject=f"<b>Roof</b> {n}") for n in range(3)])
    await program.ingest(work, "messages", [record("p1", subject="Gutter paid", sender="Ada")])
    token = await program.grant(
        grant(stream_grant("messages", "id", "subject", connections=(ConnectionId(home),))),
        replace(
            grant(stream_grant("messages", "id", "subject", "sender", connections=(ConnectionId(work),))),
            id=GrantId("grt_2"),
        ),
    )
    return token, home, work


async def _shown(browser: Browser, page: Shown, words: str) -> Shown:
    """Follow the link of a number of records on the page Activity."""
    link = re.search(rf'href="([^"]+)">{words}</a>', page.text)
    assert link, page.words
    return await browser.get(unescape(link[1]))


async def test_a_number_of_records_opens_the_line_of_each_with_its_link_and_what_was_shown(
    program: LocalProgram,
):
    token, home, work = await _agent_of_two_sources(program)
    for where, limit in ((home, 2), (home, 3), (work, 3)):
        path = f"/v1/streams/messages/records?limit={limit}&connection_id={where}"
        assert (await program.get(path, token)).status == 200
    browser = await signed_in(program)
    page = await browser.get("/console/activity")
    assert "agent read 4 records : 3 messages of Home mail, 1 message of Bank." in page.words
    opened = await _shown(browser, page, "4 records")
    # Each once, however often it was read.
    assert opened.text.count('class="title"') == 4
    for key, where in (("m0", home), ("m1", home), ("m2", home), ("p1", work)):
        assert f'href="/console/records/messages/{key}?connection_id={where}"' in opened.text
    assert "<b>Roof" not in opened.text
    assert "Home mail messages Shown of each: subject, id" in opened.words
    assert "Bank messages Shown of each: sender, subject, id" in opened.words
    # A single entry opens its own records alone.
    assert (await _shown(browser, page, "2")).text.count('class="title"') == 2
    mine = await browser.get("/console/activity?only=all")
    assert "You read 4 records" in mine.words


async def test_records_behind_an_entry_that_were_erased_are_named_as_gone(program: LocalProgram):
    token, home, work = await _agent_of_two_sources(program)
    for where in (home, work):
        answer = await program.get(f"/v1/streams/messages/records?connection_id={where}", token)
        assert answer.status == 200
    assert (
        await program.ask("DELETE", f"/v1/streams/messages/records/m1?connection_id={home}", program.owner)
    ).status < 300
    await program.services.store.delete_connection(ConnectionId(work))
    browser = await signed_in(program)
    page = await browser.get("/console/activity")
    assert "1 message of an erased source" in page.words
    opened = await _shown(browser, page, "4 records")
    assert opened.text.count('class="title"') == 2
    assert "1 record of these is no longer here: m1" in opened.words
    assert "An erased source" in opened.words
    assert (await browser.get("/console/activity/records?first=1&last=99999999999&client=none")).status == 200


async def test_a_refusal_says_in_words_what_was_asked_for_and_the_log_has_no_words_of_the_caller(
    program: LocalProgram,
):
    token, home, _ = await _agent_of_two_sources(program)
    asks = (
        f"messages/records?fields=body&connection_id={home}",
        f"messages/records?filter[body]=secret-text&connection_id={home}",
        "secret-name/records",
    )
    for path in asks:
        assert (await program.get(f"/v1/streams/{path}", token)).status in {400, 403}
    browser = await signed_in(program)
    page = (await browser.get("/console/activity?only=refused")).words
    assert "asked 3 times and was refused" in page
    assert page.count("it may not read that field It asked for body of messages of Home mail.") == 2
    assert "it may not read that " in page
    exported = (await browser.get("/console/activity/export")).text
    assert "secret" not in exported + page
    assert "grant_stream" not in page
    assert {"fields": ["body"], "streams": ["messages"], "connection_id": home} in [
        json.loads(line).get("asked") for line in exported.splitlines()
    ]


async def test_the_log_is_narrowed_to_days_however_long_it_is(program: LocalProgram):
    token = await _reading_agent(program)
    days: list[str] = []
    for _ in range(6):
        days.append(iso(program.clock.at)[:10])
        for _ in range(7):
            await _read(program, token, 3)
        await program.services.pump.flush()
        program.clock.at += DAY_US
    browser = await signed_in(program)
    page = (await browser.get(f"/console/activity?since={days[1]}&until={days[2]}")).text
    assert page.count("3 records</a>") == 2
    assert "listed records 7 times" in page
    assert (await browser.get(f"/console/activity?until={days[0]}")).text.count("3 records</a>") == 1
    assert (await browser.get(f"/console/activity?since={days[5]}")).text.count("3 records</a>") == 1
    assert (
        "Nothing in the log is like that" in (await browser.get("/console/activity?until=2001-01-01")).words
    )
    assert (await browser.get("/console/activity?since=never&until=%00")).text.count("3 records</a>") == 6
    lines = (await browser.get(f"/console/activity/export?since={days[1]}&until={days[2]}")).text.splitlines()
    assert len(lines) == 14
