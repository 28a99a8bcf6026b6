"""Parquet and SQLite files, and the sheets of workbooks, as tables."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any
from xml.etree.ElementTree import ParseError

from headgate.errors import InvalidRequest
from headgate.sources.formats.databases import HEADER, DatabaseError, opened
from headgate.sources.inputs.tree import InputFile
from headgate.sources.parts import most_stored_bytes
from headgate.sources.protocol import Reject
from headgate.sources.reading_note import NOTE
from headgate.sources.tables.columns import RawRow, RawTable, field_names, storable
from headgate.sources.tables.sheets import SheetRows, is_workbook, sheets_of
from headgate.sources.tables.text_kinds import FORM, TIME_KINDS

_BATCH_ROWS = 2000
#: How many rows of a batch become values at once: each has its own copy of what the batch has once.
_SLICE_ROWS = 16
_MAX_COLUMNS = 900
#: Rows in which the header is looked for.
_SAMPLE_ROWS = 30
_YEARS = range(1900, 2101)


def binary_tables(file: InputFile, form: int = FORM) -> Sequence[RawTable]:
    """Return the tables of a file of one of these formats; none if it is not one."""
    if file.head.startswith(HEADER):
        return _database_tables(file)
    if file.head.startswith(b"PAR1"):
        return _parquet_tables(file)
    return _sheet_tables(file, form) if is_workbook(file) else ()


# SQLite


def _database_tables(file: InputFile) -> list[RawTable]:
    with file.on_disk() as path, opened(path) as database:
        tables: list[RawTable] = []
        for table in database.tables():
            info = list(database.rows("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (table,)))
            names = field_names([str(name) for name, _ in info])
            marked = sorted((pk, names[at]) for at, (_, pk) in enumerate(info) if pk)
            if names and len(names) <= _MAX_COLUMNS:
                rows = _database_rows(file, table, [str(name) for name, _ in info])
                tables.append(RawTable(table, names, TIME_KINDS, rows, [column for _, column in marked]))
        return tables


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _database_rows(file: InputFile, table: str, columns: Sequence[str]) -> Callable[[], Any]:
    chosen = ", ".join(map(_quoted, columns))
    statement = f"SELECT {chosen} FROM {_quoted(table)}"  # noqa: S608 - names are quoted, and nothing is written

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with file.on_disk() as path, opened(path) as database:
            yield _numbered(file, table, database.rows(statement), DatabaseError)

    return rows


def _numbered(
    file: InputFile, table: str, rows: Iterator[Sequence[Any]], *errors: type[Exception]
) -> Iterator[RawRow | Reject]:
    """Number the rows of a table; damage ends it with a reject, and more text than may be stored of the file."""
    number, left = 0, most_stored_bytes(file.size_bytes)
    try:
        for number, row in enumerate(rows, 1):
            NOTE.step()
            values = [storable(value) for value in row]
            left -= sum(len(value) for value in values if isinstance(value, str))
            if left < 0:
                yield Reject(f"{table} row {number}", "The table is too large for the size of the file.")
                return
            yield f"{table} row {number}", values
    except (*errors, ValueError, KeyError, IndexError, TypeError, OSError) as error:
        yield Reject(f"{table} row {number + 1}", f"The table cannot be read further: {str(error)[:100]}.")


# Parquet


def _parquet_tables(file: InputFile) -> list[RawTable]:
    if importlib.util.find_spec("pyarrow") is None:
        raise InvalidRequest(
            "Parquet files need the 'parquet' extra.", hint="Install it with: pip install 'headgate[parquet]'"
        )
    # An extra, slow to import, and without types.
    library: Any = importlib.import_module("pyarrow.parquet")
    try:
        with file.on_disk() as path:
            schema: Any = library.read_schema(path)
            raw_names: list[str] = list(schema.names)
            # A text that stands in many rows is in memory once.
            texts = [field.name for field in schema if str(field.type) in {"string", "binary"}]
    except (ValueError, OSError) as error:
        raise InvalidRequest(f"{file.name} cannot be read: {error}.") from None

    def values(path: Any) -> Iterator[Sequence[Any]]:
        content = library.ParquetFile(path, read_dictionary=texts)
        for batch in content.iter_batches(batch_size=_BATCH_ROWS, use_threads=False):
            for at in range(0, batch.num_rows, _SLICE_ROWS):
                for row in batch.slice(at, _SLICE_ROWS).to_pylist():
                    yield [row[name] for name in raw_names]

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with file.on_disk() as path:
            yield _numbered(file, file.stem, values(path))

    return [RawTable(file.stem, field_names(raw_names), TIME_KINDS, rows)]


# Sheets


def _sheet_tables(file: InputFile, form: int) -> list[RawTable]:
    with sheets_of(file) as sheets:
        tables = [_sheet_table(file, title, rows, form) for title, rows in sheets.items()]
        return [table for table in tables if table is not None]


def _sheet_table(file: InputFile, title: str, rows: SheetRows, form: int) -> RawTable | None:
    sample = [list(row) for row in islice(rows(), _SAMPLE_ROWS if form == FORM else 1)]
    above, has_header = _header_of(sample) if form == FORM else (0, True)
    first = sample[above][:_MAX_COLUMNS] if above < len(sample) else []
    if not any(map(_is_filled, first)):
        return None
    cells = [str(cell) if has_header and _is_filled(cell) else "" for cell in first]

    def values(every: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
        for row in islice(every, above + has_header, None):
            if any(map(_is_filled, row)):
                yield [*row[: len(cells)], *([None] * (len(cells) - len(row)))]

    @contextmanager
    def opened_rows() -> Generator[Iterator[RawRow | Reject]]:
        with sheets_of(file) as sheets:
            yield _numbered(file, title, values(sheets[title]()), ParseError)

    is_new = form == FORM and (above, has_header) != (0, True)
    return RawTable(title, field_names(cells), TIME_KINDS, opened_rows, is_new=is_new)


def _header_of(sample: Sequence[Sequence[Any]]) -> tuple[int, bool]:
    """Find the first row that is about as wide as the sheet, and whether it is the header; above it may stand a title."""
    widths = [sum(map(_is_filled, row)) for row in sample]
    at = next((at for at, width in enumerate(widths) if width * 2 > max(widths)), 0)
    return at, not _is_data([cell for row in sample[at : at + 1] for cell in row if _is_filled(cell)])


def _is_data(cells: Sequence[Any]) -> bool:
    """Return whether a row has days or mostly numbers; a header may have a few, and years."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    numbers = sum(isinstance(cell, int | float) and cell not in _YEARS for cell in cells)
    has_day = any(hasattr(cell, "year") for cell in cells) or any(
        kind.read(text.strip()) is not None for text in texts for kind in TIME_KINDS
    )
    return has_day or numbers > len(texts)


def _is_filled(cell: Any) -> bool:
    return cell is not None and cell != ""
