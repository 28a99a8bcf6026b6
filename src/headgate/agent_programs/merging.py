"""Put one entry into the text of a configuration file; everything else in it stays as it is."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from headgate.errors import ConfigInvalid

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def with_json_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a JSON file."""
    document = _json_object(text)
    found = document.setdefault(servers, {})
    if not isinstance(found, dict):
        raise _not_understood(f"its '{servers}' is no object")
    found[name] = dict(entry)
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def with_toml_entry(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Add or replace a server in a TOML file; comments and the order of everything else stay."""
    before = _toml_document(text)
    earlier: Any = before.get(servers, {})
    if not isinstance(earlier, dict):
        raise _not_understood(f"its '{servers}' is no table")
    rest = _without_table(text, f"{servers}.{name}").rstrip("\n")
    made = f"{rest}\n\n{toml_table(servers, name, entry)}".lstrip("\n")
    wanted: dict[str, Any] = {**before, servers: {**earlier, name: dict(entry)}}
    try:
        is_right = tomllib.loads(made) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise _not_understood(f"it holds '{servers}' in an unusual form")
    return made


def toml_table(servers: str, name: str, entry: Mapping[str, Any]) -> str:
    """Write a server as a table of a TOML file."""
    return (
        "\n".join([f"[{servers}.{name}]", *(f"{key} = {_toml(value)}" for key, value in entry.items())])
        + "\n"
    )


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value).items()
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(one)}' for key, one in members)} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_toml(one) for one in cast('Sequence[Any]', value))}]"
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
