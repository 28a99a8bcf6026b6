"""Cursors are short, and another process, another machine or the next program on the home reads on from them."""

from __future__ import annotations

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from headgate.auth.keys import CursorFiles
from headgate.errors import StorageFull
from headgate.model.ids import ConnectionId, RecordId, StreamName
from headgate.model.sealed import SHORT
from headgate.store.engines import commands
from headgate.store.engines.postgres import PostgresShelf
from headgate.wiring import place_of
from tests import postgres
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
MOST_CHARS = 40
BOOKMARK_CHARS = 44
ROWS = 12
RECORDS = "/v1/streams/messages/records"
WINDOW = f"{RECORDS}/m00/field-window?field=body&limit_chars=100"
#: A question for each kind of cursor, and where its answer has one.
ASKED = {
    "page": f"{RECORDS}?limit=5",
    "sorted page": f"{RECORDS}?limit=5&order=asc",
    "changes": f"{RECORDS}?changes_since=beginning&limit=5",
    "search": "/v1/search?q=boat&limit=5",
    "window": WINDOW,
}
ENGINES = [
    "file",
    pytest.param("database", marks=pytest.mark.skipif(postgres.programs() is None, reason="no PostgreSQL")),
]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    token: str
    place: Path
    flags: dict[str, str]
    stack: AsyncExitStack

    async def get(self, path: str, token: str | None = None) -> Any:
        return await self.program.get(path, token or self.token)

    async def cursor(self, name: str) -> str:
        answer = await self.get(ASKED[name])
        assert answer.status == 200, answer.content
        body = answer.body["window"] if name == "window" else answer.body
        return body["next_cursor"]

    async def stored(self) -> None:
        """Wait until what was given is where other machines look."""
        shelf = self.program.services._shelf
        if isinstance(shelf, PostgresShelf):
            await shelf.flush()

    async def tool(self, name: str, **arguments: Any) -> Any:
        params = {"name": name, "arguments": arguments}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
        headers = [("accept", "application/json, text/event-stream"), ("content-type", "application/json")]
        answer = await self.program.ask("POST", "/mcp", self.token, body=body, headers=headers)
        return answer.body["result"]

    async def other_program(self, name: str) -> LocalProgram:
        """Another process of this machine, or another machine where the home is in a database."""
        if not self.flags:
            return await self.stack.enter_async_context(local_program(self.place))
        other = self.place / name
        shutil.copytree(self.program.services.home.keys, other / "home" / "keys")
        (other / "home").chmod(0o700)
        return await self.stack.enter_async_context(local_program(other, **self.flags))


@pytest.fixture(params=ENGINES)
async def scene(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Scene]:
    in_database = {"store_url": postgres.database_url(), "store_home": str(tmp_path)}
    flags = in_database if request.param == "database" else {}
    async with AsyncExitStack() as stack:
        program = await stack.enter_async_context(local_program(tmp_path, **flags))
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home")
        lines = [
            # Long keys make long cursors; the short ones do not show it.
            record(
                f"m{n:02}" + "k" * 80 * n,
                sent_at=f"2026-03-{n + 1:02}T00:00:00Z",
                subject=f"boat {n}",
                body="boat " * 200,
            )
            for n in range(ROWS)
        ]
        await program.ingest(connection, "messages", lines)
        token = await program.grant(_granted("grt_a"))
        yield Scene(program, token, tmp_path, flags, stack)


def _granted(name: str) -> Any:
    fields = ("id", "subject", "sent_at", "body")
    return grant(stream_grant("messages", *fields, connections=(ConnectionId("home"),)), id_=name)


def _with(path: str, cursor: str) -> str:
    return f"{path}{'&' if '?' in path else '?'}cursor={quote(cursor, safe='')}"


@pytest.mark.parametrize("name", ASKED)
async def test_a_cursor_has_at_most_40_characters_and_goes_on(scene: Scene, name: str):
    first = await scene.get(ASKED[name])
    cursor = await scene.cursor(name)
    assert len(cursor) <= MOST_CHARS
    assert cursor == await scene.cursor(name)
    second = await scene.get(_with(ASKED[name], cursor))
    assert second.status == 200, second.content
    assert second.content != first.content
    if name != "window":
        keys = [row.get("id") or row["record_key"] for body in (first, second) for row in body.body["data"]]
        assert len(keys) == len({*keys}) == 10


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("query_records", {"stream": "messages", "limit": 5}),
        ("query_records", {"stream": "messages", "limit": 5, "changes_since": "beginning"}),
        ("search", {"q": "boat", "limit": 5}),
    ],
)
async def test_a_tool_gives_the_same_short_cursor_in_both_channels(
    scene: Scene, tool: str, arguments: dict[str, Any]
):
    result = await scene.tool(tool, **arguments)
    cursor = result["structuredContent"]["data"]["next_cursor"]
    assert len(cursor) <= MOST_CHARS
    assert f'next_cursor="{cursor}"' in result["content"][0]["text"]
    following = await scene.tool(tool, **arguments, cursor=cursor)
    assert not following.get("isError"), following
    assert following["structuredContent"]["data"]["data"] != result["structuredContent"]["data"]["data"]


async def test_all_rows_of_a_stream_come_once_whatever_cursors_are_given_meanwhile(scene: Scene):
    path, seen = f"{RECORDS}?limit=1", list[str]()
    while True:
        answer = (await scene.get(path)).body
        seen += [row["id"] for row in answer["data"]]
        if "next_cursor" not in answer:
            break
        assert len(answer["next_cursor"]) <= MOST_CHARS
        await scene.cursor("search")
        path = _with(f"{RECORDS}?limit=1", answer["next_cursor"])
    assert len(seen) == len({*seen}) == ROWS


