"""What a client may try against its grant, one row of the list of hostile cases each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest

from headgate.model.grant import TimeConstraint
from headgate.model.ids import ConnectionId, FieldName
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
SINCE = 1_772_323_200_000_000  # 2026-03-01
YEAR = 365 * 24 * 3600 * 1_000_000
RECORDS = "/v1/streams/messages/records"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class Scene:
    def __init__(self, program: LocalProgram, seen: str, hidden: str, token: str) -> None:
        self.program, self.seen, self.hidden, self.token = program, seen, hidden, token

    async def get(self, path: str, token: str | None = None):
        return await self.program.get(path, token or self.token)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        seen, hidden = await program.connect("mail"), await program.connect("mail")
        for connection in (seen, hidden):
            await program.ingest(
                connection,
                "messages",
                [
                    record("old", sent_at="2026-02-28T23:59:59.999999Z", subject="old"),
                    record("edge", sent_at="2026-03-01T00:00:00Z", subject="edge"),
                    record("new", sent_at="2026-03-05T00:00:00Z", subject="new"),
                    record("also", sent_at="2026-03-06T00:00:00Z", subject="also"),
                ],
            )
        await program.ingest(hidden, "messages", [record("only", sent_at="2026-03-07T00:00:00Z")])
        yield Scene(program, seen, hidden, await program.grant(granted(seen, "grt_a")))


def granted(connection: str, name: str):
    time = TimeConstraint(FieldName("sent_at"), SINCE)
    return grant(
        stream_grant(
            "messages", "id", "subject", "sent_at", connections=(ConnectionId(connection),), time=time
        ),
        id_=name,
    )


@pytest.mark.hostile("46", "62", "T19")
async def test_a_record_of_another_stream_connection_or_time_is_the_same_as_none(scene: Scene):
    missing = await scene.get(f"{RECORDS}/nothing")
    for path in (f"{RECORDS}/only", f"{RECORDS}/old"):
        hidden = await scene.get(path)
        assert (hidden.status, hidden.code) == (404, "not_found")
        assert _without_id(hidden.content) == _without_id(missing.content)
    other, unknown = await scene.get("/v1/streams/attachments"), await scene.get("/v1/streams/attachmentz")
    assert _without_id(other.content).replace(b"attachments", b"X") == _without_id(unknown.content).replace(
        b"attachmentz", b"X"
    )
    hidden = await scene.get(f"{RECORDS}?connection_id={scene.hidden}")
    unknown = await scene.get(f"{RECORDS}?connection_id=cin_none")
    assert _without_id(hidden.content) == _without_id(unknown.content)


async def test_a_grant_of_a_removed_connection_does_not_open_the_next_one_of_its_name(scene: Scene):
    program = scene.program
    assert scene.seen == "mail"
    removed = await program.ask("DELETE", f"/v1/connections/{scene.seen}", program.owner)
    assert removed.status == 204
    document = b'{"connector_key":"mail","display_name":"Mail"}'
    made = (await program.ask("POST", "/v1/connections", program.owner, body=document)).body["connection_id"]
    assert made == "mail-3"
    await program.ingest(made, "messages", [record("later", sent_at="2026-03-09T00:00:00Z")])
    for path in (RECORDS, f"{RECORDS}?connection_id={made}", f"{RECORDS}/later", "/v1/schema"):
        assert b"later" not in (await scene.get(path)).content.replace(path.encode(), b"")


async def test_a_name_that_is_like_the_id_made_of_it_is_shown(scene: Scene):
    made = await scene.program.connect("mail", "bank")
    await scene.program.ingest(made, "messages", [record("a", sent_at="2026-03-09T00:00:00Z")])
    token = await scene.program.grant(granted(made, "grt_bank"))
    (row,) = (await scene.get(RECORDS, token)).body["data"]
    assert (row["connection_id"], row["display_name"]) == ("bank", "bank")


def _without_id(content: bytes) -> bytes:
    head, _, rest = content.partition(b'"request_id":"')
    return head + rest.partition(b'"')[2]


@pytest.mark.hostile("T9")
async def test_the_time_of_a_grant_begins_exactly_where_it_begins(scene: Scene):
    rows = (await scene.get(RECORDS)).body["data"]
    assert [row["id"] for row in rows] == ["also", "new", "edge"]


@pytest.mark.hostile("54")
async def test_a_range_that_reaches_outside_the_grant_is_refused(scene: Scene):
    wide = await scene.get(f"{RECORDS}?filter[sent_at][gte]=2026-01-01T00:00:00Z")
    assert (wide.status, wide.code) == (403, "grant_time_range_exceeded")
    inside = await scene.get(f"{RECORDS}?filter[sent_at][gte]=2026-03-05T00:00:00Z")
    assert [row["id"] for row in inside.body["data"]] == ["also", "new"]


@pytest.mark.hostile("52", "53", "T2")
async def test_a_cursor_of_another_grant_query_kind_or_year_does_not_open(scene: Scene):
    other = await scene.program.grant(granted(scene.hidden, "grt_b"))
    cursor = (await scene.get(f"{RECORDS}?limit=1")).body["next_cursor"]
    assert (await scene.get(f"{RECORDS}?limit=2&cursor={cursor}")).status == 200
    for path, token in (
        (f"{RECORDS}?limit=1&cursor={cursor}", other),
        (f"{RECORDS}?limit=1&order=asc&cursor={cursor}", None),
        (f"{RECORDS}?limit=1&fields=id&cursor={cursor}", None),
        (f"{RECORDS}?limit=1&connection_id={scene.seen}&cursor={cursor}", None),
        (f"/v1/search?q=new&cursor={cursor}", None),
        (f"{RECORDS}?changes_since={cursor}", None),
        (f"{RECORDS}?cursor={cursor[:-1]}", None),
    ):
        refused = await scene.get(path, token)
        assert (refused.status, refused.code) == (400, "invalid_cursor"), path
    scene.program.clock.at += YEAR
    assert (await scene.get(f"{RECORDS}?limit=1&cursor={cursor}")).status == 410


@pytest.mark.hostile("57", "T12")
async def test_a_record_that_leaves_the_window_is_reported_once(scene: Scene):
    first = (await scene.get(f"{RECORDS}?changes_since=beginning")).body
    assert {row["id"] for row in first["data"]} == {"edge", "new", "also"}
    await scene.program.ingest(
        scene.seen, "messages", [record("new", sent_at="2026-01-01T00:00:00Z", subject="hidden now")]
    )
    second = (await scene.get(f"{RECORDS}?changes_since={quote(first['next_changes_since'])}")).body
    assert [(row["id"], row["deleted"], "data" in row) for row in second["data"]] == [("new", True, False)]
    third = (await scene.get(f"{RECORDS}?changes_since={quote(second['next_changes_since'])}")).body
    assert third["data"] == []
    assert third["next_changes_since"] != second["next_changes_since"]


@pytest.mark.hostile("T12")
async def test_a_hidden_change_leaves_no_trace_in_bookmarks(scene: Scene):
    first = (await scene.get(f"{RECORDS}?changes_since=beginning")).body["next_changes_since"]
    await scene.program.ingest(scene.hidden, "messages", [record("only", sent_at="2026-03-08T00:00:00Z")])
    second = (await scene.get(f"{RECORDS}?changes_since={quote(first)}")).body
    assert second["data"] == []
    assert len(second["next_changes_since"]) == len(first)


@pytest.mark.hostile("60")
async def test_an_etag_of_somebody_else_changes_nothing(scene: Scene):
    answer = await scene.program.ask("GET", RECORDS, scene.token, headers=[("if-none-match", '"x"')])
    assert answer.status == 200
    assert "etag" not in answer.headers


@pytest.mark.parametrize(
    "word",
    ["title:x", '"unbalanced AND (', "a OR b", "NEAR(a b)", "^x", "x\0y", "-new", "new*", "{sent_at}: x"],
)
@pytest.mark.hostile("50", "T8")
async def test_words_that_look_like_a_language_are_words(scene: Scene, word: str):
    assert (await scene.get(f"/v1/search?q={quote(word)}")).status in {200, 400}


@pytest.mark.hostile("T1", "T2")
async def test_forged_handles_get_one_kind_of_answer(scene: Scene):
    cursor = (await scene.get(f"{RECORDS}?limit=1")).body["next_cursor"]
    answers = set()
    for at in range(4, len(cursor)):
        forged = cursor[:at] + ("A" if cursor[at] != "A" else "B") + cursor[at + 1 :]
        refused = await scene.get(f"{RECORDS}?limit=1&cursor={forged}")
        answers.add((refused.status, _without_id(refused.content)))
    assert len(answers) == 1
