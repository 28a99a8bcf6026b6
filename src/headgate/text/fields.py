"""The fields of a record for a reader, each as a line "name: value".

A line cannot pass for another: names that are no plain words are quoted, the lines that a text goes on in are indented,
and what could be mistaken for something else is quoted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from headgate.text.writing import block, json_text, line, name

_INDENT = "\n  "
#: Deeper values are written as JSON.
_DEPTH = 8
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
#: What a text in a list or an object must not hold without quotes.
_SIGNS = re.compile(r"[,\[\]{}\"\n]|: |:$")
_ADDRESSES = ("address", "email")
_PERSON = frozenset({"name", *_ADDRESSES})


def field_line(path: str, value: Any) -> str:
    """Write a field as a line; a text of several lines goes on in indented ones."""
    return f"{name(path)}: {_text(value) if isinstance(value, str) else _listed(value)}"


def _text(text: str) -> str:
    begin = text.strip()
    is_bare = begin and not begin.startswith(('"', "[", "{")) and not _NUMBER.fullmatch(begin)
    return text.replace("\n", _INDENT) if is_bare and block(text) == text else json_text(text)


def _listed(value: Any) -> str:
    if not isinstance(value, list) or not value:
        return _part(value, 0)
    return ", ".join([_part(item, 1) for item in cast("list[Any]", value)])


def _part(value: Any, depth: int) -> str:
    """Write a value in one line: people by their names, lists in brackets, objects in braces."""
    if isinstance(value, str):
        return value if _is_bare(value) else json_text(value)
    if depth > _DEPTH or not isinstance(value, list | dict):
        return json_text(value)
    if isinstance(value, list):
        return f"[{', '.join([_part(item, depth + 1) for item in cast('list[Any]', value)])}]"
    members = cast("Mapping[str, Any]", value)
    return _person(members) or _members(members, depth)


def _members(members: Mapping[str, Any], depth: int) -> str:
    written = [f"{name(key)}: {_part(member, depth + 1)}" for key, member in members.items()]
    return f"{{{', '.join(written)}}}"


def _person(members: Mapping[str, Any]) -> str | None:
    """Write a person as mail does: "Ann Bell <ann@example.org>"; None for what is no person, or no plain one."""
    named, *addresses = members.get("name"), *(members[key] for key in _ADDRESSES if key in members)
    texts = [text for text in (named, *addresses) if isinstance(text, str) and _is_bare(text)]
    if not texts or len(addresses) > 1 or not members.keys() <= _PERSON or "<" in "".join(texts):
        return None
    if len(texts) < len(members):
        return None
    return texts[0] if len(texts) == 1 else f"{texts[0]} <{texts[1]}>"


def _is_bare(text: str) -> bool:
    is_plain = text.strip() == text and line(text) == text and not _SIGNS.search(text)
    return bool(text) and is_plain and not _NUMBER.fullmatch(text)
