"""How large modules and functions are, counted in lines that are not blank."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median, quantiles

MODULE_MOST = 500
FUNCTION_MOST = 60
FUNCTION_MEDIAN = 10
FUNCTION_NINE_IN_TEN = 35
BANNED_NAMES = {"utils", "helpers", "common", "base", "manager", "misc", "data", "info", "helper", "util"}


def size_problems(files: Iterable[Path]) -> list[str]:
    """Say which modules and functions are too large or badly named."""
    found: list[str] = []
    sizes: list[int] = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        lines = text.splitlines()
        if _written(lines) > MODULE_MOST:
            found.append(f"{file} has {_written(lines)} lines; at most {MODULE_MOST}")
        if file.stem in BANNED_NAMES:
            found.append(f"{file} has a name that says nothing")
        for name, size in _functions(text, lines):
            sizes.append(size)
            if size > FUNCTION_MOST:
                found.append(f"{file}: {name} has {size} lines; at most {FUNCTION_MOST}")
    return found + _spread_problems(sizes)


def _spread_problems(sizes: list[int]) -> Iterator[str] | list[str]:
    if len(sizes) < 2:
        return []
    found = []
    if median(sizes) > FUNCTION_MEDIAN:
        found.append(f"the median function has {median(sizes)} lines; at most {FUNCTION_MEDIAN}")
    if quantiles(sizes, n=10)[-1] > FUNCTION_NINE_IN_TEN:
        found.append(f"one function in ten has over {FUNCTION_NINE_IN_TEN} lines")
    return found


def _functions(text: str, lines: list[str]) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno is not None
            yield node.name, _written(lines[node.lineno - 1 : node.end_lineno])


def _written(lines: list[str]) -> int:
    return sum(1 for line in lines if line.strip())


def code_lines(files: Iterable[Path]) -> int:
    """Count lines that hold code: no blank ones, no comments, no docstrings; imports are code."""
    return sum(len(_code_lines(file.read_text(encoding="utf-8"))) for file in files)


_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def _code_lines(text: str) -> set[int]:
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body and ast.get_docstring(node) is not None else None
            if first is not None and first.end_lineno is not None:
                found -= set(range(first.lineno, first.end_lineno + 1))
    return found
