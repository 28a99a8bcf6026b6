"""The pages on importing money, notes and histories: their commands work, and the second time adds nothing."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.on_socket import headgate
from tests.sources.documents.made import docx, pdf
from tests.sources.git.repositories import canal
from tests.sources.history import exports
from tests.sources.money.test_money import CAMT, GERMAN, SGML
from tests.sources.notes.test_notes import MARKDOWN

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
#: With a part that is rejected, which the pages speak of.
REJECTED = 65
FILES = {
    "statements": {"a.ofx": SGML, "b.xml": CAMT, "c.csv": GERMAN.encode()},
    "notes": {"bridge.md": MARKDOWN.encode(), "gate.pdf": pdf(b"The lock is closed."), "report.docx": docx()},
    "export": exports.FILES,
}


def commands(page: str) -> list[list[str]]:
    text = (HOW_TO / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [shlex.split(line) for block in blocks for line in block.splitlines()]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder, files in FILES.items():
        for name, content in files.items():
            path = tmp_path / folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    canal(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("page", "connectors"),
    [
        ("import-money.md", {"money"}),
        ("import-notes.md", {"notes", "documents"}),
        (
            "import-history.md",
            {f"history-{kind}" for kind in ("browser", "spotify", "youtube", "location", "health")} | {"git"},
        ),
    ],
)
def test_the_commands_of_a_page_work_and_add_nothing_the_second_time(
    place: Path, page: str, connectors: set[str]
):
    seen: set[str] = set()
    for program, *words in commands(page):
        assert program == "headgate"
        first = headgate(place, "--home", "home", *words)
        assert first.code in {0, REJECTED}, first.err
        again = headgate(place, "--home", "home", *words, "--json")
        if "--dry-run" in words:
            continue
        for report in json.loads(again.out)["imports"]:
            seen.add(report["connector_key"])
            assert all(one["accepted"] and not one["added"] for one in report["streams"].values()), report
    assert seen == connectors


@pytest.mark.parametrize("page", sorted(HOW_TO.glob("import*.md")), ids=lambda page: page.stem)
def test_every_page_on_importing_says_which_records_are_the_same(page: Path):
    headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    wanted = re.compile(r"Which (record|records|lines)\b|The same file again")
    assert any(wanted.match(heading) for heading in headings), headings
