"""Put one server into the text of a configuration file, and change nothing else in it.

What cannot be changed without losing something is refused: the person then adds the entry by hand.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any, cast

from headgate.errors import ConfigInvalid

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_UNPRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


class Format(StrEnum):
    """How a configuration file is written."""

    JSON = "json"
    TOML = "toml"
    YAML = "yaml"


def with_entry(file_format: Format, text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in the text of a file."""
    return _WRITERS[file_format](text, servers, name, entry)


def snippet(file_format: Format, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Write a server as a person adds it to the file."""
    match file_format:
        case Format.TOML:
            return toml_table(servers, name, entry)
        case Format.YAML:
            return "\n".join([f"{servers}:", *_yaml_item(name, entry, "  ")])
        case Format.JSON:
            return json.dumps({servers: {name: entry}}, indent=2, ensure_ascii=False)


def with_json_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a JSON file."""
    document = _json_object(text)
    entries = document.setdefault(servers, {})
    if not isinstance(entries, dict):
        raise _not_understood(f"its '{servers}' is no object")
    entries[name] = dict(entry)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def with_toml_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a TOML file; comments and the order of everything else stay."""
    before = _toml_document(text)
    earlier: Any = before.get(servers, {})
    if not isinstance(earlier, dict):
        raise _not_understood(f"its '{servers}' is no table")
    rest = _without_table(text, f"{servers}.{name}").rstrip("\n")
    written = f"{rest}\n\n{toml_table(servers, name, entry)}".lstrip("\n")
    wanted: dict[str, Any] = {**before, servers: {**earlier, name: dict(entry)}}
    try:
        is_right = tomllib.loads(written) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _not_understood(f"it holds '{servers}' in an unusual form")
    return written


def toml_table(servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Write a server as a table of a TOML file."""
    return (
        "\n".join([f"[{servers}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())])
        + "\n"
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(item)}' for key, item in members)} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_toml(item) for item in cast('Sequence[Any]', value))}]"
    # A JSON string is a TOML string, but for one character that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _toml(key)


def _without_table(text: str, table: str) -> str:
    """Take out the lines of a table and of the tables inside it."""
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines(keepends=True):
        header = re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line)
        if header:
            is_inside = header[1] == table or header[1].startswith(f"{table}.")
        if not is_inside:
            lines.append(line)
    return "".join(lines)


def _json_object(text: str) -> dict[str, Any]:
    try:
        document: Any = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise _not_understood("it is no plain JSON") from error
    if not isinstance(document, dict):
        raise _not_understood("it is no JSON object")
    return cast("dict[str, Any]", document)


def _toml_document(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _not_understood("it is no TOML") from error


def _not_understood(why: str) -> ConfigInvalid:
    return ConfigInvalid(
        f"The configuration file was left as it is: {why}.",
        hint="Leave out --write, and add the printed entry by hand.",
    )


def with_yaml_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in the list of a YAML file; comments and everything else stay.

    Nothing here reads YAML as a whole: a file that is not written in plain blocks is refused.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    # Not splitlines: it also cuts at signs that stand in texts.
    lines = text.removesuffix(newline).split(newline) if text else []
    _refuse_unusual(lines)
    places = [number for number, line in enumerate(lines) if re.match(rf"{servers}\s*:", line)]
    if not places:
        return newline.join([*lines, f"{servers}:", *_yaml_item(name, entry, "  "), ""])
    if len(places) > 1 or not re.fullmatch(rf"{servers}:\s*(\[\s*\]\s*)?(#.*)?", lines[places[0]]):
        raise _not_understood(f"its '{servers}' is no plain list")
    start = places[0] + 1
    end = next(
        (number for number in range(start, len(lines)) if re.match(r"[^\s#-]", lines[number])), len(lines)
    )
    indent, items = _yaml_items(lines[start:end])
    others = [line for item in items if not _is_named(item, name) for line in item]
    head = re.sub(r"\[\s*\]", "", lines[places[0]]).rstrip()
    item = _yaml_item(name, entry, indent)
    return newline.join([*lines[: start - 1], head, *item, *others, *lines[end:], ""])


def _refuse_unusual(lines: Sequence[str]) -> None:
    """Refuse a file that is not one mapping in blocks, with a key at the beginning of its lines."""
    if any("\t" in line or re.match(r"(---|\.\.\.|%)", line) for line in lines):
        raise _not_understood("it has tabs, directives or several documents")
    if any(not re.match(r"(\s|#|$|- |-$|[A-Za-z_][\w-]*\s*:(\s|$))", line) for line in lines):
        raise _not_understood("it is no plain YAML in blocks")
    if next((line for line in lines if line.strip() and not line.startswith("#")), "x")[0] in " -":
        raise _not_understood("it does not begin with a key")


def _yaml_items(lines: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Cut the lines of a list into items; what precedes the first is an item without a name."""
    first = next((line for line in lines if re.match(r" *-(\s|$)", line)), "  -")
    indent = first[: first.index("-")]
    items: list[list[str]] = [[]]
    for line in lines:
        depth = len(line) - len(line.lstrip(" "))
        is_text = bool(line.strip()) and not line.lstrip().startswith("#")
        if is_text and depth < len(indent):
            raise _not_understood("a list in it is no plain list")
        if is_text and depth == len(indent):
            if not re.match(r" *-(\s|$)", line):
                raise _not_understood("a list in it is no plain list")
            items.append([])
        items[-1].append(line)
    return indent, items


def _is_named(item: Sequence[str], name: str) -> bool:
    """Return whether an item is the server of a name.

    Raises:
        ConfigInvalid: it may be, but its first member is not its name.
    """
    named = re.compile(rf"""\s*(-\s+)?["']?name["']?\s*:\s*["']?{re.escape(name)}["']?\s*(#.*)?""")
    if not any(named.fullmatch(line) for line in item) and not any(f"name: {name}" in line for line in item):
        return False
    if not named.fullmatch(item[0]):
        raise _not_understood(f"it holds '{name}' in an unusual form")
    return True


def _yaml_item(name: str, entry: Mapping[str, Any], indent: str) -> Iterator[str]:
    yield f"{indent}- name: {name}"
    # A JSON value is a YAML value, but for signs that YAML only takes escaped.
    for key, value in entry.items():
        text = _UNPRINTABLE.sub(lambda sign: f"\\u{ord(sign[0]):04x}", json.dumps(value, ensure_ascii=False))
        yield f"{indent}  {key}: {text}"


_WRITERS: Mapping[Format, Callable[[str, str, str, Mapping[str, Any]], str]] = {
    Format.JSON: with_json_entry,
    Format.TOML: with_toml_entry,
    Format.YAML: with_yaml_entry,
}
