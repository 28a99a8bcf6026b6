from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
ARCHITECTURE = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
CACHES = (ROOT / "docs" / "explanation" / "caches.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "headgate"


def packages_of_the_table() -> list[str]:
    return re.findall(r"^\| `(\w+)(?:\.py|/)` \| ", ARCHITECTURE.partition("## ")[0], re.MULTILINE)


def test_the_architecture_lists_every_package_and_no_other():
    packages = {
        path.stem for path in SOURCE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert set(packages_of_the_table()) == packages - {"__init__", "__main__"}


def test_the_architecture_and_the_layers_have_the_same_order():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    from_the_ground = [name for layer in reversed(layers) for name in reversed(layer.split(" : "))]
    assert packages_of_the_table() == from_the_ground


def named_files(page: str) -> list[str]:
    return re.findall(r"`(src/[^`]+|tests/[^`]+\.py)`", page)


def test_every_file_that_the_architecture_and_the_caches_name_exists():
    assert len(named_files(ARCHITECTURE)) > 20
    for name in (*named_files(ARCHITECTURE), *named_files(CACHES)):
        assert (ROOT / name).exists(), name


def test_every_promise_of_the_readme_names_a_test_that_exists():
    promises = (ROOT / "README.md").read_text(encoding="utf-8").partition("## What is guaranteed")[2]
    rows = re.findall(r"^\| .* \| (`tests/.*) \|$", promises.partition("\n## ")[0], re.MULTILINE)
    assert len(rows) >= 5
    for name in (name for row in rows for name in re.findall(r"`([^`]+)`", row)):
        assert (ROOT / name).exists(), name


def test_every_module_of_the_lives_of_a_request_exists():
    for name in re.findall(r"(?<!headgate/)\bweb/[\w/]+(?:\.py)?", ARCHITECTURE):
        assert (SOURCE / name).exists(), name
    for name in re.findall(r"^(\w+\.[\w.]+) ", ARCHITECTURE, re.MULTILINE):
        path = SOURCE / name.replace(".", "/")
        assert path.with_suffix(".py").exists() or path.is_dir(), name


def test_every_module_that_remembers_between_requests_is_on_the_page_of_caches():
    remembering = re.compile(
        r"^\s*@?(\w+ = )?(functools\.)?(lru_cache|cache)\b(?!.*import)|BoundedMemo\(|Memo\(", re.MULTILINE
    )
    named = named_files(CACHES)
    for module in SOURCE.rglob("*.py"):
        if remembering.search(module.read_text(encoding="utf-8")):
            place = module.relative_to(ROOT).as_posix()
            assert any(place == one or (one.endswith("/") and place.startswith(one)) for one in named), place


@pytest.mark.parametrize("script", ["reference.py", "packages.py"])
def test_generated_pages_are_up_to_date(script: str):
    outcome = subprocess.run(
        [sys.executable, ROOT / "tools" / script, "--check"], capture_output=True, text=True, check=False
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
    assert {page.resolve() for page in (ROOT / "docs").rglob("*.md")} - linked == set()


def test_the_changelog_speaks_of_this_version_or_of_what_comes_next():
    assert "## Unreleased" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(("title", "command"), [("Start", "make run\n"), ("Develop", "make test\n")])
def test_one_command_each_starts_and_tests_it(title: str, command: str):
    section = (ROOT / "README.md").read_text(encoding="utf-8").partition(f"## {title}\n")[2]
    first_block = re.search(r"```sh\n(.*?)```", section, re.DOTALL)
    assert first_block is not None
    assert first_block.group(1) == command
