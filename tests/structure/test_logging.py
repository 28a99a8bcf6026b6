from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from headgate.telemetry import LOGGABLE

SRC = Path(__file__).parents[2] / "src"
EVENTS = {"critical", "debug", "error", "exception", "info", "warning"}
CALLS = EVENTS | {"bind", "bound_contextvars", "bind_contextvars"}
#: Consumed before the line is written: they become the line's exception.
CONSUMED = {"exc_info", "stack_info"}
SNAKE_CASE = re.compile(r"[a-z]+(_[a-z0-9]+)*")
#: What may use the standard library's loggers: the one module that writes lines, and one that silences a library.
OF_LOGGING = {"telemetry.py", "pdf.py"}


def logging_calls(file: Path) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CALLS:
            yield node, node.func.attr


def withheld_names(files: Iterable[Path]) -> Iterator[str]:
    """Give each keyword of a logging call whose value would not reach the log line."""
    for file in files:
        for node, _ in logging_calls(file):
            for keyword in node.keywords:
                if keyword.arg not in LOGGABLE | CONSUMED:
                    yield f"{file.name}:{node.lineno} {keyword.arg}"


def misnamed_events(files: Iterable[Path]) -> Iterator[str]:
    """Give each event that is not named in snake_case, and each use of another kind of logger."""
    for file in files:
        if "import logging" in file.read_text(encoding="utf-8") and file.name not in OF_LOGGING:
            yield f"{file.name} imports logging"
        for node, name in logging_calls(file):
            receiver = ast.unparse(node.func).removesuffix(f".{name}")
            if name not in EVENTS or not (receiver == "log" or receiver.startswith("get_logger()")):
                continue
            event = node.args[0]
            if not (isinstance(event, ast.Constant) and SNAKE_CASE.fullmatch(str(event.value))):
                yield f"{file.name}:{node.lineno} {ast.unparse(event)}"


def test_every_name_that_is_logged_may_be_logged():
    assert list(withheld_names(SRC.rglob("*.py"))) == []


def test_every_event_has_a_name_in_snake_case_and_one_logger_writes_them_all():
    assert list(misnamed_events(SRC.rglob("*.py"))) == []


def test_a_planted_name_that_would_be_withheld_is_found(tmp_path: Path):
    planted = tmp_path / "planted.py"
    planted.write_text(
        "get_logger().warning('left out', server=name, why=text)\nlog.bind(**more).info('x', exc_info=True)\n",
        encoding="utf-8",
    )
    assert list(withheld_names([planted])) == ["planted.py:1 why", "planted.py:2 None"]
    assert list(misnamed_events([planted])) == ["planted.py:1 'left out'"]


def test_a_planted_sentence_and_a_planted_logger_are_found(tmp_path: Path):
    planted = tmp_path / "planted.py"
    planted.write_text(
        "import logging\nlog.info(f'{name} failed')\nlog.error('read_failed')\n", encoding="utf-8"
    )
    assert list(misnamed_events([planted])) == ["planted.py imports logging", "planted.py:2 f'{name} failed'"]
