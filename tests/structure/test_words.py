from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.structure.words import struck_words

ROOT = Path(__file__).parents[2]
READ = ("src", "tests", "docs", "tools", "bench", "examples")
#: Written by tools/reference.py from texts that the program shows.
GENERATED = tuple(f"docs/reference/{name}.md" for name in ("cli", "errors", "rest", "settings"))


def files() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    for folder in READ:
        yield from (file for file in (ROOT / folder).rglob("*") if file.suffix in {".py", ".md", ".sql"})


def is_read(file: Path) -> bool:
    place = file.relative_to(ROOT).as_posix()
    is_the_list = place.startswith("tests/structure/") and "words" in place
    return not is_the_list and place not in GENERATED


def test_no_struck_word_is_used():
    assert [word for file in files() if is_read(file) for word in struck_words(file)] == []


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("x.py", "class Door:\n    pass\n", ":1 Door"),
        ("x.py", "from headgate.web.guard import Visit\n", ":1 Visit"),
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
