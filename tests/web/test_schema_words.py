"""What a compact schema says of the visible records: spans, the fields of their line, clocks and frequent values."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from headgate.audit.activity import read_event
from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from headgate.model.instants import instant, iso
from headgate.model.record import Coverage, with_coverage
from tests import postgres
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
SINCE = 1_772_323_200_000_000  # 2026-03-01
ENGINES = ("file", *(("database",) if postgres.programs() else ()))
COMPACT = "/v1/schema?view=compact"
FIELDS = ("id", "sender", "subject", "sent_at")


class Described(NamedTuple):
    """A program with mail of two accounts, one of which no grant shows."""

    program: LocalProgram
    seen: str
    hidden: str

    async def put(self, key: str, day: str, sender: str = "ann", *, to: str | None = None) -> None:
        now = iso(self.program.clock.at)
        row = record(key, now, sent_at=f"{day}T12:00:00Z", sender=sender, subject="plan", body="text", size=1)
        await self.program.ingest(to or self.seen, "messages", [row])

    async def granted(self, *fields: str, **more: Any) -> str:
        names = fields or FIELDS
        id_ = f"grt_{'_'.join(names)}{'_'.join(more)}"
        where = (ConnectionId(self.seen),)
        return await self.program.grant(
            grant(stream_grant("messages", *names, connections=where, **more), id_=id_)
        )

    async def row(self, token: str, path: str = COMPACT) -> dict[str, Any]:
        (connector,) = (await self.program.get(path, token)).body["connectors"]
        (row,) = connector["streams"]
        return row

    async def text(self, token: str, tool: str = "schema", **arguments: Any) -> str:
        params = {"name": tool, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        answer = await self.program.ask("POST", "/mcp", token, body=body, headers=headers)
        return answer.body["result"]["content"][0]["text"]

    async def logged(self) -> Any:
        await self.program.services.pump.flush()
        (newest,) = await self.program.services.ledger.newest(None, 1)
        return read_event(newest)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=ENGINES)
async def described(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Described]:
    place = tmp_path_factory.mktemp("described")
    flags = (
        {} if request.param == "file" else {"store_url": postgres.database_url(), "store_home": str(place)}
    )
    async with local_program(place, **flags) as program:
        await program.declare("mail", declaration())
        made = Described(program, await program.connect("mail"), await program.connect("mail"))
        for key, day, sender in (
            ("m1", "2026-01-05", "old"),
            ("m2", "2026-03-05", "ann"),
            ("m3", "2026-04-09", "ann"),
            ("m4", "2026-03-20", "bob"),
        ):
            await made.put(key, day, sender)
        await made.put("x1", "2020-01-01", "secret", to=made.hidden)
        yield made


async def test_the_span_is_that_of_the_visible_records(described: Described):
    whole = await described.granted()
    assert (await described.row(whole))["span"] == ["2026-01-05", "2026-04-09"]
    part = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    assert (await described.row(part))["span"] == ["2026-03-05", "2026-04-09"]
    chosen = await described.granted(*FIELDS, resources=frozenset({"m2", "m4"}))
    assert (await described.row(chosen))["span"] == ["2026-03-05", "2026-03-20"]
    timeless = await described.granted("id", "subject")
    row = await described.row(timeless)
    assert "span" not in row
    assert "times" not in row
    assert row["line"] == {"title": "subject"}


async def test_the_span_follows_what_is_stored_and_what_is_deleted(described: Described):
    token = await described.granted()
    await described.row(token)
    await described.put("m5", "2026-05-01")
    assert (await described.row(token))["span"] == ["2026-01-05", "2026-05-01"]
    await described.program.ingest(
        described.seen, "messages", [{"key": ["m1"], "op": "delete"}, {"key": ["m5"], "op": "delete"}]
    )
    assert (await described.row(token))["span"] == ["2026-03-05", "2026-04-09"]


async def test_frequent_values_are_those_of_visible_records_and_logged(described: Described):
    token = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    row = await described.row(token, f"{COMPACT}&stream=messages")
    assert row["values"] == {"sender": ["ann", "bob"]}
    (part,) = (await described.logged()).parts
    assert (part.connection_id, part.stream, set(part.fields)) == (
        described.seen,
        "messages",
        {"sent_at", "sender"},
    )
    text = await described.text(token, stream="messages")
    assert 'values=sender:["ann","bob"]' in text
    assert "span=2026-03-05..2026-04-09 time=sent_at title=subject who=sender" in text
    for number in range(6):
        await described.put(f"v{number}", "2026-03-06", f"sender {number}")
    row = await described.row(token, f"{COMPACT}&stream=messages")
    assert len(row["values"]["sender"]) == 6
    assert row["values"]["sender"][-1] == "… 3 more"
    for number in range(30):
        await described.put(f"n{number}", "2026-03-06", f"sender {number}")
    assert "values" not in await described.row(token, f"{COMPACT}&stream=messages")


async def test_the_index_shows_no_values_and_logs_the_times_it_spans(described: Described):
    token = await described.granted()
    assert "values" not in await described.row(token)
    (part,) = (await described.logged()).parts
    assert set(part.fields) == {"sent_at"}
    assert 'stream name="messages" connector_key="mail" records=4 span=2026-01-05' in await described.text(
        token
    )


async def test_what_is_stored_where_no_grant_reaches_changes_nothing(described: Described):
    part = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    paths = (COMPACT, f"{COMPACT}&stream=messages")
    before = [(await described.program.get(path, part)).body["connectors"] for path in paths]
    await described.put("x2", "1999-01-01", "secret", to=described.hidden)
    await described.put("x3", "2026-02-01", "secret")
    assert [(await described.program.get(path, part)).body["connectors"] for path in paths] == before


async def test_a_value_that_no_visible_record_has_is_answered_with_the_nearest(described: Described):
    await described.put("x4", "2026-02-01", "anna")
    token = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    for path in ("records?filter[sender]=anne", "aggregate?metric=count&filter[sender]=anne"):
        body = (await described.program.get(f"/v1/streams/messages/{path}", token)).body
        (note,) = body["meta"]["warnings"]
        assert (note["code"], note["param"]) == ("value_unknown", "filter")
        # The sender "anna" wrote before the time of the grant.
        assert note["message"] == 'No record has that sender. Near: "ann".'
        assert {"sender"} in [set(part.fields) for part in (await described.logged()).parts]
    arguments = {"stream": "messages", "filter": {"sender": "anne"}}
    assert 'Near: \\"ann\\"' in await described.text(token, "query_records", **arguments)
    for path in ("records?filter[sender]=zzzz", "records?filter[sender]=ann&filter[subject]=none"):
        body = (await described.program.get(f"/v1/streams/messages/{path}", token)).body
        assert (body["data"], body["meta"]["warnings"]) == ([], [])


async def noted(described: Described, start: str, end: str, began_at: int) -> None:
    """Note a complete import, as a source does at its end."""
    store = described.program.services.store
    stored = await store.state(ConnectionId(described.seen))
    state = {} if stored is None else json.loads(stored)
    coverage = Coverage(instant(start), instant(end), began_at, began_at + 1)
    changed = with_coverage(state, coverage, "messages")
    await store.put_state(ConnectionId(described.seen), json.dumps(changed).encode())


async def test_coverage_is_clipped_to_the_grant_and_an_empty_answer_and_a_count_say_it(described: Described):
    await noted(described, "2019-03-01", "2026-11-16", 0)
    whole = await described.granted()
    covered = {"start": "2019-03-01", "end": "2026-11-16", "complete_at": "1970-01-01"}
    assert (await described.row(whole))["coverage"] == covered
    part = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    clipped = covered | {"start": "2026-03-01"}
    assert (await described.row(part))["coverage"] == clipped
    assert "complete=2026-03-01..2026-11-16" in await described.text(part)
    messages = "/v1/streams/messages"
    empty = (await described.program.get(f"{messages}/records?filter[subject]=none", part)).body
    (note,) = empty["meta"]["warnings"]
    assert note["message"] == "messages is complete from 2026-03-01 to 2026-11-16."
    count = (await described.program.get(f"{messages}/aggregate?metric=count", part)).body
    assert (count["value"], count["coverage"]) == (3, clipped)
    arguments = {"stream": "messages", "metric": "count"}
    assert "complete=2026-03-01..2026-11-16" in await described.text(part, "aggregate", **arguments)


async def test_a_search_without_hits_says_what_is_covered_and_what_its_filter_lets_through(
    described: Described,
):
    await noted(described, "2019-03-01", "2026-11-16", 0)
    token = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))
    covered = "messages is complete from 2026-03-01 to 2026-11-16."

    async def notes(query: str) -> list[str]:
        body = (await described.program.get(f"/v1/search?{query}", token)).body
        return [note["message"] for note in body["meta"]["warnings"]]

    assert await notes("q=zeppelin") == [covered]
    assert await notes("q=zeppelin&limit=0") == [covered]
    assert await notes("q=plan") == []
    assert await notes("q=plan&limit=0") == []
    nothing = "No record of messages passes the filter, whatever its words."
    may = "streams=messages&filter[sent_at][gte]=2026-05-01&filter[sent_at][lt]=2026-06-01"
    assert await notes(f"q=plan&{may}") == [nothing, covered]
    # Those that are there do not hold the word.
    assert await notes("q=zeppelin&streams=messages&filter[sent_at][gte]=2026-03-01") == [covered]
    text = await described.text(token, "search", query="zeppelin")
    assert f'warning=period_covered "{covered}"' in text
    assert "times:" not in text
    named = await notes("q=plan&streams=messages&filter[sender]=anna")
    assert named == ['No record has that sender. Near: "ann".', covered]
    assert [set(part.fields) for part in (await described.logged()).parts] == [{"sender"}]


async def test_a_search_without_hits_says_nothing_of_what_is_hidden(described: Described):
    token = await described.granted(*FIELDS, time=TimeConstraint(FieldName("sent_at"), SINCE))

    async def asked() -> list[Any]:
        answers = [
            (await described.program.get(f"/v1/search?{query}", token)).body
            for query in ("q=zeppelin", "q=zeppelin&streams=messages&filter[sender]=old", "q=plan&limit=0")
        ]
        return [answer | {"links": None} for answer in answers]

    before = await asked()
    for n in range(20):
        await described.put(f"h{n}", "2026-04-01", "zeppelin", to=described.hidden)
        await described.put(f"o{n}", "2026-01-01", "old", to=described.seen)
    assert await asked() == before


@pytest.mark.parametrize("is_part", [True, False])
async def test_an_import_that_brought_nothing_visible_does_not_move_the_coverage(
    described: Described,
    is_part: bool,  # noqa: FBT001 - a case
):
    clock = described.program.clock
    more = {"time": TimeConstraint(FieldName("sent_at"), SINCE)} if is_part else {}
    token = await described.granted(*FIELDS, **more)
    await noted(described, "2019-03-01", "2026-11-16", 0)
    before = await described.row(token)
    assert before["coverage"]["end"] == "2026-11-16"
    clock.at += 3_600_000_000
    began_at = clock.at
    hidden = {
        "sent_at": "2026-02-01T00:00:00Z",
        "subject": "plan",
        "sender": "old",
        "body": "text",
        "size": 1,
    }
    if is_part:
        await described.program.ingest(described.seen, "messages", [record("x5", iso(clock.at), **hidden)])
    else:
        changed = {**hidden, "sent_at": "2026-01-05T12:00:00Z", "size": 99}
        await described.program.ingest(described.seen, "messages", [record("m1", iso(clock.at), **changed)])
    await noted(described, "2019-03-01", "2026-11-17", began_at)
    assert await described.row(token) == before
    clock.at += 1_000_000
    await described.put("m9", "2026-04-08")
    assert (await described.row(token))["coverage"]["end"] == "2026-11-17"


@pytest.mark.parametrize(
    "state", [{"coverage": 3}, {"coverage": {"messages": [1, {"complete_at": "x"}]}}, [1]]
)
async def test_a_state_that_is_no_coverage_says_nothing(described: Described, state: Any):
    await described.program.services.store.put_state(ConnectionId(described.seen), json.dumps(state).encode())
    assert "coverage" not in await described.row(await described.granted())
