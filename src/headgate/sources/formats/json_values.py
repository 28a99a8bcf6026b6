"""JSON documents of any size, read value by value in bounded memory.

The events of the parser are followed here and only the wanted values are built: the parser's own builder needs memory
with the square of the depth, and a document may be nothing but brackets.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any, cast

import ijson  # pyright: ignore[reportMissingTypeStubs, reportMissingImports] - it has no types
import msgspec

from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject, Row
from headgate.store.format.lines import MAX_DEPTH

_parser = cast("Any", ijson)
#: A value that has more bytes is refused: it could not be stored as one record.
MAX_VALUE_BYTES = 32 * 1024 * 1024
#: The same for its parts: a list of a million empty lists has few bytes, but needs much memory.
_MAX_PARTS = 500_000
_CHUNK_BYTES = 64 * 1024
#: Here a document is given up; less deep ones are read on after the part that is too deep.
_HOPELESS_DEPTH = 10_000
#: Longer names are no path that a source wants.
_NAME_CHARS = 64
_OPENS = frozenset({"start_map", "start_array"})
_CLOSES = frozenset({"end_map", "end_array"})
#: In place of a path; nothing is called so.
_TOO_DEEP = "\0"


@dataclass(frozen=True, slots=True)
class JsonValue:
    #: The path: names joined by points, ``item`` for the values of a list.
    path: str
    value: Any
    #: Why the value, or the rest of the document if the path is empty, cannot be read.
    problem: str | None = None


class _EndlessValue(Exception):
    """A document that would go on without a value that could be stored."""


class _CountedReader:
    def __init__(self, content: IO[bytes]) -> None:
        self._content = content
        self.done_bytes = 0
        self.event_bytes = 0

    def read(self, size: int = -1) -> bytes:
        if size == 0:  # The parser looks first whether it gets bytes or text.
            return b""
        if self.done_bytes - self.event_bytes > MAX_VALUE_BYTES:
            raise _EndlessValue
        part = self._content.read(_CHUNK_BYTES)
        if self.done_bytes == 0:
            part = part.removeprefix(b"\xef\xbb\xbf")
        self.done_bytes += len(part)
        return part


def json_line(line: bytes) -> dict[str, Any] | None:
    """Read one line of a file of JSON lines; None if it is no object."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return None


def json_values(
    content: IO[bytes], wanted: Container[str], begun: Container[str] = frozenset()
) -> Iterator[JsonValue]:
    """Yield the wanted values in their order; a broken document ends with a problem.

    An object or list at a path of `begun` is given without its value when it begins; wanted values may be in it.
    """
    reader = _CountedReader(content)
    try:
        yield from _WantedValues(reader, wanted, begun).read()
    except _EndlessValue:
        yield JsonValue("", None, "The rest is one text without an end, or only brackets.")
    except (_parser.JSONError, ValueError, ArithmeticError):
        yield JsonValue("", None, "The rest is not JSON; the file may be cut.")


