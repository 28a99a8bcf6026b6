"""The documentation as a site: it builds without warnings, has every page, and works in a browser without a network."""

from __future__ import annotations

import functools
import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
CHROMIUM = shutil.which("chromium")
PHONE = {"width": 390, "height": 844}


def built(tree: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a tree as `make docs` does."""
    return subprocess.run(
        [Path(sys.executable).with_name("zensical"), "build", "--strict"],
        cwd=tree, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tree = tmp_path_factory.mktemp("site")
    shutil.copy(ROOT / "mkdocs.yml", tree)
    shutil.copytree(DOCS, tree / "docs")
    done = built(tree)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "No issues found" in done.stdout + done.stderr
    return tree / "site"


def test_every_page_is_in_the_site(site: Path):
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()


def pages_of(entry: Any) -> Iterator[str]:
    """Give the pages of a part of the navigation."""
    if isinstance(entry, str):
        yield entry
    else:
        for one in entry.values() if isinstance(entry, dict) else entry:
            yield from pages_of(one)


def test_the_navigation_has_every_page_once_by_its_kind():
    navigation = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [name for part in navigation for name in part] == [
        *("Overview", "Tutorial", "How-to", "Reference", "Explanation")
    ]
    for part in navigation[1:]:
        ((name, entries),) = part.items()
        folder = DOCS / name.lower()
        assert sorted(pages_of(entries)) == sorted(
            page.relative_to(DOCS).as_posix() for page in folder.rglob("*.md")
        )


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    for link in ("index.md#the-top", "elsewhere.md"):
        (tmp_path / "mkdocs.yml").write_text("site_name: x\nnav: [index.md]\n", encoding="utf-8")
        (tmp_path / "docs" / "index.md").write_text(f"# Other\n\n[There]({link}).\n", encoding="utf-8")
        assert built(tmp_path).returncode != 0, link


@contextmanager
def served(directory: Path) -> Iterator[str]:
    handler = functools.partial(QuietFiles, directory=str(directory))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def page() -> Iterator[Page]:
    if CHROMIUM is None:
        pytest.skip("needs chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page(viewport=PHONE)
        browser.close()


@pytest.mark.soak
def test_every_page_fits_a_phone_and_fetches_nothing_from_elsewhere(site: Path, page: Page):
    asked: set[str] = set()
    errors: list[str] = []
    page.on("request", lambda request: asked.add(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    with served(site) as address:
        for file in sorted(site.rglob("*.html")):
            name = file.relative_to(site).as_posix()
            page.goto(f"{address}/{name}")
            assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    assert errors == []


def test_a_reader_finds_a_page_by_its_words(site: Path, page: Page):
    page.set_viewport_size({"width": 1280, "height": 900})
    with served(site) as address:
        page.goto(f"{address}/index.html")
        page.keyboard.press("Control+k")
        page.keyboard.type("passphrase")
        found = page.get_by_role("link", name="Maintain the store").first
        expect(found).to_be_visible(timeout=30_000)
