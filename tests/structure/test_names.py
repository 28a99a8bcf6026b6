from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SRC = Path(__file__).parents[2] / "src"


def double_names(files: Iterable[Path]) -> dict[str, list[str]]:
    """Give each class name that is defined more than once, with its places."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{file.name}:{node.lineno}")
    return {name: found for name, found in places.items() if len(found) > 1}


def test_no_class_name_is_defined_twice():
    assert double_names(SRC.rglob("*.py")) == {}


def test_a_planted_second_definition_is_found(tmp_path: Path):
    (tmp_path / "one.py").write_text("class _Row:\n    pass\n", encoding="utf-8")
    (tmp_path / "two.py").write_text("def f():\n    class _Row:\n        pass\n", encoding="utf-8")
    assert double_names(sorted(tmp_path.glob("*.py"))) == {"_Row": ["one.py:1", "two.py:2"]}
