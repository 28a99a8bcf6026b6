"""The page of rules: what none of the agents ever sees, counted before and after."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate.model.ids import ConnectionId
from tests.console.browsers import Browser, signed_in
from tests.in_process import LocalProgram, local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
RULES = "/console/rules"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@dataclass
class Scene:
    program: LocalProgram
    browser: Browser
    token: str

    async def seen(self) -> list[str]:
        answer = await self.program.get("/v1/streams/messages/records?order=asc", self.token)
        return [one["id"] for one in answer.body["data"]]


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        connection = await program.connect("mail", "Home mail")
        rows = [
            record("m1", "2026-01-01T00:00:00Z", subject="Roof", sender="Ada <ada@bank.example>"),
            record(
                "m2", "2026-01-02T00:00:00Z", subject="<b>Code</b>", body="Your verification code is 482913"
            ),
            record("m3", "2026-01-03T00:00:00Z", subject="Boat", sender="bo@example.org"),
        ]
        await program.ingest(connection, "messages", rows)
        made = grant(stream_grant("messages", "id", "subject", connections=(ConnectionId(connection),)))
        yield Scene(program, await signed_in(program), await program.grant(made))


async def test_a_rule_is_counted_added_and_removed(scene: Scene):
    assert "No rule" in (await scene.browser.get(RULES)).words
    rule = {"kind": "value", "text": "*@bank.example", "field": "sender"}
    for more in ((), (("hx-request", "true"),)):
        counted = await scene.browser.post(RULES, *more, **rule, do="count")
        assert "It finds 1 record: 1 of messages." in counted.words
    assert await scene.seen() == ["m1", "m2", "m3"], "counting hides nothing"
    done = await scene.browser.post(RULES, **rule, do="add")
    assert done.location == f"{RULES}?hidden=1"
    assert await scene.seen() == ["m2", "m3"]
    shown = await scene.browser.get(RULES)
    assert "sender is “*@bank.example” 1 Remove" in shown.words
    assert (
        "Other rules hide 1 of these already." in (await scene.browser.post(RULES, **rule, do="count")).words
    )
    (path,) = re.findall(r'action="(/console/rules/[^"]+/remove)"', shown.text)
    assert (await scene.browser.post(path)).location == f"{RULES}?shown=1"
    assert await scene.seen() == ["m1", "m2", "m3"]
    assert (await scene.browser.post(path)).status == 404


async def test_a_ready_set_is_one_button_and_the_owner_still_finds_what_it_hides(scene: Scene):
    await scene.browser.post(RULES, kind="set", text="one-time-codes", do="add")
    assert await scene.seen() == ["m1", "m3"]
    shown = await scene.browser.get(RULES)
    assert "One-time codes in any text 1 Remove" in shown.words
    assert "in use" in shown.words
    assert "m2" in (await scene.browser.get("/console/search?q=verification")).text
    answer = await scene.program.get("/v1/search?q=code", scene.token)
    assert answer.body["data"] == []


@pytest.mark.parametrize(
    ("rule", "reported"),
    [
        ({"kind": "pattern", "text": "("}, "This is not a regular expression"),
        ({"kind": "value", "text": "x", "field": "sendr"}, "No stream has a field 'sendr'."),
        ({"kind": "value", "text": "x"}, "A rule by value needs a field"),
        ({"kind": "words", "text": "x", "stream": "<b>"}, "There is no stream '<b>'."),
        ({"kind": "x", "text": "x"}, "Choose what the rule looks at."),
    ],
)
async def test_a_rule_that_cannot_work_is_explained_and_not_added(
    scene: Scene, rule: dict[str, str], reported: str
):
    whole = await scene.browser.post(RULES, **rule, do="add")
    part = await scene.browser.post(RULES, ("hx-request", "true"), **rule)
    assert whole.status == 400
    assert reported in whole.words or reported in whole.text.replace("&#39;", "'").replace(
        "&lt;", "<"
    ).replace("&gt;", ">")
    assert "<b>" not in whole.text
    assert "note bad" in part.text
    assert "No rule" in (await scene.browser.get(RULES)).words
