from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.words import struck_words, struck_words_of_help

ROOT = Path(__file__).parents[2]
READ = ("src", "tests", "docs", "tools", "bench", "examples")


def files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in READ:
        yield from (file for file in (ROOT / folder).rglob("*") if file.suffix in {".py", ".md", ".sql"})


def is_read(file: Path) -> bool:
    place = file.relative_to(ROOT).as_posix()
    return not (place.startswith("tests/structure/") and "words" in place)


def test_no_struck_word_is_used():
    assert [word for file in files() if is_read(file) for word in struck_words(file)] == []


def test_the_help_of_no_command_has_a_struck_word():
    """The page of commands is generated, so that it has the help of each."""
    assert struck_words_of_help((ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")) == []
    assert struck_words_of_help("Look after the keys, for whoever asks.") == ["Look after", "whoever"]


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("x.py", "class Door:\n    pass\n", ":1 Door"),
        ("x.py", "from headgate.web.admission import Visit\n", ":1 Visit"),
        ("x.py", "def f(self):\n    return self._kept\n", ":2 _kept"),
        ("x.py", "def test_a_failure_is_told():\n    pass\n", ":1 test_a_failure_is_told"),
        ("x.py", "x = 1  # for whoever wants it\n", ":1 whoever"),
        ("x.py", '"""Give whether it holds."""\n', ":1 Give whether"),
        ("x.md", "One\n\nIt has a task of its own.\n", ":3 of its own"),
        ("x.sql", "-- what a cursor is good for\n", ":1 is good for"),
        ("upkeep.py", "", ": its name"),
    ],
)
def test_a_planted_struck_word_is_found(tmp_path: Path, name: str, content: str, word: str):
    planted = tmp_path / name
    planted.write_text(content, encoding="utf-8")
    assert list(struck_words(planted)) == [f"{planted}{word}"]


def test_what_users_see_and_code_in_a_page_are_not_read(tmp_path: Path):
    (tmp_path / "x.py").write_text('print("Nobody has read it.")\n', encoding="utf-8")
    (tmp_path / "x.md").write_text("Say `nobody`:\n\n```sh\necho told\n```\n", encoding="utf-8")
    assert [*struck_words(tmp_path / "x.py"), *struck_words(tmp_path / "x.md")] == []
