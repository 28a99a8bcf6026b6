"""Home: what agents read this week, with the week before beside it; the demonstration begins with reads."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.model.ids import ConnectionId, GrantId
from headgate.model.instants import DAY_US
from tests.console.browsers import signed_in
from tests.console.test_browser import CHROMIUM, serving_demo
from tests.in_process import local_program, record
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_home_counts_the_records_of_each_source_once_a_week_with_the_week_before_beside_it(
    tmp_path: Path,
):
    async with local_program(tmp_path) as program:
        await program.declare("mail", declaration())
        home, work = await program.connect("mail", "Home mail"), await program.connect("mail", "Work mail")
        for where in (home, work):
            await program.ingest(where, "messages", [record(f"m{n}", subject="x") for n in range(20)])
        token = await program.grant(
            *(
                replace(
                    grant(stream_grant("messages", "id", connections=(ConnectionId(where),))), id=GrantId(key)
                )
                for where, key in ((home, "grt_1"), (work, "grt_2"))
            )
        )

        async def read(where: str, limit: int) -> None:
            path = f"/v1/streams/messages/records?limit={limit}&connection_id={where}"
            assert (await program.get(path, token)).status == 200

        await read(home, 19)
        program.clock.at += 8 * DAY_US
        await read(home, 5)
        await read(work, 2)
        program.clock.at += 8 * DAY_US
        await read(home, 3)
        await read(home, 7)
        shown = (await (await signed_in(program)).get("/console")).words
        assert "The 7 before agent Home mail 7 5 agent Work mail 0 2 Latest" in shown
        assert "19" not in shown.partition("The 7 before")[2].partition("Latest")[0]


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_the_demonstration_begins_with_a_week_of_reads_of_records_that_are_there(tmp_path: Path):
    from playwright.sync_api import expect, sync_playwright  # noqa: PLC0415 - optional

    with serving_demo(tmp_path) as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(demo.link)
        for field in ("#password", "#again"):
            page.fill(field, "six green boats at noon")
        page.get_by_role("button", name="Set password").click()
        week = page.get_by_role("region", name="Read this week, by agent and source")
        rows = week.locator("tbody tr").all_inner_texts()
        counts = [tuple(map(int, re.findall(r"\d+", row.partition("demo-agent")[2]))) for row in rows]
        assert len(rows) > 3
        assert sum(this for this, _ in counts) > 20
        assert sum(last for _, last in counts) > 5
        page.get_by_role("link", name="Activity", exact=True).click()
        page.get_by_role("link", name=re.compile("^[0-9]+ records$")).first.click()
        expect(page.locator("ul.list li").first).to_be_visible()
        assert "no longer here" not in page.inner_text("main")
        browser.close()
