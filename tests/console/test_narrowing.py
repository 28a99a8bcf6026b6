"""The owner narrows a grant: its token goes on working, with less."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from headgate.auth.narrowing import narrow
from headgate.errors import InvalidRequest
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.instants import DAY_US
from headgate.model.ledger import IssuedGrant
from headgate.policy.resolve import StreamRequest
from tests.console.browsers import Browser, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import catalog, grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
FIELDS = ("id", "subject", "sender", "sent_at")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    browser: Browser
    token: str
    path: str

    async def seen(self) -> list[dict[str, Any]]:
        answer = await self.program.get("/v1/streams/messages/records?order=asc", self.token)
        assert answer.status == 200, answer.content
        return [one["data"] for one in answer.body["data"]]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        rows = [
            record("m1", subject="Old", sender="Ada", sent_at="2026-01-01T00:00:00Z"),
            record("m2", subject="New", sender="Bo", sent_at="2026-03-01T00:00:00Z"),
        ]
        await program.ingest(connection, "messages", rows)
        where = (ConnectionId(connection),)
        made = grant(
            stream_grant("messages", *FIELDS, connections=where),
            stream_grant("attachments", "id", connections=where),
        )
        token = await program.grant(made, daily_records=100)
        path = f"/console/grants/{made.id}/narrow"
        yield Scene(program, await signed_in(program), token, path)


def chosen(**more: Any) -> dict[str, Any]:
    return {"keep": ["messages"], "fields/messages": ["subject"], "since/messages": "2026-02-01", **more}


async def test_a_grant_is_narrowed_after_a_look_at_what_stays(scene: Scene):
    assert [one["sender"] for one in await scene.seen()] == ["Ada", "Bo"]
    shown = await scene.browser.get(scene.path)
    assert "2 records" in shown.words
    tried = await scene.browser.post(scene.path, **chosen(do="preview"))
    assert "1 record, 1 Mar 2026" in tried.words
    assert "<s>Bo</s>" in tried.text
    assert len(await scene.seen()) == 2, "a look changes nothing"
    done = await scene.browser.post(scene.path, **chosen(do="narrow", days="7", daily_records="50"))
    assert done.location == "/console/agents/agent"
    (left,) = await scene.seen()
    assert (left["subject"], "sender" in left) == ("New", False)
    assert (await scene.program.get("/v1/streams/attachments/records", scene.token)).status == 403
    agent = await scene.browser.get("/console/agents/agent")
    assert "of 50;" in agent.words
    assert "from 1 Feb 2026 on" in agent.words
    scene.program.clock.at += 8 * DAY_US
    assert (await scene.program.get("/v1/streams", scene.token)).code == "grant_expired"


@pytest.mark.parametrize(
    "form",
    [
        {"keep": []},
        {"since/messages": "soon"},
        {"days": "0"},
        {"daily_records": "-1"},
        {"daily_records": "101"},
    ],
)
async def test_what_cannot_be_done_is_explained_and_changes_nothing(scene: Scene, form: dict[str, Any]):
    before = await scene.seen()
    done = await scene.browser.post(scene.path, **chosen(do="narrow", **form))
    assert done.status == 400
    assert "note bad" in done.text
    assert await scene.seen() == before


async def test_a_higher_limit_than_the_one_that_holds_is_refused_in_words(scene: Scene):
    done = await scene.browser.post(scene.path, **chosen(do="narrow", daily_records="5000"))
    assert done.status == 400
    assert "The grant has 100 records a day already, and narrowing cannot raise that." in done.words
    assert "of 100;" in (await scene.browser.get("/console/agents/agent")).words


async def test_a_form_cannot_widen_a_grant(scene: Scene):
    wide = {
        "keep": ["messages", "notes"], "fields/messages": [*FIELDS, "body"], "since/messages": "1999-01-01",
        "days": "36500", "daily_records": "100",
    }  # fmt: skip
    assert (await scene.browser.post(scene.path, **wide, do="narrow")).status == 303
    assert set((await scene.seen())[0]) == set(FIELDS)
    assert "of 100;" in (await scene.browser.get("/console/agents/agent")).words


async def test_an_ended_grant_is_not_narrowed(scene: Scene):
    await scene.browser.post("/console/agents/agent/stop")
    assert (await scene.browser.get(scene.path)).status == 404
    assert (await scene.browser.post(scene.path, **chosen(do="narrow"))).status == 404


TIMES = st.none() | st.integers(0, 100)


@given(
    st.frozensets(st.sampled_from((*FIELDS, "body", "nothing"))),
    TIMES, TIMES, TIMES, TIMES, TIMES, st.none() | st.integers(1, 9), st.none() | st.integers(1, 9),
)  # fmt: skip
def test_no_narrowing_ever_widens(
    fields: frozenset[str],
    since: int | None,
    had_since: int | None,
    until: int | None,
    ends: int | None,
    had_end: int | None,
    daily: int | None,
    had_daily: int | None,
):
    time = None
    if had_since is not None or until is not None:
        time = TimeConstraint(FieldName("sent_at"), had_since, until)
    made = replace(grant(stream_grant("messages", *FIELDS, time=time)), expires_at=had_end)
    issued = IssuedGrant(made, daily_records=had_daily)
    request = StreamRequest(made.streams[0].name, fields=tuple(map(FieldName, fields)), since=since)
    try:
        done = narrow(issued, [request], catalog(), expires_at=ends, daily_records=daily)
    except InvalidRequest:
        return
    (stream,) = done.grant.streams
    assert set(stream.fields) <= set(FIELDS)
    assert stream.connection_ids == made.streams[0].connection_ids
    if time is not None:
        assert stream.time is not None
        assert time.since is None or (stream.time.since or 0) >= time.since
        assert stream.time.until == time.until
    assert had_end is None or (done.grant.expires_at is not None and done.grant.expires_at <= had_end)
    assert had_daily is None or (done.daily_records is not None and done.daily_records <= had_daily)
