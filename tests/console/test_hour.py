"""The owner's first hour, in a real browser against the real program, with the MCP SDK's own OAuth client."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata
from playwright.async_api import Page, async_playwright, expect
from pydantic import AnyUrl

from tests.console.clients import query_of
from tests.console.test_browser import CHROMIUM, PASSWORD
from tests.console.test_sdk_client import Storage
from tests.on_socket import headgate, serving

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")]
REDIRECT = "http://127.0.0.1:3030/callback"
TABLE = "id,title,when,note\n" + "".join(
    f"{n},Repair {n},2026-0{n % 9 + 1}-02,secret note {n}\n" for n in range(1, 41)
)


@dataclass
class Agent:
    """The SDK's client, which opens the owner's browser for consent."""

    address: str
    page: Page
    answer: dict[str, str] = field(default_factory=dict[str, str])
    storage: Storage = field(default_factory=Storage)

    def http(self) -> httpx2.AsyncClient:
        metadata = OAuthClientMetadata(client_name="Study helper", redirect_uris=[AnyUrl(REDIRECT)])
        url = f"{self.address}/mcp"
        provider = OAuthClientProvider(url, metadata, self.storage, self.consent, self._wait)
        return httpx2.AsyncClient(auth=provider, trust_env=False, timeout=60)

    async def _wait(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.answer)

    async def consent(self, url: str) -> None:
        """Narrow what is shared in the browser, and approve."""
        page = self.page
        await page.goto(url)
        await expect(page.get_by_role("heading", name="Let “Study helper” read your data?")).to_be_visible()
        await expect(page.get_by_text("the computer this browser runs on")).to_be_visible()
        approve, deny = (page.get_by_role("button", name=name) for name in ("Approve", "Deny"))
        await expect(approve).to_be_disabled()
        assert not await page.locator("input[type=checkbox]:checked").count()
        sizes = [await one.bounding_box() for one in (approve, deny)]
        assert sizes[0] is not None
        assert sizes[1] is not None
        assert (sizes[0]["width"], sizes[0]["height"]) == (sizes[1]["width"], sizes[1]["height"])
        pick = page.locator('input[name^="pick/"]').first
        await pick.focus()
        await page.keyboard.press("Space")
        await expect(page.get_by_text("40 records")).to_have_count(2)
        await expect(page.locator("td", has_text="secret note").first).to_be_visible()
        assert not await page.locator("td s").count()
        focused = await page.evaluate("document.activeElement.name")
        assert str(focused).startswith("pick/"), "the keyboard stays where it was"
        await page.get_by_label("note", exact=True).uncheck()
        await expect(page.locator("td s", has_text="secret note").first).to_be_visible()
        await page.fill("#daily_records", "100")
        await page.locator("#daily_records").blur()
        await expect(page.get_by_role("status")).to_contain_text("at most 100 records a day")
        async with page.expect_request(lambda request: request.url.startswith(REDIRECT)) as sent:
            await approve.click()
        self.answer.update(query_of((await sent.value).url))
        # Nothing listens there: the browser shows its own page, and must have come to it before it goes on.
        await page.wait_for_url("chrome-error://chromewebdata/")


async def call(http: httpx2.AsyncClient, address: str, tool: str, **arguments: Any) -> httpx2.Response:
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    return await http.post(f"{address}/mcp", content=json.dumps(body), headers=headers)


async def test_the_owners_hour(tmp_path: Path):
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "repairs.csv").write_text(TABLE)
    with serving(tmp_path) as served:
        assert served.process.stdout is not None
        link = re.search(
            r"http\S+/console/welcome/\S+", await asyncio.to_thread(served.process.stdout.readline)
        )
        assert link
        async with async_playwright() as playwright:
            chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await chromium.new_page()
            problems: list[str] = []
            page.on("pageerror", lambda error: problems.append(str(error)))
            await _set_up(page, link[0])
            await _import(page, tmp_path / "export")
            await _back_up(page, tmp_path)
            agent = Agent(served.address, page)
            async with agent.http() as http:
                await _read_and_watch(page, http, served.address)
                await _stop(page, served.address, agent)
            assert problems == []
            await chromium.close()


async def _set_up(page: Page, link: str) -> None:
    await page.goto(link)
    await page.fill("#password", PASSWORD)
    await page.fill("#again", PASSWORD)
    await page.get_by_role("button", name="Set password").click()
    await expect(page.get_by_role("heading", name="Nothing here yet")).to_be_visible()


async def _import(page: Page, folder: Path) -> None:
    await page.get_by_role("link", name="Add data").first.click()
    await page.set_input_files("#folder", folder)
    await page.get_by_role("button", name="Preview").click()
    await expect(page.get_by_role("cell", name="Repair 1", exact=True)).to_be_visible()
    await page.fill("#display_name", "House repairs")
    await page.get_by_role("button", name="Import").click()
    await expect(page.get_by_text("is imported.")).to_be_visible()


async def _back_up(page: Page, place: Path) -> None:
    await page.get_by_role("link", name="Settings", exact=True).click()
    await page.fill("#passphrase", "nine slow barges")
    await page.fill("#passphrase-again", "nine slow barges")
    async with page.expect_download() as sent:
        await page.get_by_role("button", name="Download a backup").click()
    file = await sent.value
    assert re.fullmatch(r"headgate-\d{4}-\d\d-\d\d\.age", file.suggested_filename)
    await file.save_as(place / "backup.age")
    (place / "words").write_text("nine slow barges\n")
    (place / "words").chmod(0o600)
    arguments = ("--verify", str(place / "backup.age"), "--passphrase-file", str(place / "words"), "--json")
    verified = await asyncio.to_thread(
        headgate, place, "--home", str(place / "other"), "store", "restore", *arguments
    )
    assert json.loads(verified.out)["record_count"] == 40, verified.err


async def _read_and_watch(page: Page, http: httpx2.AsyncClient, address: str) -> None:
    read = await call(http, address, "search", q="Repair")
    assert read.status_code == 200
    content = read.json()["result"]["structuredContent"]
    assert content["results"]
    assert "secret" not in read.text
    await page.goto(content["results"][0]["url"])
    await expect(page.get_by_role("heading", name="Who has read it")).to_be_visible()
    await expect(page.get_by_role("cell", name="Study helper").first).to_be_visible()
    await page.get_by_role("link", name="Activity", exact=True).click()
    await expect(page.locator("#log")).to_contain_text("Study helper read")
    await expect(page.locator("#log")).to_contain_text("searched 1 time")
    assert (await call(http, address, "search", q="Repair")).status_code == 200
    # The open page shows it without being loaded again.
    await expect(page.locator("#log")).to_contain_text("searched 2 times", timeout=30_000)
    await page.get_by_role("link", name="Connect an agent").click()
    await expect(page.locator("#connected .dot.good")).to_be_visible()


async def _stop(page: Page, address: str, agent: Agent) -> None:
    await page.get_by_role("link", name="Agents", exact=True).click()
    await page.get_by_role("button", name="Stop all agents").click()
    await expect(page.get_by_text("Stopped: 1 grant ended.")).to_be_visible()
    assert agent.storage.tokens is not None
    bearer = {"authorization": f"Bearer {agent.storage.tokens.access_token}"}
    async with httpx2.AsyncClient(headers=bearer, trust_env=False) as plain:
        assert (await call(plain, address, "schema")).status_code == 401
