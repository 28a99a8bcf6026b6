"""Every page as a person sees it: in light and dark, wide and on a phone, without a finding of axe.

``HEADGATE_PICTURES=docs/images`` also writes a picture of each. The clock stands still, the records are the
demonstration's, and what is random is replaced, so that a page which did not change gives the same picture.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.async_api import Page, async_playwright, expect

from headgate.model.ids import ConnectionId
from tests.console.browsers import PASSWORD, Browser, open_link, signed_in
from tests.console.clients import Client, approve, open_consent, query_of
from tests.console.test_browser import CHROMIUM
from tests.console.test_servers import WEATHER
from tests.hostile.server import FaultyServer, faulty_server, tool
from tests.in_process import NOW, LocalProgram, local_program
from tests.peers.serving import PEERS, serving
from tests.stitched import fill

AXE = PEERS.parent / "axe-core" / "axe.min.js"
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason="needs chromium"),
    pytest.mark.skipif(not AXE.exists(), reason="needs the Node peers"),
]
DAY = 86_400_000_000
WORDS = ("boat", "bridge", "garden", "concert", "recipe")
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = {1280: 800, 390: 844}
MOST_HEIGHT = {1280: 1000, 390: 844}
PICTURES = os.environ.get("HEADGATE_PICTURES")
#: Replaces what differs from run to run, in the texts of a page.
STEADY = r"""
() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    node.data = node.data.replace(/127\.0\.0\.1:\d+/g, "127.0.0.1:8321")
      .replace(/\S+\/home$/, "/home/you/.local/share/headgate")
      .replace(/^[0-9a-f]{12}$/, "3f8a21c09b7d").replace(/hg_\S+/, "hg_shown-once")
      .replace(/cin_[0-9a-f]{24}/g, "cin_4c1be20d9a7f5b3e86d0a217").replace(/se1\.[\w-]+/g, "se1.9zj9-nGHLOkUSidB1QtKKY4G");
  }
}
"""


@dataclass(frozen=True)
class Gallery:
    program: LocalProgram
    browser: Browser
    address: str
    page: Page
    connections: dict[str, ConnectionId]
    remote: FaultyServer

    async def look(self, name: str, path: str) -> None:
        """Open a page, and look at it."""
        answer = await self.page.goto(f"{self.address}{path}")
        assert answer is not None
        assert answer.status == {"error": 404, "link-ended": 410}.get(name, 200), path
        await self.capture(name)

    async def capture(self, name: str) -> None:
        """Look at the page as it is."""
        for scheme in SCHEMES:
            for width, height in WIDTHS.items():
                is_judged = (scheme, width) in {("light", 1280), ("dark", 390)}
                if not is_judged and not PICTURES:
                    continue
                await self.page.emulate_media(color_scheme=scheme)
                await self.page.set_viewport_size({"width": width, "height": height})
                if is_judged:
                    found = await findings(self.page)
                    assert not found, f"{name} {scheme} {width}: " + "\n".join(found)
                if PICTURES:
                    await self._picture(f"{name}-{width}-{scheme}", width, height)

    async def _picture(self, name: str, width: int, height: int) -> None:
        # A part that the page is just asking for again is dimmed.
        await expect(self.page.locator(".htmx-request")).to_have_count(0)
        await self.page.evaluate(STEADY)
        tall: Any = await self.page.evaluate("document.documentElement.scrollHeight")
        await self.page.set_viewport_size(
            {"width": width, "height": min(max(tall, height), MOST_HEIGHT[width])}
        )
        await self.page.screenshot(path=Path(PICTURES or "") / f"{name}.png", animations="disabled")

    async def sign_in(self) -> None:
        """Sign the real browser in with the session of the other one."""
        await self.browser.post("/console/sign-in", password=PASSWORD)
        await self.browser.get("/console/confirm")
        for name, value in self.browser.cookies.items():
            await self.page.context.add_cookies([{"name": name, "value": value, "url": self.address}])


@asynccontextmanager
async def gallery(place: Path) -> AsyncIterator[Gallery]:
    async with faulty_server(tools=[WEATHER, tool("echo")]) as remote:
        servers = place / "servers.json"
        servers.write_text(json.dumps({"mcpServers": {"city": {"type": "http", "url": remote.url}}}))
        async with (
            local_program(place, gateway_servers=str(servers)) as program,
            serving(program.app) as address,
            async_playwright() as playwright,
        ):
            for key in program.services.home.keys.iterdir():
                os.utime(key, (NOW // 1_000_000, NOW // 1_000_000))
            browser = await signed_in(program)
            chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await (await chromium.new_context(reduced_motion="reduce", locale="en-GB")).new_page()
            yield Gallery(program, browser, address, page, {}, remote)
            await chromium.close()


async def findings(page: Page) -> list[str]:
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    report = await page.evaluate("axe.run({resultTypes: ['violations']})")
    found = [
        f"{one['impact']} {one['id']}: {node['html'][:200]}"
        for one in report["violations"]
        for node in one["nodes"]
    ]
    is_wide = await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return [*found, *(["wider than the screen"] if is_wide else [])]


@dataclass
class Agent:
    client: Client
    refresh_token: str

    async def read(self, *words: str) -> None:
        issued = await self.client.refresh(self.refresh_token)
        self.refresh_token = issued.body["refresh_token"]
        for one in words:
            self.client.program.clock.at += 60_000_000
            call = {"name": "search", "arguments": {"q": one}}
            body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
            headers = [
                ("content-type", "application/json"),
                ("accept", "application/json, text/event-stream"),
            ]
            answer = await self.client.program.ask(
                "POST", "/mcp", issued.body["access_token"], body=json.dumps(body).encode(), headers=headers
            )
            assert answer.status == 200, answer.content


async def _agent(shown: Gallery, name: str, connection: str) -> Agent:
    # One after the other: lists are ordered by time.
    shown.program.clock.at += 1_000_000
    client = Client(shown.program)
    await client.register(client_name=name)
    location = await approve(shown.browser, client, f"{shown.connections[connection]}/messages")
    issued = await client.redeem(query_of(location)["code"])
    return Agent(client, issued.body["refresh_token"])


async def _agents_read(shown: Gallery) -> None:
    first, second = await _agent(shown, "Claude", "Home mail"), await _agent(shown, "Cursor", "Village chat")
    for day in range(24):
        shown.program.clock.at += DAY
        await first.read(*WORDS[: day * 7 % 6])
        await second.read(*WORDS[: day * 3 % 4])
    await shown.program.services.pump.flush()


async def _read_record(shown: Gallery, mail: ConnectionId) -> str:
    """Find a record that the agents were shown."""
    found = await shown.browser.get(f"/console/search?q=boat&stream=messages&connection_id={mail}")
    path = re.search(r'class="title"[^>]* href="([^"]+)"', found.text)
    assert path
    return unescape(path[1])


@pytest.mark.soak
async def test_every_page_is_fit_to_be_seen(tmp_path: Path):
    async with gallery(tmp_path) as shown:
        await shown.look("sign-in", "/console/sign-in")
        await shown.look("welcome", await open_link(shown.program))
        await shown.look("link-ended", "/console/welcome/none")
        await shown.sign_in()
        await shown.look("home-empty", "/console")
        await shown.look("agents-empty", "/console/agents")
        shown.connections.update(await fill(shown.program.services.store))
        await _agents_read(shown)
        await shown.sign_in()
        mail = shown.connections["Home mail"]
        agent = (await shown.program.services.ledger.grants())[0].grant.client_id
        for name, path in {
            "home": "/console",
            "search": "/console/search?q=boat",
            "data": "/console/data",
            "stream": f"/console/data/{mail}/messages",
            "record": await _read_record(shown, mail),
            "agents": "/console/agents",
            "agent": f"/console/agents/{agent}",
            "activity": "/console/activity",
            "connect": "/console/connect",
            "add": "/console/add",
            "settings": "/console/settings",
            "erase": f"/console/settings/erase/{mail}",
            "settings-backup": "/console/settings#backup",
            "confirm": "/console/confirm",
            "device": "/oauth/device",
            "error": "/console/agents/none",
        }.items():
            await shown.look(name, path)
        await _import_is_fit(shown, tmp_path)
        await _servers_are_fit(shown)
        await _rules_are_fit(shown)
        await _look_is_fit(shown, agent)
        await _narrowing_is_fit(shown)
        await _consent_is_fit(shown)


async def _import_is_fit(shown: Gallery, place: Path) -> None:
    table = "date,title,amount\n2026-03-01,Roof tiles,420.50\n2026-03-04,Bilge pump,89.90\n"
    (place / "repairs.csv").write_text(table)
    page = shown.page
    await page.goto(f"{shown.address}/console/add")
    await page.set_input_files("#file", place / "repairs.csv")
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("button", name="Import")).to_be_visible()
    await shown.capture("add-preview")
    await page.get_by_role("button", name="Import").click()
    await expect(page.get_by_text("repairs.csv is imported.")).to_be_visible()
    await shown.capture("add-done")


async def _servers_are_fit(shown: Gallery) -> None:
    page = shown.page
    await page.goto(f"{shown.address}/console/servers")
    change = {"type": "object", "required": ["place"], "properties": {"place": {"type": "string"}}}
    shown.remote.tools[0] = tool("weather", description="Tells the weather.", inputSchema=change)
    await page.get_by_role("button", name="Reload its tools").click()
    await expect(page.get_by_role("button", name="Approve weather")).to_be_visible()
    await page.fill("#name", "night-report")
    await page.get_by_role("button", name="Choose its operations").click()
    await page.check('[value="city/echo"]')
    await shown.capture("caller")
    await page.check('[value="city/echo"]')
    await page.get_by_role("button", name="Save").click()
    await shown.look("servers", "/console/servers")


async def _rules_are_fit(shown: Gallery) -> None:
    page = shown.page
    await shown.look("rules-empty", "/console/rules")
    await page.get_by_role("button", name="Hide One-time codes").click()
    await page.select_option("#kind", "words")
    await page.fill("#text", "invoice")
    await page.fill("#stream", "messages")
    await page.get_by_role("button", name="Add the rule").click()
    await expect(page.get_by_role("cell", name="any text of messages holds")).to_be_visible()
    await page.select_option("#kind", "words")
    await page.locator("#text").press_sequentially("concert")
    await expect(page.locator("#found")).to_contain_text("It finds")
    await shown.capture("rules")
    # What follows is as if there had been none.
    for _ in range(2):
        await page.get_by_role("button", name="Remove").first.click()
        await expect(page.get_by_text("The rule is removed")).to_be_visible()
        await page.goto(f"{shown.address}/console/rules")


async def _look_is_fit(shown: Gallery, agent: str) -> None:
    page = shown.page
    await page.goto(f"{shown.address}/console/agents/{agent}/look")
    await page.select_option("#tool", "search")
    await page.fill("#arguments", "boat\nlimit=5")
    await page.get_by_role("button", name="Run", exact=True).click()
    await expect(page.locator("#structure")).to_be_visible()
    await shown.capture("look")


async def _narrowing_is_fit(shown: Gallery) -> None:
    page = shown.page
    mail, grants = shown.connections["Home mail"], await shown.program.services.ledger.grants()
    granted = next(one.grant.id for one in grants if mail in one.grant.streams[0].connection_ids)
    await page.goto(f"{shown.address}/console/grants/{granted}/narrow")
    await page.get_by_label("body", exact=True).uncheck()
    await page.get_by_role("button", name="Preview").click()
    await expect(page.locator("td s").first).to_be_visible()
    await shown.capture("narrow")


async def _consent_is_fit(shown: Gallery) -> None:
    client, mail = (
        Client(shown.program, redirect="http://127.0.0.1:3030/back"),
        shown.connections["Home mail"],
    )
    await client.register(client_name="Study helper")
    path, _ = await open_consent(shown.browser, client)
    await shown.look("consent-empty", path)
    await shown.page.check(f'[name="pick/{mail}/messages"]')
    await expect(shown.page.locator("caption")).to_be_visible()
    await shown.page.uncheck(f'[id="field/{mail}/messages/body"]')
    await expect(shown.page.locator("td s").first).to_be_visible()
    await shown.page.evaluate("document.querySelector('.consent form h2').scrollIntoView()")
    await shown.capture("consent")
    await _device_is_fit(shown)


async def _device_is_fit(shown: Gallery) -> None:
    client, page = Client(shown.program), shown.page
    await client.register(
        client_name="Kitchen screen", grant_types=["urn:ietf:params:oauth:grant-type:device_code"]
    )
    body = f"client_id={client.id}".encode()
    begun = (await shown.program.ask("POST", "/oauth/device_authorization", body=body)).body
    await page.goto(f"{shown.address}/oauth/device?user_code={begun['user_code']}")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", name="Let “Kitchen screen” read your data?")).to_be_visible()
    await page.get_by_role("button", name="Deny").click()
    await expect(page.get_by_text("You denied the request.")).to_be_visible()
    await shown.capture("decided")
