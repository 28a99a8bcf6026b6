"""An import that runs or ended is found again, and the page of adding data says how to get an export."""

from __future__ import annotations

import asyncio
import re
from html import unescape
from pathlib import Path

import pytest

from tests.console.browsers import signed_in
from tests.console.test_pages import multipart
from tests.in_process import local_program
from tests.journeys.test_first_minutes import BANK

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_an_import_is_found_again_from_home_and_from_add_data(tmp_path: Path):
    async with local_program(tmp_path) as program:
        browser = await signed_in(program)
        assert "Imports of the last day" not in (await browser.get("/console/add")).words
        body, kind = multipart(browser.form_key, ("bank.csv", BANK.encode()))
        sent = await browser.send("/console/add", body, kind)
        # What only waits for its preview is no import yet.
        assert "Imports of the last day" not in (await browser.get("/console/add")).words
        await browser.post(sent.location or "", do="import")
        running = await browser.get("/console")
        link = re.search(r'href="([^"]+/progress)">Importing bank.csv</a>: (\d+) %', running.text)
        assert link
        async with asyncio.timeout(20):
            while "is imported" not in (shown := await browser.get(unescape(link[1]))).words:
                assert "You may leave this page" in shown.words
                await asyncio.sleep(0.02)
        listed = await browser.get("/console/add")
        assert link[1] in listed.text
        assert re.search(r"Imports of the last day bank.csv \d+ record", listed.words)
        assert "Importing bank.csv" not in (await browser.get("/console")).words


async def test_adding_data_says_in_three_lines_how_to_get_what_people_have(tmp_path: Path):
    async with local_program(tmp_path) as program:
        shown = await (await signed_in(program)).get("/console/add")
        tiles = re.findall(r"<section class=\"card\"><h3>(.*?)</h3><ol>(.*?)</ol>", shown.text)
        names = [name for name, _ in tiles]
        assert {"Gmail", "Apple", "Outlook", "Bank", "WhatsApp", "Slack", "Notes", "Any other file"} < {
            *names
        }
        assert [lines.count("<li") for _, lines in tiles] == [3] * len(tiles)
