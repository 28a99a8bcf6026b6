"""The page of docs/reference on the Python API: the public names of `headgate`, from their signatures and docstrings."""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator, Sequence
from enum import Enum
from typing import Any

import headgate

#: What the groups of the page are called, by the module that their names come from.
_GROUPS = {
    "Import MCP servers": ("headgate.mcp.client",),
    "Offer operations over MCP": ("headgate.mcp.gateway.server",),
    "Registries and operations": (
        "headgate.operations.registry",
        "headgate.operations.registration",
        "headgate.operations.spec",
        "headgate.operations.calling",
        "headgate.operations.content",
    ),
    "Access": ("headgate.operations.spec", "headgate.operations.secrets"),
    "Envelopes": ("headgate.operations.envelope",),
    "Errors": ("headgate.errors",),
}
#: Defaults that are shown as they are written.
_PLAIN = (bool, int, float, str, frozenset, tuple, type(None))
_LINE_CHARS = 90


def python_page() -> str:
    """Describe every public name, grouped by what it is for."""
    names = {**headgate._CORE, **headgate._MCP_EXTRA}  # noqa: SLF001 - the two tables of public names
    listed = {module for modules in _GROUPS.values() for module in modules}
    assert names.keys() == listed, names.keys() ^ listed
    lines = [
        "# Python API",
        "",
        "Import every name from `headgate`. Names under *Import MCP servers* and *Offer operations over MCP* need",
        "the extra `headgate[mcp]`; the others come with the bare package.",
        "[Import an MCP server](../tutorial/import-a-server.md) shows them at work, and the",
        "[glossary](glossary.md) has the words.",
        "",
    ]
    for title, modules in _GROUPS.items():
        lines += [f"## {title}", ""]
        for name in sorted((name for module in modules for name in names[module]), key=str.lower):
            lines += _section(name, getattr(headgate, name))
    return "\n".join(lines)


def _section(name: str, value: Any) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    if inspect.isclass(value):
        yield from _class_lines(name, value)
    elif callable(value):
        prefix = "async " if inspect.iscoroutinefunction(value) else ""
        yield from _code(f"{prefix}{name}{_signature(value)}")
        yield from _docstring(value)
    else:
        yield f"A constant of the type `{type(value).__name__}`: the JSON Schema of a list of MCP content blocks."
        yield ""


def _class_lines(name: str, value: type) -> Iterator[str]:
    if issubclass(value, Exception) or getattr(value, "_is_protocol", False):
        yield from _code(f"class {name}({value.__mro__[1].__name__})")
    elif not issubclass(value, Enum):
        yield from _code(f"{name}{_signature(value)}")
    yield from _docstring(value)
    yield from (_enum_members(value) if issubclass(value, Enum) else _members(value))
    methods = list(_methods(value))
    for method, one in methods:
        prefix = "async " if inspect.iscoroutinefunction(one) else ""
        text = inspect.getdoc(one) or ""
        first = " ".join(text.partition("\n\n")[0].split())
        shown = method if isinstance(one, property) else f"{prefix}{method}{_signature(one, is_method=True)}"
        yield f"- `{shown}`: {first.replace('``', '`')}"
    if methods:
        yield ""


def _methods(value: type) -> Iterator[tuple[str, Any]]:
    """Give the public methods and properties that the class itself writes."""
    for name, one in vars(value).items():
        plain = one.__func__ if isinstance(one, staticmethod | classmethod) else one
        if not name.startswith("_") and (inspect.isfunction(plain) or isinstance(plain, property)):
            yield name, plain if isinstance(plain, property) else getattr(value, name)


def _enum_members(value: type[Enum]) -> Iterator[str]:
    comments = dict(_members_of(value))
    for one in value:
        about = f": {comments[one.name]}" if comments.get(one.name) else ""
        yield f"- `{one.name}` (`{one.value!r}`){about}"
    yield ""


def _members(value: type) -> Iterator[str]:
    """List the members that have a comment above them."""
    rows = [(name, about) for name, about in _members_of(value) if about]
    if rows:
        yield "| member | meaning |"
        yield "|---|---|"
        yield from (
            f"| `{name}` | {about.replace('``', '`').replace('|', '&#124;')} |" for name, about in rows
        )
        yield ""


def _members_of(value: type) -> Iterator[tuple[str, str]]:
    source = textwrap.dedent(inspect.getsource(value))
    lines = source.splitlines()
    (tree,) = ast.parse(source).body
    assert isinstance(tree, ast.ClassDef)
    for node in tree.body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            target = node.targets[0]
        if isinstance(target, ast.Name) and not target.id.startswith("_"):
            yield target.id, _comment_above(lines, node.lineno - 1)


def _comment_above(lines: Sequence[str], index: int) -> str:
    found: list[str] = []
    while index > 0 and (text := lines[index - 1].strip()).startswith("#:"):
        found.insert(0, text.removeprefix("#:").strip())
        index -= 1
    return " ".join(found)


def _signature(value: Any, *, is_method: bool = False) -> str:
    """Write a signature; annotations are texts already, and objects as defaults have addresses that change."""
    signature = inspect.signature(value)
    parts: list[str] = []
    for one in signature.parameters.values():
        if is_method and one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not any(part.startswith("*") for part in parts):
            parts.append("*")
        parts.append(_parameter(one))
    answer = signature.return_annotation
    is_shown = answer is not signature.empty and not inspect.isclass(value)
    shown = f"({', '.join(parts)})" + (f" -> {_annotation(answer)}" if is_shown else "")
    return shown if is_method or len(shown) <= _LINE_CHARS else _in_lines(parts, shown)


def _parameter(one: inspect.Parameter) -> str:
    stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
    kind = "" if one.annotation is one.empty else f": {_annotation(one.annotation)}"
    if one.default is one.empty:
        return f"{stars}{one.name}{kind}"
    default = _plain(one.default)
    return f"{stars}{one.name}{kind} = {default}"


def _plain(default: Any) -> str:
    if isinstance(default, Enum):
        return f"{type(default).__name__}.{default.name}"
    return repr(default) if isinstance(default, _PLAIN) else "..."


def _annotation(value: Any) -> str:
    """Write an annotation without the modules of its names."""
    text = value if isinstance(value, str) else inspect.formatannotation(value)
    return re.sub(r"\b(?:headgate|typing|collections)\.(?:\w+\.)*", "", text)


def _in_lines(parts: Sequence[str], shown: str) -> str:
    """Put each parameter of a long signature on a line."""
    return "\n".join(["(", *(f"    {one}," for one in parts), f"){shown.rpartition(')')[2]}"])


def _code(text: str) -> Iterator[str]:
    yield "```python"
    yield text
    yield "```"
    yield ""


def _docstring(value: Any) -> Iterator[str]:
    text = inspect.getdoc(value) or ""
    for block in text.split("\n\n"):
        if block.startswith("Raises:"):
            yield "Raises:"
            yield ""
            for line in textwrap.dedent(block.partition("\n")[2]).splitlines():
                error, colon, about = line.partition(": ")
                yield f"- `{error}`: {about}" if colon and not line.startswith(" ") else f"  {line.strip()}"
        else:
            yield block.replace("``", "`")
        yield ""
