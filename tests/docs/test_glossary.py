from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
ROW = re.compile(r"^\| ([a-z_ ]+) \| (.+) \|$", re.MULTILINE)


def terms() -> list[str]:
    return [term for term, _ in ROW.findall(GLOSSARY.read_text(encoding="utf-8")) if term != "term"]


def unused(words: list[str], files: list[Path]) -> list[str]:
    texts = "\n".join(file.read_text(encoding="utf-8") for file in files).lower().replace("_", " ")
    return [word for word in words if not re.search(rf"\b{word.replace('_', ' ')}s?\b", texts)]


def used_in() -> list[Path]:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page != GLOSSARY]
    return [*pages, *(ROOT / "src").rglob("*.py")]


def test_every_term_of_the_glossary_is_used():
    assert unused(terms(), used_in()) == []


def test_the_glossary_is_sorted_and_names_no_term_twice():
    assert terms() == sorted(set(terms()))
    assert len(terms()) >= 40


def test_a_planted_term_that_is_not_used_is_found(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("Streams have a connector_key.\n", encoding="utf-8")
    assert unused(["stream", "connector_key", "shelf"], [page]) == ["shelf"]
