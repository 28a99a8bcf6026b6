"""The pages of the bare address and of /docs: they lead on, and need nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from headgate.web.api.openapi import openapi_document
from tests.in_process import LocalProgram, local_program


class Page(HTMLParser):
    """What a browser makes of the page: the tags, and the targets of links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.addresses: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append((tag, tuple(found)))
        self.addresses += [found[name] for name in ("href", "src", "action", "srcset") if name in found]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def program(tmp_path: Path) -> AsyncIterator[LocalProgram]:
    async with local_program(tmp_path) as made:
        yield made


@pytest.mark.anyio
async def test_the_page_needs_no_token_and_leads_to_the_document(program: LocalProgram):
    answer = await program.get("/docs")
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert Page(answer.content.decode()).addresses == ["/openapi.json"]
    assert 'curl -H "Authorization: Bearer $TOKEN" "$SERVER/v1/schema' in answer.content.decode()
    assert (await program.get("/openapi.json")).body == openapi_document()
    assert (await program.ask("POST", "/docs")).status == 405


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/", "/docs"])
async def test_a_page_runs_nothing_loads_nothing_and_names_no_other_host(program: LocalProgram, path: str):
    answer = await program.get(path)
    text = answer.content.decode()
    page = Page(text)
    assert not {"script", "link", "img", "iframe", "form", "object", "embed"} & {tag for tag, _ in page.tags}
    assert not [name for _, names in page.tags for name in names if name.startswith("on")]
    assert "//" not in text
    assert "url(" not in text
    assert "@import" not in text
    assert answer.headers["content-security-policy"].split("; ") == [
        "default-src 'none'", "style-src 'unsafe-inline'", "base-uri 'none'", "form-action 'none'",
        "frame-ancestors 'none'",
    ]  # fmt: skip
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "prefers-color-scheme: dark" in text


@pytest.mark.anyio
async def test_the_front_page_leads_to_it(program: LocalProgram):
    assert Page((await program.get("/")).content.decode()).addresses == ["/console", "/docs"]
