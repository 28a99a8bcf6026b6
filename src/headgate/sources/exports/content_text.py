"""Content lines, the syntax that calendars and contacts share, as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LINE_BYTES = 74
_SPECIAL = re.compile(r"[\\,;]")


def line(name: str, value: str) -> str:
    """Write a property; the name may have parameters. Nothing but its end can end the line."""
    return f"{name}:{' '.join(value.splitlines())}"


def escaped(text: object) -> str:
    """Escape what would separate values or lines."""
    value = _SPECIAL.sub(lambda match: f"\\{match.group()}", str(text))
    return "\\n".join(value.splitlines()) if value else ""


def texts(name: str, values: Iterable[object]) -> list[str]:
    """Write a property once for each text that is there."""
    return [line(name, escaped(value)) for value in values if value not in (None, "")]


def parameter(text: str) -> str:
    """Write the value of a parameter in quotes, which it cannot end."""
    return '"' + "".join("'" if one == '"' else one for one in text if one.isprintable()) + '"'


def component(kind: str, lines: Iterable[str]) -> bytes:
    """Put lines between a beginning and an end, folded."""
    return b"".join(_folded(one) for one in (f"BEGIN:{kind}", *lines, f"END:{kind}"))


def _folded(text: str) -> bytes:
    content = text.encode()
    if len(content) <= _LINE_BYTES:
        return content + b"\r\n"
    # The reader joins bytes, but other programs want whole characters.
    pieces, piece = list[str](), ""
    size = 0
    for one in text:
        width = len(one.encode())
        if size + width > _LINE_BYTES:
            pieces.append(piece)
            piece, size = "", 1
        piece += one
        size += width
    return "\r\n ".join([*pieces, piece]).encode() + b"\r\n"
