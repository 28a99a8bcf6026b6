"""Tables in text files: separated values, JSON arrays of objects, and JSON lines."""

from __future__ import annotations

import csv
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import IO, Any, cast

import msgspec

from headgate.sources.formats.json_values import json_line, json_values
from headgate.sources.formats.texts import decode, lines, plain_cell
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject
from headgate.sources.tables.columns import TEXT_KINDS, RawRow, RawTable, field_names, storable

_DELIMITERS = ",;\t|"
_MAX_CELL = 16 * 1024 * 1024
_SAMPLE_LINES = 50
_MAX_COLUMNS = 900
_MAX_LINES_ABOVE = 20


def text_table(file: InputFile) -> RawTable | None:
    """Recognise a table of text; None if its lines have no common delimiter."""
    text = decode(file.head).replace("\0", "")
    is_cut, above = file.size_bytes > len(file.head), 0
    sample = _sampled(text.splitlines(), is_cut=is_cut)
    delimiter = _delimiter(sample)
    if delimiter is None:
        # Lines as they are read: a title may hold other characters that end one.
        sample = _sampled(text.split("\n"), is_cut=is_cut)
        above = _lines_above(sample)
        sample = sample[above:]
        delimiter = _delimiter(sample) if above else None
    if delimiter is None:
        return None
    first = next(csv.reader(sample, delimiter=delimiter), list[str]())
    if len(first) > _MAX_COLUMNS:
        return None
    has_header = _is_header(first)
    names = field_names(first if has_header else [""] * len(first))

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with file.open() as content:
            # No store takes NUL, and a cell of nothing else is empty.
            cleaned = (line.replace("\0", "") for line in lines(content, file.head))
            below = islice(cleaned, above, None)
            yield _rows(below, delimiter, len(names), above, has_header=has_header)

    return RawTable(file.stem, names, is_untyped=True, rows=rows)


def _sampled(every: list[str], *, is_cut: bool) -> list[str]:
    sample = every[:_SAMPLE_LINES]
    return sample[:-1] if is_cut and len(sample) > 1 else sample


def _lines_above(sample: list[str]) -> int:
    """Count the lines above the header, such as a title and a period; 0 if no header follows."""
    for above in range(1, min(len(sample) - 1, _MAX_LINES_ABOVE + 1)):
        delimiter = _delimiter(sample[above:])
        if delimiter is not None and _is_header(
            next(csv.reader(sample[above:], delimiter=delimiter), list[str]())
        ):
            return above
    return 0


def _delimiter(sample: list[str]) -> str | None:
    """Return the character that cuts the lines into the most columns, equally many in nearly all of them."""
    best: tuple[float, int, str] | None = None
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        width = widths[0] if widths else 0
        agreeing = sum(cells == width for cells in widths) / max(len(widths), 1)
        if width > 1 and agreeing > 0.5 and (best is None or (agreeing, width) > best[:2]):  # noqa: PLR2004
            best = (agreeing, width, delimiter)
    return best[2] if best else None


def _is_header(cells: list[str]) -> bool:
    """Return whether the first line names the columns: different texts, of which none is a number or a date."""
    named = [cell.strip() for cell in cells if cell.strip()]
    is_data = any(kind.read(cell) is not None for cell in named for kind in TEXT_KINDS)
    return bool(named) and not is_data and len(set(named)) == len(named)


def _rows(
    content: Iterator[str], delimiter: str, width: int, above: int, *, has_header: bool
) -> Iterator[RawRow | Reject]:
    # The library's limit is one for the process; a larger one only lets more cells through.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))
    reader = csv.reader(content, delimiter=delimiter)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Reject(f"line {above + reader.line_num}", f"The line cannot be read: {error}.")
            continue
        if cells is None:
            return
        place = f"line {above + reader.line_num}"
        if has_header:
            has_header = False
        elif len(cells) > width and any(cell.strip() for cell in cells[width:]):
            yield Reject(place, f"It has {len(cells)} cells, and the table has {width} columns.")
        elif any(cell.strip() for cell in cells):
            yield place, [*map(plain_cell, cells[:width]), *([None] * (width - len(cells)))]


_MAX_DEPTH = 60
_Found = tuple[str, dict[str, Any]] | Reject


def json_form(file: InputFile) -> Callable[[IO[bytes], bytes], Iterator[_Found]] | None:
    """Recognise an array of objects or lines of objects by the beginning; None if it is neither."""
    head = file.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"[") and head[1:].lstrip().startswith(b"{"):
        return _array_items
    first, _, rest = head.partition(b"\n")
    is_line = (
        head.startswith(b"{") and (rest.strip() or file.suffix != ".json") and json_line(first) is not None
    )
    return _line_items if is_line else None


def json_table(file: InputFile) -> RawTable | None:
    """Find the columns of the objects; None if there are none."""
    read = json_form(file)
    if read is None:
        return None

    @contextmanager
    def objects() -> Generator[Iterator[_Found]]:
        with file.open() as content:
            yield read(content, file.head)

    return _table(file, objects)


def _table(file: InputFile, objects: Any) -> RawTable | None:
    """Collect the names of all objects, in the order in which they come first."""
    names: dict[str, None] = {}
    with objects() as items:
        for item in items:
            if not isinstance(item, Reject):
                names.update(dict.fromkeys(item[1]))
            if len(names) > _MAX_COLUMNS:
                return None
    raw_names = list(names)

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with objects() as items:
            yield (
                item
                if isinstance(item, Reject)
                else (item[0], [storable(item[1].get(name)) for name in raw_names])
                for item in items
            )

    return RawTable(file.stem, field_names(raw_names), is_untyped=False, rows=rows) if raw_names else None


def _line_items(content: IO[bytes], head: bytes) -> Iterator[_Found]:
    for number, line in enumerate(lines(content, head), 1):
        if not line.strip():
            continue
        try:
            value: Any = msgspec.json.decode(line)
        except (msgspec.DecodeError, RecursionError):
            yield Reject(f"line {number}", "The line is not JSON.")
            continue
        yield _object(f"line {number}", value)


def _array_items(content: IO[bytes], _head: bytes) -> Iterator[_Found]:
    for number, item in enumerate(json_values(content, frozenset({"item"})), 1):
        place = f"item {number}"
        yield Reject(place, item.problem) if item.problem else _object(place, item.value)


def _object(place: str, value: Any) -> _Found:
    if not isinstance(value, dict):
        return Reject(place, "It is no object.")
    if _is_deep(value):
        return Reject(place, f"It is nested deeper than {_MAX_DEPTH} levels.")
    return place, cast("dict[str, Any]", value)


def _is_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    inner = cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value)
    return [member for member in inner if isinstance(member, dict | list)]
