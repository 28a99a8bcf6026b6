from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.commands import problems, texts_of_page, texts_of_source

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]


def test_every_command_that_the_program_names_exists():
    found = {str(file): problems(texts_of_source(file)) for file in SOURCES}
    assert {file: named for file, named in found.items() if named} == {}


def test_every_command_that_a_page_names_exists():
    found = {str(page): problems(texts_of_page(page)) for page in PAGES}
    assert {page: named for page, named in found.items() if named} == {}


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        ("Run: headgate link X", "headgate has no command link"),
        ("See 'headgate grants make --help'.", "headgate grants has no command make"),
        ("headgate --home ./home grants create --who agent", "headgate grants create has no option --who"),
        (".venv/bin/headgate --house ./home serve", "headgate has no option --house"),
        ("Pass it with --provider.", "--provider is no option"),
    ],
)
def test_a_planted_command_or_option_that_does_not_exist_is_found(planted: str, problem: str):
    assert problem in problems([planted])


def test_a_command_is_found_in_an_f_string_and_in_a_page(tmp_path: Path):
    source, page = tmp_path / "hint.py", tmp_path / "page.md"
    source.write_text('hint = f"Run: headgate link {url}"\n', encoding="utf-8")
    page.write_text("Use `headgate join`, or\n\n```sh\nheadgate \\\n  link\n```\n", encoding="utf-8")
    assert set(problems(texts_of_source(source))) == {"headgate has no command link"}
    assert set(problems(texts_of_page(page))) == {
        "headgate has no command join",
        "headgate has no command link",
    }
