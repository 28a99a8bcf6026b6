from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from headgate.telemetry import LOGGABLE

SRC = Path(__file__).parents[2] / "src"
CALLS = {
    "bind",
    "bound_contextvars",
    "bind_contextvars",
    "critical",
    "debug",
    "error",
    "exception",
    "info",
    "warning",
}
#: Consumed before the line is written: they become the line's exception.
CONSUMED = {"exc_info", "stack_info"}


def withheld_names(files: Iterable[Path]) -> Iterator[str]:
    """Give each keyword of a logging call whose value would not reach the log line."""
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CALLS
            ):
                for keyword in node.keywords:
                    if keyword.arg not in LOGGABLE | CONSUMED:
                        yield f"{file.name}:{node.lineno} {keyword.arg}"


def test_every_name_that_is_logged_may_be_logged():
    assert list(withheld_names(SRC.rglob("*.py"))) == []


def test_a_planted_name_that_would_be_withheld_is_found(tmp_path: Path):
    planted = tmp_path / "planted.py"
    planted.write_text(
        "get_logger().warning('left out', server=name, why=text)\nlog.bind(**more).info('x', exc_info=True)\n",
        encoding="utf-8",
    )
    assert list(withheld_names([planted])) == ["planted.py:1 why", "planted.py:2 None"]
