"""Parquet, Excel and SQLite files, which their libraries read from the disk."""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree.ElementTree import ParseError

from headgate.errors import InvalidRequest
from headgate.sources.formats.databases import HEADER, DatabaseError, opened
from headgate.sources.inputs.tree import InputFile
from headgate.sources.parts import most_stored_bytes
from headgate.sources.protocol import Reject
from headgate.sources.reading_note import NOTE
from headgate.sources.tables.columns import RawRow, RawTable, field_names, storable

_BATCH_ROWS = 2000
#: How many rows of a batch become values at once: each has its own copy of what the batch has once.
_SLICE_ROWS = 16
_MAX_COLUMNS = 900
#: How much a workbook may hold unpacked, and how many times its size.
_MAX_WORKBOOK_BYTES = 2 * 1024**3
_MAX_WORKBOOK_RATIO = 200
_WORKBOOK_FREE_BYTES = 16 * 1024**2


def binary_tables(file: InputFile) -> Sequence[RawTable]:
    """Return the tables of a file of one of these formats; none if it is not one."""
    if file.head.startswith(HEADER):
        return _database_tables(file)
    if file.head.startswith(b"PAR1"):
        return _parquet_tables(file)
    if file.suffix in {".xlsx", ".xlsm"} and file.head.startswith(b"PK"):
        return _workbook_tables(file)
    return ()


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
                tables.append(
                    RawTable(table, names, is_untyped=False, rows=rows, key=[column for _, column in marked])
                )
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

    return [RawTable(file.stem, field_names(raw_names), is_untyped=False, rows=rows)]


# Excel


def _workbook_tables(file: InputFile) -> list[RawTable]:
    with _workbook(file) as book:
        tables: list[RawTable] = []
        for sheet in book.worksheets:
            header = next(sheet.iter_rows(values_only=True, max_row=1), None)
            if header and any(cell is not None for cell in header):
                names = field_names(["" if cell is None else str(cell) for cell in header[:_MAX_COLUMNS]])
                rows = _sheet_rows(file, sheet.title, len(names))
                tables.append(RawTable(sheet.title, names, is_untyped=False, rows=rows))
        return tables


def _sheet_rows(file: InputFile, title: str, width: int) -> Callable[[], Any]:
    def values(sheet: Any) -> Iterator[Sequence[Any]]:
        for row in sheet.iter_rows(values_only=True, min_row=2):
            if any(cell is not None for cell in row):
                yield [*row[:width], *([None] * (width - len(row)))]

    @contextmanager
    def rows() -> Generator[Iterator[RawRow | Reject]]:
        with _workbook(file) as book:
            yield _numbered(file, title, values(book[title]), ParseError)

    return rows


@contextmanager
def _workbook(file: InputFile) -> Generator[Any]:
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to import

    with file.on_disk() as path:
        try:
            with zipfile.ZipFile(path) as archive:
                size = sum(member.file_size for member in archive.infolist())
            if size > min(_MAX_WORKBOOK_BYTES, _WORKBOOK_FREE_BYTES + file.size_bytes * _MAX_WORKBOOK_RATIO):
                raise InvalidRequest(f"{file.name} would unpack to {size:,} bytes.")
            book: Any = load_workbook(path, read_only=True, data_only=True)
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile, ParseError) as error:
            raise InvalidRequest(f"{file.name} cannot be read: {error}.") from None
        try:
            yield book
        finally:
            book.close()
