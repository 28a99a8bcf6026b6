"""CSV and TSV: the delimiter is counted, the encoding detected, and a row that does not fit is reported."""

from __future__ import annotations

import csv
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from headgate.sources.inputs.tree import InputFile
from headgate.sources.protocol import Reject
from headgate.sources.tables.columns import RawRow, RawTable, field_names
from headgate.sources.tables.kinds import TEXT_KINDS
from headgate.sources.texts import decode, lines

_DELIMITERS = ",;\t|"
_MAX_CELL = 16 * 1024 * 1024
_SAMPLE_LINES = 50
_MAX_COLUMNS = 900


def text_table(file: InputFile) -> RawTable | None:
    """Recognise a table of text; None if its lines have no common delimiter."""
    sample = decode(file.head).replace("\0", "").splitlines()[:_SAMPLE_LINES]
    if file.size_bytes > len(file.head) and len(sample) > 1:
        sample.pop()
    delimiter = _delimiter(sample)
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
            yield _rows(cleaned, delimiter, len(names), has_header=has_header)

    return RawTable(file.stem, names, is_untyped=True, rows=rows)


def _delimiter(sample: list[str]) -> str | None:
    """Return the character that cuts the lines into the most columns, equally many in nearly all of them."""
    best: tuple[float, int, str] | None = None
    for delimiter in _DELIMITERS:
        widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        width = widths[0] if widths else 0
        agreeing = sum(one == width for one in widths) / max(len(widths), 1)
        if width > 1 and agreeing > 0.5 and (best is None or (agreeing, width) > best[:2]):  # noqa: PLR2004
            best = (agreeing, width, delimiter)
    return best[2] if best else None


def _is_header(cells: list[str]) -> bool:
    """Return whether the first line names the columns: different texts, of which none is a number or a date."""
    named = [cell.strip() for cell in cells if cell.strip()]
    is_data = any(kind.read(cell) is not None for cell in named for kind in TEXT_KINDS)
    return bool(named) and not is_data and len(set(named)) == len(named)


def _rows(
    content: Iterator[str], delimiter: str, width: int, *, has_header: bool
) -> Iterator[RawRow | Reject]:
    # The library's limit is one for the process; a larger one only lets more cells through.
    csv.field_size_limit(max(csv.field_size_limit(), _MAX_CELL))
    reader = csv.reader(content, delimiter=delimiter)
    while True:
        try:
            cells = next(reader, None)
        except csv.Error as error:
            yield Reject(f"line {reader.line_num}", f"The line cannot be read: {error}.")
            continue
        if cells is None:
            return
        place = f"line {reader.line_num}"
        if has_header:
            has_header = False
        elif len(cells) > width and any(cell.strip() for cell in cells[width:]):
            yield Reject(place, f"It has {len(cells)} cells, and the table has {width} columns.")
        elif any(cell.strip() for cell in cells):
            yield place, [*cells[:width], *([None] * (width - len(cells)))]
