"""See as an agent sees: exactly its answer, logged as the owner's look, and not spent from its budget."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import pytest

from headgate.model.ids import ConnectionId
from tests.console.browsers import Browser, Shown, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
LOOK = "/console/agents/agent/look"
BLOCK = re.compile(r'<pre class="card answer" id="(text|structure)"[^>]*>(.*?)</pre>', re.DOTALL)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    browser: Browser
    token: str


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        rows = [
            record("m1", subject="The <b>roof</b> leaks", sender="Ada", body="hidden roof words"),
            record("m2", subject="Boat", sender="Bo", body="roof"),
        ]
        await program.ingest(connection, "messages", rows)
        made = grant(stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),)))
        yield Scene(program, await signed_in(program), await program.grant(made, daily_records=2))


def blocks(shown: Shown) -> dict[str, str]:
    return {name: unescape(text) for name, text in BLOCK.findall(shown.text)}


async def agent_answer(scene: Scene, tool: str, arguments: dict[str, object]) -> dict[str, object]:
    """What the agent itself is answered over MCP."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("mcp-protocol-version", "2025-11-25"),
    ]
    answer = await scene.program.ask(
        "POST", "/mcp", scene.token, body=json.dumps(message).encode(), headers=headers
    )
    assert answer.status == 200, answer.content
    return answer.body["result"]


def without_ids(text: str) -> str:
    return re.sub(r'req_\w+|https?://[^\s"]+|"request_id": *"[^"]*"', "", text)


@pytest.mark.parametrize(
    ("tool", "typed", "arguments"),
    [
        ("search", "roof", {"q": "roof"}),
        ("schema", "", {}),
        (
            "query_records",
            '{"stream": "messages", "fields": ["subject"]}',
            {"stream": "messages", "fields": ["subject"]},
        ),
        ("aggregate", "messages\nmetric=count", {"stream": "messages", "metric": "count"}),
    ],
)
async def test_a_look_shows_what_the_agent_is_answered(
    scene: Scene, tool: str, typed: str, arguments: dict[str, object]
):
    shown = await scene.browser.post(LOOK, tool=tool, arguments=typed)
    assert shown.status == 200, shown.words
    found = blocks(shown)
    theirs = await agent_answer(scene, tool, arguments)
    (content, *_) = theirs["content"]  # type: ignore[misc]
    assert without_ids(found["text"]) == without_ids(content["text"])
    assert without_ids(json.dumps(json.loads(found["structure"]))) == without_ids(
        json.dumps(theirs["structuredContent"])
    )
    assert "hidden roof words" not in shown.text
    assert "<b>roof" not in shown.text


async def test_looks_are_the_owners_in_the_log_and_cost_the_agent_nothing(scene: Scene):
    for _ in range(3):
        await scene.browser.post(LOOK, tool="search", arguments="roof")
    agents = await scene.browser.get("/console/activity")
    assert "No agent has read anything yet" in agents.words
    mine = await scene.browser.get("/console/activity?only=all")
    assert "searched as agent" in mine.words
    answer = await scene.program.get("/v1/streams/messages/records?limit=1", scene.token)
    assert answer.status == 200, "both records of the day are left"
    assert "1 of 2; 1 left" in (await scene.browser.get("/console/agents/agent")).words


async def test_a_refusal_is_shown_as_the_agent_sees_it(scene: Scene):
    shown = await scene.browser.post(LOOK, tool="aggregate", arguments="messages\nmetric=sum\nfield=size")
    assert "an error" in shown.words
    assert "error" in json.loads(blocks(shown)["structure"])


@pytest.mark.parametrize(
    ("tool", "typed", "status"), [("drop", "", 400), ("search", "{", 400), ("search", "roof\nboat", 400)]
)
async def test_arguments_that_cannot_be_read_are_explained(scene: Scene, tool: str, typed: str, status: int):
    shown = await scene.browser.post(LOOK, tool=tool, arguments=typed)
    assert shown.status == status
    assert "note bad" in shown.text


async def test_an_agent_that_was_stopped_sees_nothing(scene: Scene):
    await scene.browser.post("/console/agents/agent/stop")
    assert "can read nothing now" in (await scene.browser.get(LOOK)).words
    assert (await scene.browser.post(LOOK, tool="schema")).status == 404
    assert (await scene.browser.get("/console/agents/stranger/look")).status == 404
