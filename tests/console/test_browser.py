"""The owner's first minutes in a real browser, against the demonstration as `make run` serves it."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.forking import shared_parent
from tests.on_socket import environment

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
PASSWORD = "six green boats at noon"
PAGES = (
    *("", "/data", "/agents", "/agents/demo-agent", "/activity", "/connect", "/add", "/settings"),
    *("/search?q=sheet", "/rules", "/agents/demo-agent/look"),
)


@dataclass(frozen=True)
class Demo:
    address: str
    token: str
    link: str

    def call(self, tool: str, **arguments: str) -> httpx2.Response:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        }
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        return httpx2.post(f"{self.address}/mcp", json=body, headers=headers, trust_env=False, timeout=30)


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Demo]:
    with serving_demo(tmp_path) as made:
        yield made


@contextmanager
def serving_demo(tmp_path: Path) -> Iterator[Demo]:
    words = ("serve", "--demo", "--port", "0")
    variables = environment(tmp_path, {"TMPDIR": str(tmp_path)})
    process = shared_parent().start(tmp_path, words, variables, log=Path(os.devnull))
    try:
        shown = ""
        while "Ctrl-C" not in shown:
            line = process.stdout.readline()
            assert line, shown
            shown += line
        address = re.search(r"MCP URL +(\S+)/mcp", shown)
        token, link = re.search(r"token +(\S+)", shown), re.search(r"console +(\S+)", shown)
        assert address
        assert token
        assert link
        yield Demo(address[1], token[1], link[1])
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        process.close()


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


def test_the_owner_signs_in_searches_looks_at_agents_and_stops_them(demo: Demo, page: Page):
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    found = json.loads(demo.call("search", q="sheet").text)["result"]["structuredContent"]
    hits = found["data"]["data"]
    read = len(hits) + sum(hit.get("alike", {}).get("count", 0) for hit in hits)
    # The record that is opened now is one of these.
    demo.call("fetch", id=found["results"][0]["id"])

    page.goto(demo.link)
    page.fill("#password", PASSWORD)
    page.fill("#again", PASSWORD)
    page.get_by_role("button", name="Set password").click()
    expect(page.get_by_role("heading", name="Your data")).to_be_visible()

    page.locator("#q").press_sequentially("sheet")
    page.locator("#found a.title").first.click()
    expect(page.get_by_role("heading", name="Who has read it")).to_be_visible()
    expect(page.get_by_role("cell", name="demo-agent").first).to_be_visible()

    page.get_by_role("link", name="Activity", exact=True).click()
    expect(page.get_by_text(f"read {read} records").first).to_be_visible()
    page.get_by_role("button", name="Verify the log").click()
    expect(page.get_by_text("The log is whole")).to_be_visible()

    page.get_by_role("link", name="Agents", exact=True).click()
    page.get_by_role("button", name="Stop all agents").click()
    expect(page.get_by_text("Stopped: 5 grants ended.")).to_be_visible()
    assert demo.call("schema").status_code == 401
    page.get_by_role("button", name="Sign out").click()
    page.goto(f"{demo.address}/console/data")
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert problems == []


@pytest.mark.soak
def test_no_page_is_wider_than_a_phone_and_each_works_without_scripts(demo: Demo, page: Page):
    browser = page.context.browser
    assert browser is not None
    phone = browser.new_context(viewport={"width": 390, "height": 844}, java_script_enabled=False)
    shown = phone.new_page()
    shown.goto(demo.link)
    shown.fill("#password", PASSWORD)
    shown.fill("#again", PASSWORD)
    shown.get_by_role("button", name="Set password").click()
    for path in PAGES:
        answer = shown.goto(f"{demo.address}/console{path}")
        assert answer is not None
        assert answer.status == 200, path
        width = shown.locator("main").bounding_box()
        assert width is not None
        assert width["width"] <= 390, path
    phone.close()


def _found(demo: Demo, word: str) -> int:
    return len(demo.call("search", q=word).json()["result"]["structuredContent"]["results"])


def test_a_rule_is_counted_while_it_is_typed_and_hides_when_it_is_added(demo: Demo, page: Page):
    page.goto(demo.link)
    page.fill("#password", PASSWORD)
    page.fill("#again", PASSWORD)
    page.get_by_role("button", name="Set password").click()
    page.goto(f"{demo.address}/console/rules")
    page.select_option("#kind", "words")
    page.locator("#text").press_sequentially("boat")
    # Counting 28 000 records takes seconds on a busy machine.
    expect(page.locator("#found")).to_contain_text("It finds")
    before = _found(demo, "boat")
    page.get_by_role("button", name="Add the rule").click()
    expect(page.get_by_text("The rule hides")).to_be_visible()
    expect(page.get_by_role("cell", name="any text holds the words “boat”")).to_be_visible()
    assert 0 <= _found(demo, "boat") < before
    page.goto(f"{demo.address}/console/agents/demo-agent/look")
    page.select_option("#tool", "search")
    page.fill("#arguments", "boat")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#structure")).to_be_visible()