@pytest.mark.parametrize("name", ASKED)
async def test_another_process_goes_on_where_a_cursor_stands(scene: Scene, name: str):
    cursor = await scene.cursor(name)
    here = await scene.get(_with(ASKED[name], cursor))
    other = await scene.other_program("second")
    there = await other.get(_with(ASKED[name], cursor), scene.token)
    assert (there.status, there.body.get("data")) == (200, here.body.get("data"))


async def test_a_cursor_is_bound_to_the_access_and_the_question(scene: Scene):
    cursor = await scene.cursor("page")
    stranger = await scene.program.grant(_granted("grt_b"))
    for path, token in (
        (ASKED["page"], stranger),
        (ASKED["sorted page"], scene.token),
        (ASKED["search"], scene.token),
        (WINDOW, scene.token),
    ):
        refused = await scene.get(_with(path, cursor), token)
        assert (refused.status, refused.code) == (400, "invalid_cursor")


@pytest.mark.parametrize(
    "name",
    [SHORT, f"{SHORT}x", f"{SHORT}{'A' * 22}", f"{SHORT}{'A' * 21}B", f"{SHORT}{'é' * 22}", f"{SHORT}../../keys/seal.json", f"{SHORT}{'A' * 4000}"],
)  # fmt: skip
async def test_an_unknown_name_is_refused_with_the_call_that_works(scene: Scene, name: str):
    refused = await scene.get(_with(ASKED["page"], name))
    assert (refused.status, refused.code) == (400, "invalid_cursor")
    assert "without a cursor" in refused.body["error"]["hint"]


async def test_a_cursor_ends_after_a_day(scene: Scene):
    cursor = await scene.cursor("page")
    scene.program.clock.at += 24 * 3600 * 1_000_000
    refused = await scene.get(_with(ASKED["page"], cursor))
    assert (refused.status, refused.code) == (410, "cursor_expired")


async def test_long_cursors_of_before_stay_valid(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    for shelf in (CursorFiles, PostgresShelf):
        monkeypatch.setattr(shelf, "put", lambda *_: False)
    long = {name: await scene.cursor(name) for name in ASKED}
    assert all(len(cursor) > MOST_CHARS for cursor in long.values())
    monkeypatch.undo()
    for name, cursor in long.items():
        assert (await scene.get(_with(ASKED[name], cursor))).status == 200


async def test_an_erasure_forgets_every_cursor(scene: Scene):
    cursor = await scene.cursor("page")
    await scene.stored()
    settings, home = scene.program.services.settings, scene.program.services.home
    (connection,) = await scene.program.services.store.connections()
    commands.commands_of(place_of(settings, home)).erase_record(
        connection.id, stream=StreamName("messages"), record_id=RecordId("m00")
    )
    other = await scene.other_program("third")
    refused = await other.get(_with(ASKED["page"], cursor), scene.token)
    assert (refused.status, refused.code) == (400, "invalid_cursor")
    assert len(await scene.cursor("page")) <= MOST_CHARS


@pytest.mark.parametrize("scene", ["file"], indirect=True)
async def test_a_home_without_room_for_cursors_gives_whole_ones(scene: Scene):
    directory = scene.program.services.home.cursors
    directory.write_bytes(b"")
    cursor = await scene.cursor("page")
    assert len(cursor) > MOST_CHARS
    assert (await scene.get(_with(ASKED["page"], cursor))).status == 200


@pytest.mark.parametrize("scene", ENGINES[1:], indirect=True)
async def test_a_database_that_keeps_no_cursor_still_answers(scene: Scene, monkeypatch: pytest.MonkeyPatch):
    async def full(*_: object) -> None:
        raise StorageFull

    monkeypatch.setattr(PostgresShelf, "_store", full)
    # This process remembers what it could not store.
    cursor = await scene.cursor("page")
    await scene.stored()
    assert (await scene.get(_with(ASKED["page"], cursor))).status == 200
    for name in ("page", "search"):
        cursor = await scene.cursor(name)
        assert len(cursor) > MOST_CHARS
        assert (await scene.get(_with(ASKED[name], cursor))).status == 200
    monkeypatch.undo()
    scene.program.clock.at += 61_000_000
    assert len(await scene.cursor("page")) <= MOST_CHARS


async def test_a_bookmark_is_short_and_outlives_everything_that_is_kept(scene: Scene):
    whole = f"{RECORDS}?changes_since=beginning&limit=100"
    mark = (await scene.get(whole)).body["next_changes_since"]
    assert len(mark) <= BOOKMARK_CHARS
    asked = {"stream": "messages", "changes_since": "beginning"}
    page = (await scene.tool("query_records", **asked))["structuredContent"]["data"]
    while "next_cursor" in page:
        answer = await scene.tool("query_records", **asked, cursor=page["next_cursor"])
        page = answer["structuredContent"]["data"]
    assert len(page["next_changes_since"]) <= BOOKMARK_CHARS
    other = await scene.other_program("elsewhere")
    shutil.rmtree(other.services.home.cursors, ignore_errors=True)
    after = await other.get(f"{RECORDS}?changes_since={quote(mark)}", scene.token)
    assert (after.status, after.body["data"]) == (200, [])
    lost = await scene.get(f"{RECORDS}?changes_since={quote(mark[:-2])}")
    assert (lost.status, lost.code) == (400, "invalid_cursor")
    assert "changes_since 'beginning'" in lost.body["error"]["hint"]
