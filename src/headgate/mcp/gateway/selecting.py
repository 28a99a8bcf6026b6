"""Parts of a JSON value: by a path, by what rows hold, by words, in windows of a bounded size. Pure.

What is returned is valid JSON at every step: a value that does not fit is cut inside, never in the middle of its text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

import msgspec

from headgate.errors import CallError
from headgate.nearest import nearest

_STEP = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<place>-?\d{1,9}|\*)\]|\[(?P<quoted>\"(?:[^\"\\]|\\.)*\")\]")
_MOST_STEPS = 32
_MOST_VALUES = 100_000
_SHAPE_PATHS = 40
_SHAPE_DEPTH = 6
#: How many items of a list are looked at for its shape.
_SHAPE_ITEMS = 50
_PREVIEW_ITEMS = 3
_PREVIEW_CHARS = 160
_KEY_CHARS = 60
_NAMES = 12


class Step(Enum):
    """A step that is neither a name nor a place."""

    ALL = "*"


Path: TypeAlias = tuple[str | int | Step, ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """What a path leads to: one value, or the values that its ``*`` leads to."""

    values: Sequence[Any]
    is_many: bool

    @property
    def rows(self) -> Sequence[Any] | None:
        """The values of a list, or of several places; None of any other single value."""
        if self.is_many:
            return self.values
        return cast("list[Any]", self.values[0]) if isinstance(self.values[0], list) else None


def parse_path(text: str) -> Path:
    """Read a path such as ``$.items[0].name`` or ``$.items[*].id``; the ``$`` may be left out.

    Raises:
        CallError: it is none.
    """
    rest = text.strip().removeprefix("$")
    rest = rest if not rest or rest[0] in ".[" else f".{rest}"
    steps: list[str | int | Step] = []
    at = 0
    while at < len(rest):
        match = _STEP.match(rest, at)
        if match is None or len(steps) == _MOST_STEPS:
            raise CallError(
                "INVALID_INPUT", f"{text[:80]!a} is no path. One is $.items[0].name, or $.items[*].id."
            )
        steps.append(_step(match))
        at = match.end()
    return tuple(steps)


def _step(match: re.Match[str]) -> str | int | Step:
    if (name := match["name"]) is not None:
        return Step.ALL if name == Step.ALL.value else name
    if (quoted := match["quoted"]) is not None:
        return str(msgspec.json.decode(quoted))
    return Step.ALL if match["place"] == Step.ALL.value else int(match["place"])


def select(value: Any, path: Path) -> Selection:
    """Follow a path.

    Raises:
        CallError: it leads nowhere; the error names what is there.
    """
    values: list[Any] = [value]
    is_many = False
    for step in path:
        is_many = is_many or step is Step.ALL
        following = [inner for outer in values for inner in _inside(outer, step)]
        if not following and not is_many:
            raise CallError("INVALID_INPUT", _leads_nowhere(values[0], step))
        if len(following) > _MOST_VALUES:
            raise CallError("RESOURCE_LIMIT", f"The path leads to more than {_MOST_VALUES} values.")
        values = following
    return Selection(values, is_many)


def _inside(value: Any, step: str | int | Step) -> Iterable[Any]:
    match value:
        case dict():
            members = cast("dict[str, Any]", value)
            if step is Step.ALL:
                return members.values()
            return (members[step],) if isinstance(step, str) and step in members else ()
        case list():
            items = cast("list[Any]", value)
            if step is Step.ALL:
                return items
            return (items[step],) if isinstance(step, int) and -len(items) <= step < len(items) else ()
        case _:
            return ()


def _leads_nowhere(value: Any, step: str | int | Step) -> str:
    match value:
        case dict():
            members = list(cast("dict[str, Any]", value))
            offered = nearest(str(step), members) or members
            shown = ", ".join(name[:_KEY_CHARS] for name in offered[:_NAMES])
            return f"There is no member {str(step)[:_KEY_CHARS]!a} here; there is: {shown or 'nothing'}."
        case list():
            return f"Here is a list of {len(cast('list[Any]', value))}: [0] is its first value, [*] are all."
        case _:
            return f"Here is {kind_of(value)}, which has no parts."


def matching(rows: Sequence[Any], where: Mapping[str, Any], words: Sequence[str]) -> list[Any]:
    """Keep the rows whose members equal, or in texts contain, what is asked for, and that hold every word.

    Raises:
        CallError: a member is named by no path.
    """
    wanted = [(parse_path(name), value) for name, value in where.items()]
    return [row for row in rows if _fits(row, wanted) and _holds(row, words)]


def _fits(row: Any, wanted: Sequence[tuple[Path, Any]]) -> bool:
    return all(any(_equals(value, sought) for value in _reached(row, path)) for path, sought in wanted)


def _reached(row: Any, path: Path) -> list[Any]:
    values = [row]
    for step in path:
        values = [inner for outer in values for inner in _inside(outer, step)]
    return values


def _equals(value: Any, sought: Any) -> bool:
    if isinstance(value, str) and isinstance(sought, str):
        return sought.casefold() in value.casefold()
    if isinstance(value, bool) or isinstance(sought, bool):
        return value is sought
    return value == sought


def _holds(row: Any, words: Sequence[str]) -> bool:
    if not words:
        return True
    text = (row if isinstance(row, str) else msgspec.json.encode(row).decode()).casefold()
    return all(word in text for word in words)


def with_fields(row: Any, fields: Sequence[str]) -> Any:
    """Keep the named members of a row; a path reaches further inside, and keeps its text as the name."""
    if not fields or not isinstance(row, dict):
        return row
    chosen: dict[str, Any] = {}
    for name in fields:
        path = parse_path(name)
        values = _reached(row, path)
        if values:
            chosen[name] = values if Step.ALL in path else values[0]
    return chosen


@dataclass(frozen=True, slots=True)
class Window:
    """The rows that fit, and where the rest begins."""

    rows: list[Any]
    next_offset: int | None
    #: Whether a row was so long that it was cut inside.
    is_cut: bool = False


def rows_that_fit(rows: Sequence[Any], offset: int, limit: int, most_bytes: int) -> Window:
    """Take rows from an offset; a single row that does not fit is cut inside."""
    taken: list[Any] = []
    left = most_bytes
    for row in rows[offset : offset + limit]:
        size = len(msgspec.json.encode(row)) + 1
        if size > left:
            if not taken:
                return Window([pruned(row, most_bytes)], _after(offset + 1, rows), is_cut=True)
            break
        left -= size
        taken.append(row)
    return Window(taken, _after(offset + len(taken), rows))


def _after(end: int, rows: Sequence[Any]) -> int | None:
    return end if end < len(rows) else None


def pruned(value: Any, most_bytes: int) -> Any:
    """Return a value that fits: with short texts and the first items of lists, and less of both until it does."""
    items, chars = _PREVIEW_ITEMS * 8, _PREVIEW_CHARS * 8
    while True:
        cut = _cut(value, items, chars, _SHAPE_DEPTH)
        if len(msgspec.json.encode(cut)) <= most_bytes:
            return cut
        if items == 1 and chars <= len("…"):
            return kind_of(value)
        items, chars = max(1, items // 2), max(1, chars // 2)


def _cut(value: Any, items: int, chars: int, depth: int) -> Any:
    match value:
        case str():
            return value if len(value) <= chars else f"{value[:chars]}… ({len(value)} characters)"
        case list() | dict() if not depth:
            return kind_of(value)
        case list():
            everything = cast("list[Any]", value)
            shown = [_cut(item, items, chars, depth - 1) for item in everything[:items]]
            return shown if len(everything) <= items else [*shown, f"… ({len(everything)} items)"]
        case dict():
            members = list(cast("dict[str, Any]", value).items())
            most = items * 4
            shown = {
                name[:_KEY_CHARS]: _cut(inner, items, chars, depth - 1) for name, inner in members[:most]
            }
            return shown if len(members) <= most else {**shown, "…": f"{len(members)} members"}
        case _:
            return value


def shape_of(value: Any) -> list[str]:
    """Describe a value by its paths: what kind of value each has, and how many a list has."""
    lines: list[str] = []
    for path, kinds in _kinds(value).items():
        if len(lines) == _SHAPE_PATHS:
            return [*lines, "…"]
        lines.append(f"{path} {' or '.join(kinds)}")
    return lines


def _kinds(value: Any) -> dict[str, dict[str, None]]:
    by_path: dict[str, dict[str, None]] = {}
    level: list[tuple[str, Any]] = [("$", value)]
    for _ in range(_SHAPE_DEPTH):
        following: list[tuple[str, Any]] = []
        for path, inner in level:
            by_path.setdefault(path, {})[kind_of(inner)] = None
            following.extend(_parts(path, inner))
        level = following[:_MOST_VALUES]
        if len(by_path) > _SHAPE_PATHS:
            break
    return by_path


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case list():
            for item in cast("list[Any]", value)[:_SHAPE_ITEMS]:
                yield f"{path}[*]", item
        case dict():
            for name, inner in list(cast("dict[str, Any]", value).items())[:_SHAPE_ITEMS]:
                plain = re.fullmatch(r"[\w-]{1,60}", name)
                yield (
                    f"{path}.{name}"
                    if plain
                    else f"{path}[{msgspec.json.encode(name[:_KEY_CHARS]).decode()}]",
                    inner,
                )
        case _:
            return


def kind_of(value: Any) -> str:
    """Name the kind of a value, with its size where it has one."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return f"text of {len(value)}" if len(value) > _PREVIEW_CHARS else "text"
        case list():
            return f"list of {len(cast('list[Any]', value))}"
        case _:
            return "object"
