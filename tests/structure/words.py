"""The words that this project does not use, and where they still stand.

Each has an ordinary technical word in its place; CONTRIBUTING.md lists the pairs. In Python the names, comments
and docstrings are read; other strings are not, because they are what users see.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Class names that pictured the program as a building.
_CLASSES = re.compile(
    r"\b_?(House|Door|Doorkeeper|Doorstep|Desk|Rooms|Visit|Visitor|Asking|Lane|Head|Patient\w*)\b"
)
#: No name may be one of these.
_NAMES = frozenset({"asking", "care", "desk", "kept", "sound", "upkeep"})
#: No name may have one of these among its words.
_NAME_WORDS = frozenset({"anybody", "heard", "nobody", "said", "told", "whoever"})
_PROSE = re.compile(
    r"\b(told|said|whoever|nobody|anybody|of (?:its|their|his) own|(?:the|this|our) house|doorway|(?:is|are) good for|gives? whether)\b",
    re.IGNORECASE,
)
#: What help and messages do not say either.
_IN_HELP = re.compile(
    rf"{_PROSE.pattern}|\b(so many|speaks? for|look after|taken in|the very)\b", re.IGNORECASE
)
_CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)


def struck_words(file: Path) -> Iterator[str]:
    """Give every struck word of a file, with its line."""
    if file.stem in _NAMES:
        yield f"{file}: its name"
    text = file.read_text(encoding="utf-8")
    found = _in_python(text) if file.suffix == ".py" else _in_prose(text)
    yield from (f"{file}:{line} {word}" for line, word in found)


def struck_words_of_help(text: str) -> list[str]:
    """Give every word of a help text that has an ordinary one in its place."""
    return [match.group() for match in _IN_HELP.finditer(text)]


def _in_python(text: str) -> Iterator[tuple[int, str]]:
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        line = token.start[0]
        if token.type == tokenize.NAME:
            yield from ((line, word) for word in _in_name(token.string))
        elif token.type == tokenize.COMMENT:
            yield from ((line, match.group()) for match in _PROSE.finditer(token.string))
    for line, docstring in _docstrings(ast.parse(text)):
        yield from ((line, word) for _, word in _in_prose(docstring))


def _in_name(name: str) -> Iterable[str]:
    bare = name.strip("_")
    is_struck = bare in _NAMES or _CLASSES.fullmatch(name) or _NAME_WORDS & set(bare.lower().split("_"))
    return [name] if is_struck else []


def _in_prose(text: str) -> Iterator[tuple[int, str]]:
    plain = _CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for match in _PROSE.finditer(plain):
        yield plain.count("\n", 0, match.start()) + 1, match.group()


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found = ast.get_docstring(node, clean=False)
            if found is not None:
                yield node.body[0].lineno, found
