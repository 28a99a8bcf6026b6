"""The first five minutes: from an empty home to an agent's right answer over imported files, in a terminal and a browser."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.sync_api import Page, expect, sync_playwright

from tests.journeys.agent import ids_in, values_in
from tests.on_socket import COMMAND, Outcome, environment, headgate

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
PASSWORD = "six green boats at noon"
MAIL = """\
From office@castell.example Fri Mar 14 18:05:00 2025
From: Dafydd Castell <office@castell.example>
To: Nora <nora@mailbox.example>
Subject: Roof repair: our quote
Date: Fri, 14 Mar 2025 18:05:00 +0000
Message-ID: <quote@castell.example>
Content-Type: text/plain; charset=utf-8

Dear Nora, for the roof we ask 5,940.00, scaffold included. Dafydd

"""
BANK = """\
Date,Description,Amount
2025-03-20,Castell Roofing deposit,-1500.00
2025-04-02,Hobbs Grocers,-23.10
2025-05-09,Castell Roofing final payment,-4810.00
"""


def test_a_newcomer_gets_a_right_answer_from_an_agent(tmp_path: Path, figure: Callable[[str, str], None]):
    (tmp_path / "all.mbox").write_text(MAIL, encoding="utf-8")
    (tmp_path / "bank.csv").write_text(BANK, encoding="utf-8")
    begun = time.monotonic()
    with running(tmp_path) as link, browser_page() as page:
        sign_in(page, link)
        run(tmp_path, "import", "all.mbox", "bank.csv")
        page.goto(link.partition("/welcome")[0])
        expect(page.get_by_role("heading", name="Your data")).to_be_visible()
        page.locator("#q").press_sequentially("roof")
        expect(page.locator("#found a.title").first).to_contain_text("roof", ignore_case=True)

        connected = run(tmp_path, "connect", "claude-code", "--http", "--write", "--yes")
        assert "3 records, 2025-03-20 to 2025-05-09" in connected.err
        entry = json.loads((tmp_path / ".claude.json").read_bytes())["mcpServers"]["headgate"]
        # In a thread, because the browser's loop runs in this one.
        with ThreadPoolExecutor(1) as threads:
            quote, paid = threads.submit(lambda: asyncio.run(ask(entry))).result()
        assert (quote, paid) == ("5,940.00", 6310.0)
        seconds = time.monotonic() - begun

        page.get_by_role("link", name="Activity", exact=True).click()
        expect(
            page.get_by_text("read 3 records: 2 transactions of Bank statements, 1 message of Mail")
        ).to_be_visible()
        assert "claude-code" in run(tmp_path, "audit", "list").out
        run(tmp_path, "grants", "revoke", "claude-code")
        refused = httpx2.post(entry["url"], headers=entry["headers"], json={}, trust_env=False)
        assert refused.status_code == 401
    figure(
        "first minutes", f"{seconds:.1f} s from an empty home to an agent's right answer over imported files"
    )


@contextmanager
def running(place: Path) -> Iterator[str]:
    """Run the command alone, and give the link that it prints."""
    process = subprocess.Popen(
        COMMAND,
        cwd=place,
        env=environment(place, {"HEADGATE_PORT": "0"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    try:
        shown = ""
        while "/console/welcome/" not in shown:
            line = process.stdout.readline()
            assert line, shown
            shown += line
        found = re.search(r"console +(\S+)", shown)
        assert found
        yield found[1]
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        process.stdout.close()


@contextmanager
def browser_page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def sign_in(page: Page, link: str) -> None:
    page.set_default_timeout(60_000)
    expect.set_options(timeout=60_000)
    page.goto(link)
    page.fill("#password", PASSWORD)
    page.fill("#again", PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("navigation", name="Console")).to_be_visible()


def run(place: Path, *arguments: str) -> Outcome:
    done = headgate(place, *arguments)
    assert done.code == 0, done.err
    return done


async def ask(entry: dict[str, Any]) -> tuple[str, float]:
    """Answer: what was the roof quoted at, and what was paid? From the texts of two sources."""
    async with (
        httpx2.AsyncClient(headers=entry["headers"], trust_env=False, timeout=60) as http,
        Client(streamable_http_client(entry["url"], http_client=http)) as client,
    ):

        async def text_of(tool: str, **arguments: Any) -> str:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result.content
            return "\n".join(part.text for part in result.content if part.type == "text")

        hits = await text_of("search", q="roof quote", streams=["messages"])
        opened = await text_of("fetch", id=ids_in(hits)[0])
        quote = re.search(r"we ask ([\d,.]+\d)", opened)[1]
        payments = await text_of("search", q="Castell Roofing", streams=["transactions"])
        found = ids_in(payments)
        documents = [json.loads(await text_of("fetch", id=one)) for one in found]
        amounts = [float(values_in(one)["amount"]) for one in documents]
        return quote, -sum(amounts)
