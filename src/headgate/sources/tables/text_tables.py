"""Tables in text files: separated values, and the objects of JSON in arrays or lines."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import IO, Any, cast

import msgspec

from headgate.errors import InvalidRequest
from headgate.sources.formats.json_values import json_line, json_values
from headgate.sources.formats.texts import decode, lines, plain_cell
from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject
from headgate.sources.tables.columns import RawRow, RawTable, field_names, storable
from headgate.sources.tables.text_kinds import ENGLISH_KINDS, FORM, TEXT_KINDS, TIME_KINDS

_DELIMITERS = ",;\t|"
_MAX_CELL = 16 * 1024 * 1024
_SAMPLE_LINES = 50
_MAX_COLUMNS = 900
_MAX_LINES_ABOVE = 20


def text_table(file: InputFile, form: int = FORM) -> RawTable | None:
    """Recognise a table of text; None if its lines have no common delimiter."""
    text = decode(file.head).replace("\0", "")
    is_cut, above = file.size_bytes > len(file.head), 0
    sample = _sampled(text.splitlines(), is_cut=is_cut)
    delimiter = _delimiter(sample)
    if delimiter is None:
        # Lines as they are read: a title may hold other characters that end one.
        sample = _sampled(text.split("\n"), is_cut=is_cut)
        above = _lines_above(sample, form)
        sample = sample[above:]
        delimiter = _delimiter(sample) if above else None
    if delimiter is None:
        return None
    first, *below = csv.reader(sample, delimiter=delimiter)
    if len(first) > _MAX_COLUMNS:
        return None
    has_header = is_header(first, below, form)
    names = field_names(first if has_header else [""] * len(first))

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with file.open() as content:
            # No store takes NUL, and a cell of nothing else is empty.
            cleaned = (line.replace("\0", "") for line in lines(content, file.head))
            under = islice(cleaned, above, None)
            yield _rows(under, delimiter, len(names), above, has_header=has_header)

    is_new = form == FORM and has_header != is_header(first, below, FORM - 1)
    return RawTable(file.stem, names, TEXT_KINDS if delimiter == ";" else ENGLISH_KINDS, rows, is_new=is_new)


def _sampled(every: list[str], *, is_cut: bool) -> list[str]:
    sample = every[:_SAMPLE_LINES]
    return sample[:-1] if is_cut and len(sample) > 1 else sample


def _lines_above(sample: list[str], form: int) -> int:
    """Count the lines above the header, such as a title and a period; 0 if no header follows."""
    for above in range(1, min(len(sample) - 1, _MAX_LINES_ABOVE + 1)):
        delimiter = _delimiter(sample[above:])
        rows = [] if delimiter is None else list(csv.reader(sample[above:], delimiter=delimiter))
        if rows and is_header(rows[0], rows[1:], form):
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


def is_header(cells: Sequence[str], below: Sequence[Sequence[str]], form: int = FORM) -> bool:
    """Return whether a line names the columns: different texts, of which none is a number or a date.

    Texts that repeat are a header if the lines below have numbers or dates.
    """
    named = [cell.strip() for cell in cells if cell.strip()]
    is_different = len(set(named)) == len(named)
    has_data = (
        not is_different and form == FORM and any(_is_data(cell, form) for row in below for cell in row)
    )
    return bool(named) and not any(_is_data(cell, form) for cell in named) and (is_different or has_data)


def _is_data(cell: str, form: int) -> bool:
    return any(kind.form <= form and kind.read(cell.strip()) is not None for kind in TEXT_KINDS)


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


# JSON

_ITEM = ".item"
_MAX_DEPTH = 60
_Found = tuple[str, dict[str, Any]] | Reject
_ReadJson = Callable[[IO[bytes], bytes], Iterator[_Found]]
#: An array of objects somewhere in an object.
_ARRAY = re.compile(rb'"\s*:\s*\[\s*\{')
_MOST_ARRAYS = 50


def json_form(file: InputFile) -> _ReadJson | None:
    """Recognise objects in an array, in lines or in arrays of an object by the beginning; None if there are none."""
    head = file.head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if head.startswith(b"[") and head[1:].lstrip().startswith(b"{"):
        return partial(_array_items, {"item"})
    first, _, rest = head.partition(b"\n")
    if head.startswith(b"{") and (rest.strip() or file.suffix != ".json") and json_line(first) is not None:
        return _line_items
    return partial(_array_items, _Items()) if head.startswith(b"{") and _ARRAY.search(head) else None


def json_tables(file: InputFile) -> list[RawTable]:
    """Find the tables of a file, and the columns of their objects.

    Raises:
        InvalidRequest: it has too many arrays.
    """
    read = json_form(file)
    forms = {} if read is None else {file.stem: read}
    if isinstance(read, partial) and isinstance(read.args[0], _Items):
        forms = {path.removesuffix(_ITEM): partial(_array_items, {path}) for path in _arrays_of(file)}
    tables = (_table(file, name, form) for name, form in forms.items())
    return [table for table in tables if table is not None]


class _Items:
    """The paths of all that stands in arrays."""

    def __contains__(self, path: object) -> bool:
        return str(path).endswith(_ITEM)


def _arrays_of(file: InputFile) -> list[str]:
    """Return the paths of the objects in arrays that are in no other array."""
    paths: list[str] = []
    with file.open() as content:
        for begun in json_values(content, (), _Items()):
            if begun.path and not any(f"{begun.path}.".startswith(f"{path}.") for path in paths):
                paths.append(begun.path)
            if len(paths) > _MOST_ARRAYS:
                raise InvalidRequest(f"{file.name} has more than {_MOST_ARRAYS} arrays of objects.")
    return paths


def _table(file: InputFile, name: str, read: _ReadJson) -> RawTable | None:
    """Collect the names of all objects, in the order in which they come first; None if there are none."""

    @contextmanager
    def objects() -> Generator[Iterator[_Found]]:
        with file.open() as content:
            yield read(content, file.head)

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

    return RawTable(name, field_names(raw_names), TIME_KINDS, rows) if raw_names else None


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


def _array_items(paths: Container[str], content: IO[bytes], _head: bytes) -> Iterator[_Found]:
    for number, item in enumerate(json_values(content, paths), 1):
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
