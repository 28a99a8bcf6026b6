"""Content lines, the syntax that calendars (RFC 5545) and contacts (RFC 6350, 2426, vCard 2.1) share.

A file is a sequence of components, ``BEGIN:X`` to ``END:X``. Lines are folded; this module unfolds them as bytes,
because a fold may stand inside a character.
"""

from __future__ import annotations

import quopri
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO

from headgate.sources.formats.texts import byte_lines
from headgate.sources.formats.values import clean, decoded

MAX_COMPONENT_BYTES = 16 * 1024 * 1024
MAX_COMPONENT_LINES = 20_000
_PARAMETER_CHARS = 200
#: A card may begin and end with the name of a group: ``home.BEGIN:VCARD`` (RFC 2426).
_DELIMITER = re.compile(rb"\s*(?:[A-Za-z0-9-]{1,40}\.)?(BEGIN|END)\s*:(.*)", re.IGNORECASE | re.DOTALL)
#: A line without parameters, as most are.
_PLAIN = re.compile(r"([A-Za-z0-9_-]+):")
_NAME = re.compile(r"(?:([A-Za-z0-9_-]+)\.)?([A-Za-z0-9_-]+)")
_PARAMETER = re.compile(r';\s*([A-Za-z0-9_-]+)(?:=((?:"[^"]*"|[^";:,]*)(?:,(?:"[^"]*"|[^";:,]*))*))?')
_PARAMETER_VALUE = re.compile(r'"([^"]*)"|([^",]+)')
_CARET = {"^n": "\n", "^'": '"', "^^": "^"}
#: Some programs write a line break as two.
_ESCAPED = re.compile(r"\\(r\\n|.)", re.DOTALL)
# Both match at every place, so that a hostile value cannot make them try again.
_PART = re.compile(r"((?:[^;\\]+|\\.?)*)(;|\Z)", re.DOTALL)
_ITEM = re.compile(r"((?:[^,\\]+|\\.?)*)(,|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ContentLine:
    """One property: its name and parameters in capitals, and its value as it stands."""

    name: str
    parameters: Mapping[str, Sequence[str]]
    value: str
    #: By which lines belong together, as in ``item1.TEL``; empty for most.
    group: str = ""

    def parameter(self, name: str) -> str | None:
        return next(iter(self.parameters.get(name, ())), None)

    @property
    def text(self) -> str:
        return unescaped(self.value).strip()

    @property
    def parts(self) -> list[str]:
        """The value of a property that has several, separated by ``;``."""
        return [unescaped(part).strip() for part in _split(_PART, self.value)]

    @property
    def items(self) -> list[str]:
        """The value of a property that is a list, separated by ``,``."""
        return [unescaped(item).strip() for item in _split(_ITEM, self.value)]


@dataclass(frozen=True, slots=True)
class Component:
    """The lines between a beginning and its end, those of components inside it among them."""

    #: Its name in capitals; empty for the lines outside of the wanted components.
    kind: str
    #: Counted from 1, among the wanted ones.
    number: int
    lines: Sequence[str]
    #: Why it cannot be read.
    problem: str | None = None


def components(content: IO[bytes], kinds: frozenset[str]) -> Iterator[Component]:
    """Yield the components of these kinds, and each line outside of them as a component without a kind."""
    kind, number, size, collected = "", 0, 0, list[str]()
    for raw in _unfolded(content):
        mark, name = _delimiter(raw)
        if mark == b"BEGIN" and name in kinds:
            if kind:
                yield Component(kind, number, (), "It has no end.")
            kind, number, size, collected = name, number + 1, 0, []
        elif kind and mark == b"END" and name == kind:
            yield Component(kind, number, collected, _excess(size, len(collected)))
            kind, collected = "", []
        elif kind:
            size += len(raw)
            if _excess(size, len(collected)) is None:
                collected.append(decoded(raw))
        elif raw:
            yield Component("", 0, (decoded(raw[: 2 * _PARAMETER_CHARS]),))
    if kind:
        yield Component(kind, number, (), "It has no end.")


def content_line(text: str) -> ContentLine | None:
    """Read one line; None if it is none."""
    if (plain := _PLAIN.match(text)) is not None:
        return ContentLine(plain.group(1).upper(), {}, text[plain.end() :])
    name = _NAME.match(text)
    if name is None:
        return None
    parameters: dict[str, list[str]] = {}
    at = name.end()
    while (parameter := _PARAMETER.match(text, at)) is not None:
        label, values = parameter.group(1).upper(), _values(parameter.group(2))
        # vCard 2.1 writes types and encodings without the name of the parameter.
        parameters.setdefault(label if parameter.group(2) is not None else "TYPE", []).extend(
            values or [label]
        )
        at = parameter.end()
    if text[at : at + 1] != ":":
        return None
    return _without_quoting(
        ContentLine(name.group(2).upper(), parameters, text[at + 1 :], name.group(1) or "")
    )


def properties(lines: Sequence[str]) -> Iterator[ContentLine]:
    """Yield the properties of a component, without those of components inside it."""
    depth = 0
    for text in lines:
        mark = text[:6].upper()
        if mark == "BEGIN:":
            depth += 1
        elif mark.startswith("END:"):
            depth -= 1
        elif depth == 0 and (line := content_line(text)) is not None:
            yield line


def unescaped(value: str) -> str:
    r"""Undo ``\n``, ``\,``, ``\;`` and ``\\``."""
    return _ESCAPED.sub(_escape, value) if "\\" in value else value


def _escape(match: re.Match[str]) -> str:
    return "\n" if match.group(1) in {"n", "N", r"r\n"} else match.group(1)


def _split(pattern: re.Pattern[str], value: str) -> Iterator[str]:
    for match in pattern.finditer(value):
        yield match.group(1)
        if not match.group(2):
            return


def _values(text: str | None) -> list[str]:
    values = [quoted or plain for quoted, plain in _PARAMETER_VALUE.findall(text or "")]
    return [re.sub(r"\^[n'^]", lambda match: _CARET[match.group()], value) for value in values]


def _without_quoting(line: ContentLine) -> ContentLine:
    words = {value.upper() for name in ("ENCODING", "TYPE") for value in line.parameters.get(name, ())}
    if "QUOTED-PRINTABLE" not in words:
        return line
    content = quopri.decodestring(line.value.encode("utf-8", "replace"))
    return ContentLine(line.name, line.parameters, decoded(content, line.parameter("CHARSET") or "utf-8"))


def _unfolded(content: IO[bytes]) -> Iterator[bytes]:
    is_first, buffer = True, bytearray()
    for line in byte_lines(content):
        if _is_soft_break(buffer):
            _append(buffer, line, cut=1)
        elif line[:1] in {b" ", b"\t"}:
            _append(buffer, line[1:])
        else:
            if buffer:
                yield bytes(buffer)
            buffer = bytearray(line.removeprefix(b"\xef\xbb\xbf") if is_first else line)
        is_first = False
    if buffer:
        yield bytes(buffer)


def _append(buffer: bytearray, more: bytes, *, cut: int = 0) -> None:
    if cut:
        del buffer[-cut:]
    # What is longer is refused as a whole later; it need not be collected.
    if len(buffer) <= MAX_COMPONENT_BYTES:
        buffer += more


def _is_soft_break(buffer: bytearray) -> bool:
    return buffer.endswith(b"=") and b"QUOTED-PRINTABLE" in buffer[:_PARAMETER_CHARS].upper()


def _delimiter(raw: bytes) -> tuple[bytes, str]:
    match = _DELIMITER.match(raw) if len(raw) <= _PARAMETER_CHARS else None
    if match is None:
        return b"", ""
    return match[1].upper(), clean(match[2].decode("latin-1")).strip().upper()


def _excess(size: int, count: int) -> str | None:
    if size <= MAX_COMPONENT_BYTES and count <= MAX_COMPONENT_LINES:
        return None
    return f"It has more than {MAX_COMPONENT_BYTES} bytes or {MAX_COMPONENT_LINES} lines."
