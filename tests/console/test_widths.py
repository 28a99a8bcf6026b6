"""Every page with long names and texts from right to left: never wider than its screen, and without a finding of axe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from headgate.model.ids import ClientId, ConnectionId
from tests.console.test_browser import CHROMIUM
from tests.console.test_looks import AXE, Gallery, findings, gallery
from tests.in_process import LocalProgram, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    pytest.mark.skipif(not AXE.exists(), reason="needs the Node peers"),
]
WIDTHS = (390, 640, 1280)
#: A name without a place to break, and one from right to left.
LONG = "Letters" * 17 + "!"
RIGHT_TO_LEFT = "رسائل البيت والعائلة، " * 5
AGENT = "a-very-talkative-agent-" * 5


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _filled(program: LocalProgram) -> list[str]:
    """Fill a home with names that are hard on a layout, and return the addresses of its pages."""
    await program.declare("mail", declaration())
    sources = [await program.connect("mail", name) for name in (LONG, RIGHT_TO_LEFT)]
    for where in sources:
        rows = [record(f"{'k' * 90}{n}", subject=f"{name} roof {n}", sender=name, body=LONG * 40)
                for n, name in enumerate((LONG, RIGHT_TO_LEFT))]  # fmt: skip
        await program.ingest(where, "messages", rows)
    every = stream_grant("messages", "id", "subject", "body", connections=tuple(map(ConnectionId, sources)))
    token = await program.grant(replace(grant(every), client_id=ClientId(AGENT)))
    assert (await program.get("/v1/streams/messages/records", token)).status == 200
    assert (await program.get("/v1/streams/none/records", token)).status == 403
    await program.services.pump.flush()
    where, key = quote(sources[0]), f"{'k' * 90}0"
    return [
        *(
            "",
            "/data",
            "/agents",
            "/activity",
            "/rules",
            "/connect",
            "/add",
            "/servers",
            "/settings",
            "/nothing",
        ),
        *("/search?q=roof", f"/data/{where}/messages", f"/settings/erase/{where}", f"/agents/{AGENT}"),
        *(f"/data/{where}/messages?column=subject&column=sender", f"/agents/{AGENT}/look"),
        *(
            f"/records/messages/{key}?connection_id={where}",
            f"/records/messages/{key}/erase?connection_id={where}",
        ),
        f"/activity/records?first=1&last=9&client={AGENT}",
        "/grants/grt_1/narrow",
    ]


async def _problems(shown: Gallery, path: str) -> list[str]:
    problems: list[str] = []
    for width in WIDTHS:
        await shown.page.set_viewport_size({"width": width, "height": 800})
        await shown.page.goto(f"{shown.address}/console{path}")
        for folded in await shown.page.locator("details").all():
            await folded.evaluate("one => { one.open = true }")
        is_judged = width != WIDTHS[1]
        wide = await shown.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        problems += [f"{path} at {width}: {wide} too wide"] if wide > 0 else []
        problems += [
            f"{path} at {width}: {found}" for found in (await findings(shown.page) if is_judged else [])
        ]
    return problems


async def test_no_page_is_wider_than_its_screen_whatever_the_names(tmp_path: Path):
    async with gallery(tmp_path) as shown:
        paths = await _filled(shown.program)
        await shown.sign_in()
        problems = [problem for path in paths for problem in await _problems(shown, path)]
    assert problems == []


async def test_the_first_tab_skips_the_menu_and_a_slash_leads_to_the_search(tmp_path: Path):
    async with gallery(tmp_path) as shown:
        await shown.sign_in()
        page = shown.page
        await page.set_viewport_size({"width": 390, "height": 800})
        for path in ("", "/settings"):
            await page.goto(f"{shown.address}/console{path}")
            await page.keyboard.press("Tab")
            assert await page.evaluate("document.activeElement.className") == "skip"
        scrolled = await page.evaluate("document.querySelector('.side nav').scrollLeft")
        assert scrolled > 0, "the current entry of the menu is in sight"
        await page.keyboard.press("/")
        await page.wait_for_url("**/console/search")
        assert await page.evaluate("document.activeElement.id") == "q"
        await page.keyboard.type("a/b")
        assert await page.input_value("#q") == "a/b"
        await page.goto(f"{shown.address}/console")
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.id") == "q"
