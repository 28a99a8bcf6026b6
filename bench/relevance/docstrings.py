"""Documentation strings of the standard library and of the packages installed beside it: a question is the first sentence.

The files are parsed and not imported. A quarter of them, chosen by their path, has thousands of texts.
"""

from __future__ import annotations

import ast
import hashlib
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path

from bench.relevance.manuals import Section

NAME = "docstrings"
_MIN_TEXT_CHARS = 200
_FEWEST_WORDS, _MOST_WORDS = 5, 16
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])|_+")


def docstrings() -> list[Section]:
    """Read what has a first sentence and enough text after it; one of those that begin alike."""
    found: dict[str, Section] = {}
    for kind in ("stdlib", "purelib"):
        root = Path(sysconfig.get_path(kind))
        for path in sorted(root.rglob("*.py")):
            place = path.relative_to(root)
            if _is_chosen(place):
                for section in _sections_of(path, place.as_posix()):
                    found.setdefault(section.text[:_MIN_TEXT_CHARS], section)
    return list({section.anchor: section for section in found.values()}.values())


def _is_chosen(place: Path) -> bool:
    if "site-packages" in place.parts or any("test" in part for part in place.parts):
        return False
    return hashlib.sha256(place.as_posix().encode()).digest()[0] < 64


def _sections_of(path: Path, place: str) -> Iterator[Section]:
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(path.read_text(encoding="utf-8", errors="ignore"))
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
            question = " ".join(first.split())
            if _FEWEST_WORDS <= len(question.split()) <= _MOST_WORDS and len(rest.strip()) >= _MIN_TEXT_CHARS:
                heading = " ".join(_HUMP.sub(" ", f"{path.stem} {node.name}").split())
                yield Section(f"{place}:{node.name}", question, None, rest.strip(), heading)
