"""An OAuth client without a screen, and the owner's way through the page of consent."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.console.browsers import Browser, Shown
from tests.http_clients import HttpAnswer
from tests.in_process import LocalProgram

VERIFIER = "v" * 64
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
REDIRECT = "https://client.example/callback"
REVIEW = re.compile(r'name="review" value="([0-9a-f]*)"')


@dataclass
class Client:
    program: LocalProgram
    id: str = ""
    redirect: str = REDIRECT
    secret: str | None = None

    async def register(self, **more: Any) -> HttpAnswer:
        document = {"client_name": "Test client", "redirect_uris": [self.redirect], **more}
        answer = await self.program.ask("POST", "/oauth/register", body=json.dumps(document).encode())
        if answer.status == 201:
            self.id, self.secret = answer.body["client_id"], answer.body.get("client_secret")
        return answer

    def url(self, **changes: Any) -> str:
        """Write the address that the client opens in the owner's browser; None leaves a parameter out."""
        asked = {
            "response_type": "code", "client_id": self.id, "redirect_uri": self.redirect, "state": "s1",
            "code_challenge": CHALLENGE, "code_challenge_method": "S256", **changes,
        }  # fmt: skip
        return "/oauth/authorize?" + urlencode({k: v for k, v in asked.items() if v is not None}, doseq=True)

    async def token(self, headers: Any = (), **fields: Any) -> HttpAnswer:
        form = {"client_id": self.id, **fields}
        body = urlencode({k: v for k, v in form.items() if v is not None}, doseq=True).encode()
        return await self.program.ask("POST", "/oauth/token", body=body, headers=headers)

    async def redeem(self, code: str, **changes: Any) -> HttpAnswer:
        fields = {"code": code, "redirect_uri": self.redirect, "code_verifier": VERIFIER, **changes}
        return await self.token(grant_type="authorization_code", **fields)

    async def refresh(self, token: str, **changes: Any) -> HttpAnswer:
        return await self.token(grant_type="refresh_token", refresh_token=token, **changes)


def query_of(location: str | None) -> dict[str, str]:
    assert location is not None
    return {name: values[-1] for name, values in parse_qs(urlsplit(location).query).items()}


def form_of(shown: Shown) -> dict[str, list[str]]:
    """Give what a browser would send of the page's form."""
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", shown.text):
        name, value = _attribute(tag, "name"), _attribute(tag, "value") or ""
        is_off = 'type="checkbox"' in tag and not re.search(r"\schecked", tag)
        if name and not is_off and not re.search(r"\sdisabled", tag):
            found.setdefault(name, []).append(value)
    for name, body in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', shown.text, re.DOTALL):
        chosen = re.search(r'<option value="([^"]*)" selected', body)
        found[unescape(name)] = [chosen[1] if chosen else re.findall(r'value="([^"]*)"', body)[0]]
    return found


def _attribute(tag: str, name: str) -> str | None:
    found = re.search(rf'\s{name}="([^"]*)"', tag)
    return unescape(found[1]) if found else None


async def open_consent(browser: Browser, client: Client, **changes: Any) -> tuple[str, Shown]:
    """Open the page of consent; gives its path and what it shows."""
    begun = await browser.get(client.url(**changes))
    assert begun.status == 303, begun.words
    assert begun.location is not None
    assert begun.location.startswith("/oauth/consent/"), begun.location
    return begun.location, await browser.get(begun.location)


async def change(browser: Browser, path: str, shown: Shown, **fields: Any) -> Shown:
    """Send the form as it is shown, with changes."""
    form: dict[str, Any] = {**form_of(shown), **fields}
    form.pop("form_key", None)
    return await browser.post(path, **form)


async def approve(browser: Browser, client: Client, *keys: str, **changes: Any) -> str:
    """Let a client in to whole streams; gives the address that its browser is sent to."""
    path, shown = await open_consent(browser, client, **changes)
    shown = await change(browser, path, shown, **{f"pick/{key}": "1" for key in keys})
    decided = await change(browser, path, shown, decision="approve")
    assert decided.status == 303, decided.words
    assert decided.location is not None
    return decided.location