class _WantedValues:
    """Where the parser is, and the wanted value that is being built."""

    def __init__(self, reader: _CountedReader, wanted: Container[str], begun: Container[str]) -> None:
        self._begun = begun
        self._reader = reader
        self._wanted = wanted
        self._depth = 0
        #: For every open object and list: its path, and the path of the value that comes next in it.
        self._paths: list[tuple[str, str]] = [("", "")]
        self._value: _ValueBuilder | None = None

    def read(self) -> Iterator[JsonValue]:
        reader = self._reader
        events = _parser.basic_parse(reader, buf_size=_CHUNK_BYTES)
        for event, value in cast("Iterator[tuple[str, Any]]", events):
            reader.event_bytes = reader.done_bytes
            wanted = self._outside(event, value) if self._value is None else self._inside(event, value)
            if wanted is not None:
                yield wanted

    def _outside(self, event: str, value: Any) -> JsonValue | None:
        path = self._paths[-1][1] if self._depth < MAX_DEPTH else _TOO_DEEP
        if event in _CLOSES:
            self._close()
        elif event == "map_key":
            self._name(value)
        elif event not in _OPENS:
            return JsonValue(path, _plain(value)) if path in self._wanted else None
        elif path in self._wanted:
            self._value = _ValueBuilder(self._reader.done_bytes, self._depth)
            self._value.take(event, value, self._reader.done_bytes)
        else:
            self._open(event)
            return JsonValue(path, None) if path in self._begun else None
        return None

    def _inside(self, event: str, value: Any) -> JsonValue | None:
        built, done = self._value, self._reader.done_bytes
        if built is None or not built.take(event, value, done):
            return None
        self._value = None
        return JsonValue(self._paths[-1][1], built.value, built.problem)

    def _open(self, event: str) -> None:
        if self._depth < MAX_DEPTH:
            path = self._paths[-1][1]
            self._paths.append((path, path if event == "start_map" else _below(path, "item")))
        self._depth += 1
        if self._depth > _HOPELESS_DEPTH:
            raise _EndlessValue

    def _close(self) -> None:
        self._depth -= 1
        if self._depth < MAX_DEPTH:
            self._paths.pop()

    def _name(self, name: str) -> None:
        if self._depth <= MAX_DEPTH:
            path = self._paths[-1][0]
            self._paths[-1] = (path, _below(path, name[:_NAME_CHARS]))


class _ValueBuilder:
    """A value from its events, up to a depth and a size."""

    def __init__(self, start_bytes: int, depth: int) -> None:
        self.value: Any = None
        self.problem: str | None = None
        self._start_bytes = start_bytes
        self._outer_depth = depth
        self._depth = 0
        self._parts = 0
        self._open: list[dict[str, Any] | list[Any]] = []
        self._names: list[str] = []

    def take(self, event: str, value: Any, done_bytes: int) -> bool:
        """Add an event, and say whether the value is complete."""
        self._parts += 1
        self._depth += (event in _OPENS) - (event in _CLOSES)
        if self.problem is None:
            self._bound(done_bytes)
        if self.problem is None:
            self._add(event, value)
        return self._depth == 0

    def _bound(self, done_bytes: int) -> None:
        if self._depth + self._outer_depth > MAX_DEPTH:
            self.problem = f"It nests deeper than {MAX_DEPTH} levels."
        elif done_bytes - self._start_bytes > MAX_VALUE_BYTES:
            self.problem = f"It has more than {MAX_VALUE_BYTES} bytes."
        elif self._parts > _MAX_PARTS:
            self.problem = f"It has more than {_MAX_PARTS} parts."
        if self.problem is not None:
            self.value, self._open = None, []

    def _add(self, event: str, value: Any) -> None:
        if event == "map_key":
            self._names[-1] = value
        elif event in _CLOSES:
            self._open.pop()
            self._names.pop()
        elif event in _OPENS:
            container: dict[str, Any] | list[Any] = {} if event == "start_map" else []
            self._put(container)
            self._open.append(container)
            self._names.append("")
        else:
            self._put(_plain(value))

    def _put(self, value: Any) -> None:
        if not self._open:
            self.value = value
        elif isinstance(outer := self._open[-1], dict):
            outer[self._names[-1]] = value
        else:
            outer.append(value)


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def object_of(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def objects_of(value: Any) -> list[dict[str, Any]]:
    return [cast("dict[str, Any]", member) for member in list_of(value) if isinstance(member, dict)]


def list_of(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def json_rows(
    file: InputFile,
    content: IO[bytes],
    paths: frozenset[str],
    row: Callable[[str, dict[str, Any]], list[Row] | None],
) -> Iterator[Row | Reject]:
    """Read the objects at some paths of a JSON file; one that becomes no row is rejected, unless it is None: empty."""
    for number, entry in enumerate(json_values(content, paths), 1):
        place = f"{file.name}, entry {number}"
        if entry.problem is not None:
            yield Reject(place, entry.problem)
            continue
        rows = row(entry.path, object_of(entry.value))
        if rows is not None:
            yield from rows or [Reject(place, "It has no time, or nothing else that can be read.")]
