"""Pages of other origins: what they may read and call from a browser, as the headers say and as a real browser does it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

from tests.console.browsers import signed_in
from tests.console.test_browser import CHROMIUM
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram, local_program
from tests.on_socket import serving as serving_home
from tests.peers.serving import serving
from tests.policy.worlds import grant, stream_grant
from tests.schema.declarations import declaration

pytestmark = pytest.mark.anyio
APP, EVIL = "https://app.example", "https://evil.example"
DOCUMENTS = (
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
)
LISTED = (
    *("/oauth/token", "/oauth/register", "/oauth/revoke", "/oauth/device_authorization"),
    *("/token", "/register", "/mcp"),
)
OWN = ("/console", "/console/agents/stop-all", "/oauth/consent/x", "/oauth/authorize", "/console/sign-in")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path, allowed_origins=APP) as made:
        yield made


async def asked(program: LocalProgram, method: str, path: str, origin: str) -> HttpAnswer:
    """Ask as a browser does before it sends a page's request."""
    headers = [
        ("origin", origin),
        ("access-control-request-method", method),
        ("access-control-request-headers", "mcp-protocol-version, authorization"),
    ]
    return await program.ask("OPTIONS", path, headers=headers)


@pytest.mark.parametrize("path", DOCUMENTS)
async def test_every_page_reads_the_public_documents(program: LocalProgram, path: str):
    for origin in (APP, EVIL, "null"):
        before = await asked(program, "GET", path, origin)
        assert (before.status, before.headers["access-control-allow-origin"]) == (204, "*")
        assert "mcp-protocol-version" in before.headers["access-control-allow-headers"]
        answer = await program.get(path, headers=[("origin", origin)])
        assert (answer.status, answer.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in {*before.headers, *answer.headers}


@pytest.mark.parametrize("path", LISTED)
async def test_only_pages_that_the_owner_lists_call_with_a_proof(program: LocalProgram, path: str):
    before = await asked(program, "POST", path, APP)
    assert before.status == 204
    assert before.headers["access-control-allow-origin"] == APP
    assert before.headers["vary"] == "origin"
    answer = await program.ask("POST", path, headers=[("origin", APP)])
    assert answer.status in {400, 401}
    assert answer.headers["access-control-allow-origin"] == APP
    assert "www-authenticate" in answer.headers["access-control-expose-headers"]
    for refused in (
        await asked(program, "POST", path, EVIL),
        await program.ask("POST", path, headers=[("origin", EVIL)]),
    ):
        assert refused.status == 403
        assert "access-control-allow-origin" not in refused.headers
    assert "access-control-allow-credentials" not in {*before.headers, *answer.headers}
    # Without a page there is nothing to share.
    assert "access-control-allow-origin" not in (await program.ask("POST", path)).headers


@pytest.mark.parametrize("path", OWN)
@pytest.mark.parametrize("origin", [APP, EVIL])
async def test_no_page_of_another_origin_calls_the_owners_pages(
    program: LocalProgram, path: str, origin: str
):
    browser = await signed_in(program)
    for method in ("GET", "POST"):
        before = await asked(program, method, path, origin)
        assert before.status == 403
        assert "access-control-allow-origin" not in before.headers
    shown = await browser.get(path, ("origin", origin))
    assert shown.status == 403
    assert shown.header("access-control-allow-origin") is None


async def test_a_question_before_a_request_never_runs_the_request(program: LocalProgram):
    connection = await _connection(program)
    token = await program.grant(grant(stream_grant("messages", "id", connections=(connection,))))
    (made,) = await program.services.ledger.grants()
    for path in (f"/grants/{made.grant.id}/revoke", "/console/agents/stop-all"):
        for origin in (APP, "http://127.0.0.1"):
            headers = [("origin", origin), ("access-control-request-method", "POST")]
            assert (await program.ask("OPTIONS", path, token, headers=headers)).status == 403
    assert [one.revoked_at for one in await program.services.ledger.grants()] == [None]


async def _connection(program: LocalProgram) -> Any:
    await program.declare("mail", declaration())
    return await program.connect("mail", "Home mail")


async def fetched(page: Page, url: str, **options: Any) -> tuple[int, Any] | str:
    """Fetch in a page; gives status and document, or the browser's refusal."""
    script = """async ([url, options]) => {
        try {
            const answer = await fetch(url, options);
            return [answer.status, await answer.json()];
        } catch (error) { return error.name; }
    }"""
    return await page.evaluate(script, [url, options])


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
async def test_an_agent_in_a_real_browser_finds_its_way_and_another_page_does_not(tmp_path: Path):
    blank = Starlette(routes=[Route("/", lambda _request: HTMLResponse("<title>An agent</title>"))])
    async with serving(blank) as listed, serving(blank) as other, async_playwright() as playwright:
        with serving_home(tmp_path, HEADGATE_ALLOWED_ORIGINS=listed) as served:
            chromium = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page = await chromium.new_page()
            version = {"headers": {"MCP-Protocol-Version": "2025-11-25"}}
            client = json.dumps({"redirect_uris": [f"{listed}/callback"], "client_name": "Page"})
            registration = {"method": "POST", "body": client, "headers": {"Content-Type": "application/json"}}
            call = {
                "method": "POST",
                "body": "{}",
                "headers": {"Authorization": "Bearer hg_none", "Content-Type": "application/json"},
            }
            for origin in (listed, other):
                await page.goto(origin)
                for path in DOCUMENTS:
                    found = await fetched(page, f"{served.address}{path}", **version)
                    assert found[0] == 200, path
                outcomes = [
                    await fetched(page, f"{served.address}/oauth/register", **registration),
                    await fetched(page, f"{served.address}/mcp", **call),
                ]
                if origin == listed:
                    assert [one[0] for one in outcomes] == [201, 401]
                else:
                    assert outcomes == ["TypeError", "TypeError"]
                # Not even the listed page reads what the owner sees.
                assert await fetched(page, f"{served.address}/console", credentials="include") == "TypeError"
            await asyncio.wait_for(chromium.close(), 30)
