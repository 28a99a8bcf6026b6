"""How a person comes to a page: by the server's address, and by one of the console that was mistyped."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.console.browsers import Browser, signed_in
from tests.in_process import local_program

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def owner(tmp_path: Path) -> AsyncIterator[Browser]:
    async with local_program(tmp_path) as program:
        yield await signed_in(program)


@pytest.mark.parametrize(
    "path", ["nothere", "data/x/y/z", "agents/x/y/z/q", "%2e%2e%2fv1", "activity/verify/"]
)
async def test_a_mistyped_address_of_the_console_is_a_page_of_it(owner: Browser, path: str):
    shown = await owner.get(f"/console/{path}")
    assert (shown.status, shown.header("content-type")) == (404, "text/html; charset=utf-8")
    assert "There is no such page." in shown.words
    assert "Activity Rules" in shown.words, "the menu is there"
    assert "token" not in shown.words
    stranger = await Browser(owner.program).get(f"/console/{path}")
    assert (stranger.location or "").startswith("/console/sign-in?next=")


async def test_the_address_of_the_server_leads_a_person_to_the_console_and_says_to_programs_what_runs(
    owner: Browser,
):
    opened = await Browser(owner.program).get("/", ("accept", "text/html,application/xhtml+xml"))
    assert (opened.status, opened.location) == (303, "/console")
    program = await Browser(owner.program).get("/")
    assert (program.status, "Open the console" in program.text) == (200, True)
