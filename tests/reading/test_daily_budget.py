"""No answer shows more records than the grant may still show that day; one that is cut says so, and can be continued."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from headgate.model.instants import DAY_US, iso
from tests import postgres
from tests.audit.test_budget import over_mcp
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
RECORDS = "/v1/streams/messages/records"
ENGINES = ["sqlite", *(["postgres"] if postgres.programs() else [])]


class World:
    def __init__(self, program: LocalProgram, mail: str) -> None:
        self.program, self.mail, self.count = program, mail, 0

    @property
    def next_day(self) -> int:
        return (self.program.clock.at // DAY_US + 1) * DAY_US

    async def token(self, daily_records: int) -> str:
        self.count += 1
        streams = [
            stream_grant(name, *fields, connections=(self.mail,))
            for name, fields in (
                ("messages", ("id", "subject", "sent_at")),
                ("attachments", ("id", "message_id")),
            )
        ]
        return await self.program.grant(grant(*streams, id_=f"grt_{self.count}"), daily_records=daily_records)

    async def read(self, path: str, token: str) -> dict[str, Any]:
        answer = await self.program.get(path, token)
        assert answer.status == 200, answer.content
        return answer.body

    async def go_on_the_next_day(self) -> None:
        # What is not in the log yet counts for the day that begins.
        await self.program.services.pump.flush()
        self.program.clock.at = self.next_day

    async def is_used_up(self, token: str) -> bool:
        return (await self.program.get(f"{RECORDS}?limit=1", token)).status == 429


@pytest.fixture(params=ENGINES)
async def world(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    flags = (
        {}
        if request.param == "sqlite"
        else {"store_url": postgres.database_url(), "store_home": str(tmp_path)}
    )
    async with local_program(tmp_path, **flags) as program:
        await program.declare("mail", declaration())
        mail = await program.connect("mail")
        lines = [
            record(f"m{n:02}", subject="roof", sent_at=f"2026-03-{n:02}T00:00:00Z") for n in range(1, 21)
        ]
        await program.ingest(mail, "messages", lines)
        files = [
            {
                "key": ["m20", f"a{n}"],
                "data": {"id": f"a{n}", "message_id": "m20"},
                "emitted_at": "2026-03-01T00:00:00Z",
            }
            for n in range(1, 6)
        ]
        await program.ingest(mail, "attachments", files)
        yield World(program, mail)


def warning_of(body: dict[str, Any]) -> dict[str, Any]:
    (found,) = body["meta"]["warnings"]
    return found


@pytest.mark.parametrize("path", [f"{RECORDS}?limit=20", "/v1/search?q=roof&limit=20"])
async def test_a_page_is_cut_to_what_is_left_and_its_cursor_goes_on_the_next_day(world: World, path: str):
    token = await world.token(5)
    cut = await world.read(path, token)
    assert len(cut["data"]) == 5
    assert cut["has_more"]
    assert warning_of(cut)["code"] == "budget_reached"
    assert warning_of(cut)["detail"] == {"returned": 5, "next_day_at": iso(world.next_day)}
    assert await world.is_used_up(token)
    await world.go_on_the_next_day()
    whole = await world.read(path, await world.token(100))
    on = await world.read(f"{path}&cursor={cut['next_cursor']}", token)
    assert whole["meta"]["warnings"] == []
    assert [*cut["data"], *on["data"]] == whole["data"][:10]


async def test_what_fits_exactly_is_not_called_cut(world: World):
    token = await world.token(20)
    assert (await world.read(f"{RECORDS}?limit=20", token))["meta"]["warnings"] == []
    assert await world.is_used_up(token)


async def test_related_records_count_and_are_cut_too(world: World):
    token = await world.token(4)
    page = await world.read(f"{RECORDS}?limit=3&expand=attachments&expand_limit[attachments]=5", token)
    (row,) = page["data"]
    children = row["expanded"]["attachments"]
    assert (len(children["data"]), children["has_more"]) == (3, True)
    assert warning_of(page)["code"] == "budget_reached"
    assert await world.is_used_up(token)
    later = await world.token(8)
    page = await world.read(f"{RECORDS}?limit=5&expand=attachments&expand_limit[attachments]=5", later)
    assert [len(row["expanded"]["attachments"]["data"]) for row in page["data"]] == [5, 0, 0]
    assert page["has_more"]


async def test_the_related_records_of_one_record_are_cut(world: World):
    token = await world.token(3)
    path = f"{RECORDS}/m20?expand=attachments&expand_limit[attachments]=5"
    row = await world.read(path, token)
    assert len(row["expanded"]["attachments"]["data"]) == 2
    assert warning_of(row)["code"] == "budget_reached"
    assert await world.is_used_up(token)


async def test_changes_are_cut_and_go_on_the_next_day(world: World):
    token = await world.token(15)
    cut = await world.read(f"{RECORDS}?changes_since=beginning&limit=100", token)
    assert (len(cut["data"]), warning_of(cut)["code"]) == (15, "budget_reached")
    assert "next_changes_since" not in cut
    await world.go_on_the_next_day()
    rest = await world.read(f"{RECORDS}?changes_since=beginning&limit=100&cursor={cut['next_cursor']}", token)
    assert len({row["id"] for row in (*cut["data"], *rest["data"])}) == 20
    assert "next_changes_since" in rest


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query_records", {"stream": "messages", "limit": 20}),
        ("search", {"query": "roof", "limit": 20, "collapse": False}),
    ],
)
async def test_an_agent_reads_that_the_answer_was_cut_in_text_and_structure(
    world: World, tool: str, arguments: dict[str, Any]
):
    token = await world.token(5)
    asked = {"name": tool, "arguments": arguments}
    shown = await over_mcp(world.program, token, "tools/call", asked)
    assert len(shown["structuredContent"]["data"]["data"]) == 5
    assert "budget_reached" in json.dumps(shown["structuredContent"])
    text = shown["content"][0]["text"]
    assert "warning=budget_reached" in text
    assert "Cut to the 5 records left" in text
    assert "used up" in (await over_mcp(world.program, token, "tools/call", asked))["content"][0]["text"]


async def test_a_day_ends_before_hits_that_are_alike_exceed_it(world: World):
    asked = {"name": "search", "arguments": {"query": "roof", "limit": 2}}
    shown = await over_mcp(world.program, await world.token(5), "tools/call", asked)
    hits = shown["structuredContent"]["data"]["data"]
    assert len(hits) + sum(hit.get("alike", {}).get("count", 0) for hit in hits) == 5


async def test_records_that_other_requests_took_meanwhile_are_not_shown(
    world: World, monkeypatch: pytest.MonkeyPatch
):
    token = await world.token(10)
    budgets = world.program.services.reads.budgets
    taken, take = [4], type(budgets).take

    async def late(self: Any, access: Any, records: int) -> int:
        if taken:
            await take(self, access, taken.pop())
        return await take(self, access, records)

    monkeypatch.setattr(type(budgets), "take", late)
    cut = await world.read(f"{RECORDS}?limit=8", token)
    assert len(cut["data"]) == 6
    assert warning_of(cut)["code"] == "budget_reached"
    await world.go_on_the_next_day()
    on = await world.read(f"{RECORDS}?limit=1&cursor={cut['next_cursor']}", token)
    assert on["data"][0]["id"] == "m14"
