"""The page on writing a source: its example is found by its entry point, and imports."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.on_socket import environment, headgate

SOURCE_PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "write-a-source.md").read_text(
    encoding="utf-8"
)


def block(page: str, kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found, kind
    return found.group(1)


@pytest.fixture
def reading_list(tmp_path: Path) -> dict[str, str]:
    """Install the page's source beside its entry point, as a package does."""
    package = tmp_path / "packages"
    (package / "reading_list-1.dist-info").mkdir(parents=True)
    (package / "reading_list.py").write_text(block(SOURCE_PAGE, "python"), encoding="utf-8")
    entry = block(SOURCE_PAGE, "toml").replace(
        '[project.entry-points."headgate.sources"]', "[headgate.sources]"
    )
    info = package / "reading_list-1.dist-info"
    (info / "entry_points.txt").write_text(entry.replace('"', ""), encoding="utf-8")
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: reading-list\nVersion: 1\n", encoding="utf-8"
    )
    return {"PYTHONPATH": str(package)}


def test_the_example_of_a_source_is_short_and_is_found_by_its_entry_point(tmp_path: Path, reading_list):
    assert len([line for line in block(SOURCE_PAGE, "python").splitlines() if line]) < 60
    (tmp_path / "my.books").write_text(
        "2026-03-01 | Emma | Jane Austen\nnothing\n2026-03-01 | Emma | Jane Austen\n", encoding="utf-8"
    )
    for added, known in ((2, 0), (0, 2)):
        done = headgate(tmp_path, "--home", "home", "import", "my.books", "--json", **reading_list)
        assert done.code == 65, done.err
        (report,) = json.loads(done.out)["imports"]
        assert report["streams"] == {"books": {"accepted": 2, "added": added, "removed": 0, "known": known}}
        assert report["rejects"] == [{"place": "my.books line 2", "reason": "It has no three parts."}]


def test_a_name_that_is_built_in_cannot_be_taken(tmp_path: Path, reading_list):
    module = Path(reading_list["PYTHONPATH"]) / "reading_list.py"
    text = module.read_text(encoding="utf-8").replace('name = "reading-list"', 'name = "tables"')
    module.write_text(text, encoding="utf-8")
    code = "from headgate.sources.registry import sources; print(sources()['tables'].title)"
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path, reading_list),
        capture_output=True,
        text=True,
        check=True,
    )
    assert printed.stdout == "Tables\n"
