from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
MAP = (ROOT / "docs" / "explanation" / "map.md").read_text(encoding="utf-8")


def packages_on_the_map() -> list[str]:
    return re.findall(r"^\| `(\w+)(?:\.py|/)` \| ", MAP.partition("## ")[0], re.MULTILINE)


def test_the_map_shows_every_package_and_no_other():
    package = ROOT / "src" / "headgate"
    packages = {
        path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(packages_on_the_map()) == packages - {"__init__", "__main__"}


def test_the_map_and_the_layers_have_the_same_order():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    from_the_ground = [name for layer in reversed(layers) for name in reversed(layer.split(" : "))]
    assert packages_on_the_map() == from_the_ground


def test_generated_pages_are_up_to_date():
    outcome = subprocess.run(
        [sys.executable, ROOT / "tools" / "reference.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


def test_every_link_between_pages_leads_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
            assert "://" in target or (page.parent / target).exists(), f"{page}: {target}"


def test_every_page_is_reached_from_the_index_or_the_readme():
    linked = set()
    for entry in (ROOT / "README.md", ROOT / "docs" / "index.md"):
        for target in re.findall(r"\]\(([^)#]+)\)", entry.read_text(encoding="utf-8")):
            linked.add((entry.parent / target).resolve())
    assert {page.resolve() for page in (ROOT / "docs").rglob("*.md")} - linked == {
        (ROOT / "docs" / "index.md").resolve()
    }


def test_the_changelog_speaks_of_this_version_or_of_what_comes_next():
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_start_of_the_readme_is_two_commands():
    start = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Start")[2]
    first_block = re.search(r"```sh\n(.*?)```", start, re.DOTALL)
    assert first_block is not None
    assert first_block.group(1) == "make run\nmake test\n"
