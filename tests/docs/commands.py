"""Find the `headgate` commands and options that texts name, and check them against the real command tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from typer.main import get_command

from headgate.cli.main import app

#: Options of other programs that our pages show: claude, codex, gemini, the MCP inspector, curl, pip.
FOREIGN_OPTIONS = {
    *(
        "--transport",
        "--header",
        "--cli",
        "--server-url",
        "--method",
        "--data-binary",
        "--no-build-isolation",
    ),
    "--editable",
    "--env",
}
_NAMED = re.compile(r"(?<![\w@/.\"-])(?:\.venv/bin/)?headgate +((?:[^\s'\"`,;]+ *)+)")
_OPTION = re.compile(r"(?<![\w(-])--[a-z][a-z-]+\b(?![:-])")
_FOREIGN_COMMAND = re.compile(
    r"\b(?:age|claude mcp add|code --add-mcp|codex mcp add|docker compose|gemini mcp add|journalctl|systemctl|uv tool|uvx|git log|npx|curl|pip install|python -m bench)\b.*"
)
_PLACEHOLDER = "X"
_ROOT = get_command(app)


def texts_of_source(file: Path) -> Iterator[str]:
    """Give every string of a module; what is filled in later stands as a placeholder."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else _PLACEHOLDER for part in node.values
            )


def texts_of_page(file: Path) -> Iterator[str]:
    """Give the code of a page: its fenced shell blocks and its code spans, a continued line as one."""
    text = file.read_text(encoding="utf-8").replace("\\\n", " ")
    yield from (
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        for line in block.split("\n")
    )
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))


def problems(texts: Iterable[str]) -> list[str]:
    """Say which named commands and options do not exist."""
    known = {*FOREIGN_OPTIONS, "--help", *(name for one in _tree(_ROOT) for name in _options(one))}
    found: list[str] = []
    for text in texts:
        ours = _FOREIGN_COMMAND.sub("", text)
        found += [f"{option} is no option" for option in _OPTION.findall(ours) if option not in known]
        for match in _NAMED.finditer(ours):
            found += _command_problems(_ROOT, match.group(1).rstrip(". )").split())
    return found


def _command_problems(command: Any, words: list[str]) -> Iterator[str]:
    path = "headgate"
    options = {"--help", *_options(command)}
    while words:
        word = words.pop(0)
        children: dict[str, Any] = getattr(command, "commands", {})
        if word.startswith("--"):
            if word not in options:
                yield f"{path} has no option {word}"
            if not _is_flag(command, word) and words:
                words.pop(0)
        elif children:
            if word[0].isupper():  # A placeholder, not a command.
                return
            if word not in children:
                yield f"{path} has no command {word}"
                return
            command, path = children[word], f"{path} {word}"
            options |= set(_options(command))


def _tree(command: Any) -> Iterator[Any]:
    yield command
    for child in getattr(command, "commands", {}).values():
        yield from _tree(child)


def _options(command: Any) -> Iterator[str]:
    for parameter in command.params:
        yield from (name for name in parameter.opts if name.startswith("--"))


def _is_flag(command: Any, option: str) -> bool:
    return (
        any(option in one.opts and getattr(one, "is_flag", False) for one in command.params)
        or option == "--help"
    )
