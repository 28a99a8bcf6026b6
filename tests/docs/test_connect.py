from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "how-to").glob("connect-*.md"))
WORDS = (
    "profile",
    "toolset",
    "event subscription",
    "owner token",
    "owner's token",
    "control-plane",
    "developer tool",
)


@pytest.mark.requirement("S2-03")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_page_shows_one_recommended_way_first(page: Path):
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Recommended"
    assert headings.count("Recommended") == 1


@pytest.mark.requirement("S2-01", "S2-02", "S2-04")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_recommended_way_has_one_address_and_no_mechanism(page: Path):
    text = page.read_text(encoding="utf-8")
    recommended = text.partition("## Recommended")[2].partition("\n## ")[0]
    assert len(set(re.findall(r"https?://[\w.:]+/mcp", recommended))) <= 1
    assert not [word for word in WORDS if word in text.casefold()]


@pytest.mark.requirement("S2-02", "S2-05")
def test_the_commands_know_no_profiles():
    for command in (["mcp", "--help"], ["serve", "--help"], ["grants", "create", "--help"]):
        shown = subprocess.run(
            [sys.executable, "-m", "headgate", *command], capture_output=True, text=True, check=True
        ).stdout
        assert not [word for word in WORDS if word in shown.casefold()]


def test_the_pages_are_for_the_hosts_people_use():
    assert [page.stem.removeprefix("connect-") for page in PAGES] == [
        *("chatgpt", "claude-code", "claude-desktop", "cursor", "stdio", "vs-code")
    ]
