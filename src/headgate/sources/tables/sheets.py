"""The sheets of workbooks as rows of values: Excel of both kinds, and OpenDocument."""

from __future__ import annotations

import csv
import importlib
import io
import zipfile
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import IO, Any, cast
from xml.etree.ElementTree import ParseError

from headgate.errors import InvalidRequest
from headgate.sources.formats.compound import SIGNATURE
from headgate.sources.inputs.tree import HEAD_BYTES, InputFile

_OPEN_XML = frozenset({".xlsx", ".xlsm"})
_SUFFIXES = _OPEN_XML | {".xls", ".xlsb", ".ods"}
_ZIP = b"PK"
#: How much a workbook may hold unpacked, and how many times its size.
_MAX_WORKBOOK_BYTES = 2 * 1024**3
_MAX_WORKBOOK_RATIO = 200
_WORKBOOK_FREE_BYTES = 16 * 1024**2

#: Begins to give the rows of a sheet.
SheetRows = Callable[[], Iterator[Sequence[Any]]]


def is_workbook(file: InputFile) -> bool:
    return file.suffix in _SUFFIXES and file.head.startswith((_ZIP, SIGNATURE))


@contextmanager
def sheets_of(file: InputFile) -> Generator[Mapping[str, SheetRows]]:
    """Open a workbook: its sheets by their titles.

    Raises:
        InvalidRequest: it cannot be read, needs a password, or is too large.
    """
    is_zip = file.head.startswith(_ZIP)
    # The library for the other formats has a whole sheet in memory, and other values for days and numbers.
    opened = _streamed if is_zip and file.suffix in _OPEN_XML else _loaded
    with file.on_disk() as path, ExitStack() as stack:
        try:
            if is_zip:
                _refuse_bomb(file, path)
            sheets = stack.enter_context(opened(file, path))
        except (ValueError, KeyError, TypeError, OSError, zipfile.BadZipFile, ParseError) as error:
            raise InvalidRequest(f"{file.name} cannot be read: {error}.") from None
        yield sheets


def _refuse_bomb(file: InputFile, path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        size = sum(member.file_size for member in archive.infolist())
    if size > min(_MAX_WORKBOOK_BYTES, _WORKBOOK_FREE_BYTES + file.size_bytes * _MAX_WORKBOOK_RATIO):
        raise InvalidRequest(f"{file.name} would unpack to {size:,} bytes.")


@contextmanager
def _streamed(_file: InputFile, path: Path) -> Generator[Mapping[str, SheetRows]]:
    from openpyxl import load_workbook  # noqa: PLC0415 - slow to import

    book: Any = load_workbook(path, read_only=True, data_only=True)
    with closing(book):
        yield {sheet.title: partial(sheet.iter_rows, values_only=True) for sheet in book.worksheets}


@contextmanager
def _loaded(file: InputFile, path: Path) -> Generator[Mapping[str, SheetRows]]:
    # Seldom needed, and typed in part only.
    library: Any = importlib.import_module("python_calamine")
    try:
        with library.CalamineWorkbook.from_path(path) as book:
            yield {title: partial(_values, book, title) for title in book.sheet_names}
    except library.PasswordError:
        raise InvalidRequest(
            f"{file.name} is encrypted with a password.", hint="Save it without one, and import it again."
        ) from None
    except library.CalamineError as error:
        raise InvalidRequest(f"{file.name} cannot be read: {str(error)[:200]}.") from None


def _values(book: Any, title: str) -> Iterator[Sequence[Any]]:
    """Yield rows as the other library does: nothing for an empty cell, whole numbers as integers."""
    for row in book.get_sheet_by_name(title).iter_rows():
        whole = (int(cell) if isinstance(cell, float) and cell.is_integer() else cell for cell in row)
        yield [None if cell == "" else cell for cell in whole]


def sheet_texts(file: InputFile) -> list[InputFile]:
    """Return each sheet of a workbook as a file of comma-separated values, written while it is read.

    Raises:
        InvalidRequest: it cannot be read.
    """
    with sheets_of(file) as sheets:
        titles = list(sheets)
    # Their size is more than their beginning, whatever that is; it is not known before they are read.
    return [
        replace(
            file,
            name=f"{file.name.removesuffix(file.suffix)} {title}{file.suffix}" if number else file.name,
            size_bytes=HEAD_BYTES + 1,
            open=lambda title=title: cast("IO[bytes]", closing(_Pieces(_written(file, title)))),
        )
        for number, title in enumerate(titles)
    ]


def _written(file: InputFile, title: str) -> Generator[bytes]:
    with sheets_of(file) as sheets:
        for row in sheets[title]():
            line = io.StringIO()
            csv.writer(line, lineterminator="\n").writerow(map(_text, row))
            yield line.getvalue().encode("utf-8", "replace")


def _text(value: Any) -> str:
    if isinstance(value, float):
        # As many digits as a spreadsheet shows: what was computed has errors behind them.
        return f"{value:.15g}"
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return "" if value is None else value.isoformat() if isinstance(value, date | time) else str(value)


class _Pieces:
    """Pieces of bytes that are made when they are read."""

    def __init__(self, pieces: Generator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""
        self.close = pieces.close

    def read(self, size: int) -> bytes:
        while len(self._rest) < size and (piece := next(self._pieces, b"")):
            self._rest += piece
        part, self._rest = self._rest[:size], self._rest[size:]
        return part
