"""A browser without a screen: it keeps cookies, sends forms with their key, and goes where it is sent."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import urlencode

from tests.in_process import LocalProgram

PASSWORD = "six green boats at noon"
#: What other programs of this machine have left in the browser, in their own ways.
FOREIGN = (
    'prefs={"a":1}; theme=dark blue; name=J\xf6rg; flag; =lost; "q"="x\\"; sid=a,b@c; headgate=other; $x=/'
)
FORM_KEY = re.compile(r'name="form_key" value="([0-9a-f]{64})"')


@dataclass(frozen=True)
class Shown:
    status: int
    headers: list[tuple[str, str]]
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode("utf-8", "replace")

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    @property
    def location(self) -> str | None:
        return self.header("location")

    @property
    def words(self) -> str:
        """The text of the page without its marks."""
        return " ".join(unescape(re.sub(r"<[^>]+>", " ", self.text)).split())


@dataclass
class Browser:
    program: LocalProgram
    cookies: dict[str, str] = field(default_factory=dict)
    form_key: str = ""
    host: str = "127.0.0.1"
    scheme: str = "http"
    address: str = "127.0.0.1"

    async def get(self, path: str, *more: tuple[str, str]) -> Shown:
        shown = await self._send("GET", path, b"", more)
        found = FORM_KEY.search(shown.text)
        self.form_key = found[1] if found else self.form_key
        return shown

    async def post(self, path: str, *more: tuple[str, str], **fields: Any) -> Shown:
        body = urlencode({"form_key": self.form_key, **fields}, doseq=True).encode()
        return await self._send("POST", path, body, more)

    async def send(self, path: str, content: bytes, *more: tuple[str, str]) -> Shown:
        return await self._send("POST", path, content, more)

    async def _send(self, method: str, path: str, body: bytes, more: tuple[tuple[str, str], ...]) -> Shown:
        raw, _, query = path.partition("?")
        cookie = "; ".join([FOREIGN, *(f"{name}={value}" for name, value in self.cookies.items())])
        own = [] if any(name == "cookie" for name, _ in more) else [("cookie", cookie)]
        headers = [("host", self.host), *own, *more]
        scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": method,
            "scheme": self.scheme, "path": raw, "raw_path": raw.encode(), "query_string": query.encode(),
            "root_path": "", "headers": [(name.encode(), value.encode("latin-1")) for name, value in headers],
            "client": (self.address, 1), "server": ("127.0.0.1", 80),
        }  # fmt: skip
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.program.app(scope, receive, send)
        found = [(name.decode(), value.decode("latin-1")) for name, value in sent[0]["headers"]]
        self._take_cookies(found)
        content = b"".join(message.get("body", b"") for message in sent[1:])
        return Shown(sent[0]["status"], found, content)

    def _take_cookies(self, headers: list[tuple[str, str]]) -> None:
        for name, value in headers:
            if name == "set-cookie":
                key, _, rest = value.partition("=")
                self.cookies[key] = rest.partition(";")[0]


async def open_link(program: LocalProgram) -> str:
    """Make a link as the start of the server does; returns its path."""
    return f"/console/welcome/{await program.services.sessions.make_link()}"


async def signed_in(program: LocalProgram) -> Browser:
    """Set the password by a link, as a new owner does."""
    browser = Browser(program)
    shown = await browser.post(await open_link(program), password=PASSWORD, again=PASSWORD)
    assert shown.status == 303, shown.words
    await browser.get("/console/confirm")
    assert browser.form_key
    return browser
