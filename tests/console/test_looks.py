"""Every page as a person sees it: in light and dark, wide and on a phone, without a serious finding of axe.

``HEADGATE_PICTURES=docs/images`` also writes a picture of each; the clock stands still and the records are the
demonstration's, so that a page which did not change gives the same picture.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright

from headgate.model.ids import ConnectionId
from headgate.sources.demo import fill
from tests.console.browsers import Browser, open_link, signed_in
from tests.console.clients import Client, approve, open_consent, query_of
from tests.console.test_browser import CHROMIUM
from tests.in_process import LocalProgram, local_program
from tests.peers.serving import serving

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]
AXE = Path(__file__).parents[2] / ".cache" / "peers" / "node_modules" / "axe-core" / "axe.min.js"
DAY = 86_400_000_000
SCHEMES = ("light", "dark")
WIDTHS = {1280: 800, 390: 844}
MOST_HEIGHT = 1800
REMOTE = "http://127.0.0.1:9/mcp"


@dataclass(frozen=True)
class Gallery:
    program: LocalProgram
    browser: Browser
    address: str
    page: Page
    connections: dict[str, ConnectionId]

    async def show(self, path: str) -> None:
        answer = await self.page.goto(f"{self.address}{path}")
        assert answer is not None
        assert answer.status in {200, 404}, path


@asynccontextmanager
async def gallery(place: Path) -> AsyncIterator[Gallery]:
    async with (
        local_program(place) as program,
        serving(program.app) as address,
        async_playwright() as playwright,
    ):
        browser = await signed_in(program)
        chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = await chromium.new_context(reduced_motion="reduce")
        page = await context.new_page()
        yield Gallery(program, browser, address, page, await fill(program.services.store))
        await chromium.close()


async def _sign_in(shown: Gallery) -> None:
    cookies = [
        {"name": name, "value": value, "url": shown.address} for name, value in shown.browser.cookies.items()
    ]
    await shown.page.context.add_cookies(cookies)  # type: ignore[arg-type]


@dataclass
class Agent:
    client: Client
    refresh_token: str
    path: str

    async def read(self, times: int) -> None:
        issued = await self.client.refresh(self.refresh_token)
        self.refresh_token = issued.body["refresh_token"]
        for _ in range(times):
            self.client.program.clock.at += 60_000_000
            answer = await self.client.program.get(self.path, issued.body["access_token"])
            assert answer.status == 200, answer.content


async def _agent(shown: Gallery, name: str, connection: str) -> Agent:
    client = Client(shown.program)
    await client.register(client_name=name)
    location = await approve(shown.browser, client, f"{shown.connections[connection]}/messages")
    issued = await client.redeem(query_of(location)["code"])
    return Agent(client, issued.body["refresh_token"], "/v1/streams/messages/records?limit=20")


async def _agents_read(shown: Gallery) -> None:
    first, second = await _agent(shown, "Claude", "Home mail"), await _agent(shown, "Cursor", "Village chat")
    for day in range(24):
        shown.program.clock.at += DAY
        await first.read(day * 7 % 6)
        await second.read(day * 3 % 4)
    await shown.program.services.pump.flush()


async def test_look(tmp_path: Path):
    async with gallery(tmp_path) as shown:
        await _look(shown, "sign-in", "/console/sign-in")
        await _look(shown, "welcome", await open_link(shown.program))
        await shown.browser.post("/console/sign-in", password="six green boats at noon")
        await _sign_in(shown)
        await _look(shown, "home-empty", "/console")
        await _agents_read(shown)
        shown.browser.cookies.clear()
        await shown.browser.post("/console/sign-in", password="six green boats at noon")
        await shown.browser.get("/console/confirm")
        await _sign_in(shown)
        mail = shown.connections["Home mail"]
        pages = {
            "home": "/console",
            "search": "/console/search?q=boat",
            "data": "/console/data",
            "stream": f"/console/data/{mail}/messages",
            "record": f"/console/records/messages/m00091?connection_id={mail}",
            "agents": "/console/agents",
            "activity": "/console/activity",
            "connect": "/console/connect",
            "add": "/console/add",
            "settings": "/console/settings",
            "styles": "/console/styles",
            "confirm": "/console/confirm",
            "device": "/oauth/device",
            "error": "/console/agents/none",
        }
        for name, path in pages.items():
            await _look(shown, name, path)
        client = Client(shown.program)
        await client.register(client_name="Claude")
        path, _ = await open_consent(shown.browser, client)
        await _look(shown, "consent-empty", path)
        await shown.page.check(f'[name="pick/{mail}/messages"]')
        await shown.page.wait_for_selector("caption")
        await _capture(shown, "consent")


async def _look(shown: Gallery, name: str, path: str) -> None:
    await shown.show(path)
    await _capture(shown, name)


async def _capture(shown: Gallery, name: str) -> None:
    page, found = shown.page, []
    place = os.environ.get("HEADGATE_PICTURES")
    for scheme in SCHEMES:
        for width, height in WIDTHS.items():
            await page.emulate_media(color_scheme=scheme)
            await page.set_viewport_size({"width": width, "height": height})
            if (scheme, width) in {("light", 1280), ("dark", 390)}:
                found += await _findings(page, f"{name} {scheme} {width}")
            if place:
                tall: Any = await page.evaluate("document.documentElement.scrollHeight")
                await page.set_viewport_size({"width": width, "height": min(max(tall, height), MOST_HEIGHT)})
                await page.screenshot(
                    path=Path(place) / f"{name}-{width}-{scheme}.png", animations="disabled"
                )
    assert not found, "\n".join(found)


async def _findings(page: Page, where: str) -> list[str]:
    await page.evaluate(AXE.read_text())
    report = await page.evaluate("axe.run({resultTypes: ['violations']})")
    wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [
        f"{where}: {one['impact']} {one['id']}: {node['html'][:200]}"
        for one in report["violations"]
        for node in one["nodes"]
    ] + ([f"{where}: wider than the screen"] if wide else [])
