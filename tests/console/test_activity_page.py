"""Activity: alarms on what is unusual, and the log as a file."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.audit.alarms import find_alarms
from headgate.model.ids import ClientId, ConnectionId
from headgate.model.instants import DAY_US
from tests.console.browsers import Browser, signed_in
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
        "id subject",
    )
    assert len((await browser.get("/console/activity/export?client=agent")).text.splitlines()) == 1
    everything = (await browser.get("/console/activity/export")).text.splitlines()
    assert {json.loads(one)["client_id"] for one in everything} == {"agent", None}
    assert (
        "/console/activity/export?format=csv&amp;client=agent"
        in (await browser.get("/console/activity?client=agent")).text
    )


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
