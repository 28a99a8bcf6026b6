"""A passkey in a real browser, with the browser's own authenticator: added, used to sign in, and to confirm."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.console.test_browser import CHROMIUM, PASSWORD, serving_demo

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")


def authenticator(page: Page, *, verifies: bool = True) -> None:
    """Plug an authenticator into the browser that says whether it verified its user."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": verifies, "automaticPresenceSimulation": True,
    }  # fmt: skip
    session.send("WebAuthn.addVirtualAuthenticator", {"options": options})


def test_the_owner_adds_a_passkey_and_signs_in_with_it(tmp_path: Path):
    with serving_demo(tmp_path) as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        problems: list[str] = []
        page.on("pageerror", lambda error: problems.append(str(error)))
        authenticator(page)
        address = demo.address.replace("127.0.0.1", "localhost")
        page.goto(demo.link)
        page.fill("#password", PASSWORD)
        page.fill("#again", PASSWORD)
        page.get_by_role("button", name="Set password").click()

        # The address of the link is no name, for which a browser would make a passkey; the page leads to one.
        page.get_by_role("link", name="Settings", exact=True).click()
        page.get_by_role("link", name="Open this page at localhost").click()
        page.fill("#password", PASSWORD)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("heading", name="Passkeys")).to_be_visible()
        assert page.url.startswith(f"{address}/console/settings")
        page.fill("#passkey-name", "This laptop")
        page.get_by_role("button", name="Add a passkey").click()
        expect(page.get_by_text("The passkey is added")).to_be_visible()
        expect(page.get_by_role("cell", name="This laptop")).to_be_visible()
        # The browser finds that it has one already.
        page.fill("#passkey-name", "Again")
        page.get_by_role("button", name="Add a passkey").click()
        expect(page.get_by_text("has a passkey for Headgate already")).to_be_visible()

        page.get_by_role("button", name="Sign out").click()
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.get_by_role("heading", name="Your data")).to_be_visible()
        page.goto(f"{address}/console/confirm?next=/console/agents")
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.get_by_role("heading", name="Agents")).to_be_visible()

        # By the address of the machine it cannot be used, and the page of sign-in leads to where it can.
        page.context.clear_cookies()
        page.goto(f"{demo.address}/console/data")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        expect(page.get_by_role("button", name="Use a passkey")).to_have_count(0)
        page.get_by_role("link", name="Use a passkey").click()
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.get_by_role("heading", name="Data")).to_be_visible()
        assert page.url == f"{address}/console/data"
        # A client that asks at the address is answered by the address.
        page.goto(f"{demo.address}/console/sign-in?next=/oauth/authorize")
        expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        expect(page.get_by_role("link", name="Use a passkey")).to_have_count(0)
        assert problems == []
        browser.close()


@pytest.mark.hostile("38")
def test_no_page_of_another_site_frames_the_owners_pages(tmp_path: Path):
    with serving_demo(tmp_path) as demo, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = browser.new_page()
        for path in ("/console/sign-in", "/oauth/authorize?client_id=x", "/oauth/consent/x"):
            page.goto("about:blank")
            page.set_content(f'<iframe src="{demo.address}{path}"></iframe>')
            framed = page.frames[1]
            framed.wait_for_url("chrome-error://chromewebdata/")
        browser.close()
