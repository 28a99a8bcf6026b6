"""Bank statements as a source: every statement of a tree is one connection, whatever its format is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import PurePosixPath
from typing import IO, Any, cast
from xml.etree.ElementTree import ParseError

from headgate.errors import InvalidRequest
from headgate.sources.file_source import ReadFile, read_each
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.money.bank_tables import FORM, BankTable, bank_table, read_bank_csv
from headgate.sources.money.camt import is_camt, read_camt
from headgate.sources.money.ledger import MONEY_STREAMS
from headgate.sources.money.mt940 import is_mt940, read_mt940
from headgate.sources.money.ofx import is_ofx, read_ofx
from headgate.sources.money.qif import is_qif, read_qif
from headgate.sources.protocol import Certainty, FileItem, FileQuestion, Item, Recognised, Reject, Row, Source
from headgate.sources.tables.sheets import is_workbook, sheet_texts

_OFX = frozenset({".ofx", ".qfx", ".qbo", ".sgml"})
_XML = frozenset({".xml"})
_QIF = frozenset({".qif", ".txt"})
_TABLES = frozenset({".csv", ".tsv", ".txt", ".xls"})
#: What positive amounts of a table can be declared to be: money that came in, or money that went out.
_SIGNS = ("in", "out")


class MoneySource(Source):
    """OFX, QFX, QIF, CAMT, MT940, and the tables of banks as CSV and in workbooks."""

    name = "money"
    title = "Bank statements"
    streams = MONEY_STREAMS
    plain_form = 3

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        files = [file for file in tree.files if _reader(file) is not None]
        # One title for all, so that a statement that overlaps an earlier one goes to the same connection.
        return [Recognised(self.name, self.title, files, Certainty.FORMAT, form=FORM)] if files else []

    def corrected(self, recognised: Recognised, corrections: Mapping[str, Any]) -> Recognised:
        """Take which way the money of files went: ``signs = {"card*.csv" = "out"}``."""
        signs: Any = corrections.get("signs")
        is_known = isinstance(signs, dict) and all(
            sign in _SIGNS for sign in cast("dict[str, Any]", signs).values()
        )
        if not is_known or len(corrections) > 1:
            raise InvalidRequest(
                "The corrections of bank statements do not fit.",
                hint='Write [signs], and for each file "NAME.csv" = "out" or "in".',
            )
        for pattern in cast("dict[str, Any]", signs):
            if not any(_is_named(file, pattern) for file in recognised.files):
                raise InvalidRequest(f"No statement is called '{pattern[:80]}'.", hint="See --dry-run.")
        return replace(recognised, facts={**recognised.facts, "signs": dict(cast("dict[str, Any]", signs))})

    def questions(self, recognised: Recognised) -> Sequence[FileQuestion]:
        signs = recognised.facts.get("signs", {})
        tables = ((file, _table(file)) for file in recognised.files if _sign(file, signs) is None)
        return [
            FileQuestion(
                file.name,
                f"{file.name}: no amount of '{table.amount_name}' says which way it went. Is it money that went out?",
            )
            for file, table in tables
            if table is not None and table.signs.is_open
        ]

    def answered(self, recognised: Recognised, answers: Mapping[str, bool]) -> Recognised:
        signs = {file.name: _SIGNS[answers[file.name]] for file in recognised.files if file.name in answers}
        known = recognised.facts.get("signs", {})
        return replace(recognised, facts={**recognised.facts, "signs": {**known, **signs}})

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        signs = recognised.facts.get("signs", {})
        return read_each(recognised, resume, partial(_read, form=recognised.form, signs=signs))


def _is_named(file: InputFile, pattern: str) -> bool:
    return pattern == file.name or fnmatchcase(PurePosixPath(file.name).name, pattern)


def _sign(file: InputFile, signs: Mapping[str, str]) -> str | None:
    return next((sign for pattern, sign in signs.items() if _is_named(file, pattern)), None)


def _texts(file: InputFile) -> list[InputFile]:
    """Return a file of text, or the sheets of a workbook; what cannot be read is left to the source of tables."""
    with suppress(InvalidRequest, ParseError):
        return sheet_texts(file) if is_workbook(file) else [file] if file.suffix in _TABLES else []
    return []


def _table(file: InputFile) -> BankTable | None:
    return next((table for text in _texts(file) if (table := bank_table(text)) is not None), None)


def _reader(file: InputFile, form: int = FORM, sign: str | None = None) -> ReadFile | None:
    if file.suffix in _OFX | _XML and is_ofx(file.head):
        return read_ofx
    if file.suffix in _XML and is_camt(file.head):
        return read_camt
    if file.suffix in _QIF and is_qif(file.head):
        return read_qif
    if is_mt940(file.head):
        return read_mt940
    return partial(_read_tables, form=form, sign=sign) if _table(file) is not None else None


def _read_tables(
    file: InputFile, content: IO[bytes], *, form: int, sign: str | None
) -> Iterator[Row | Reject]:
    for text in _texts(file):
        with nullcontext(content) if text is file else text.open() as opened:
            if text is file or bank_table(text, form=form) is not None:
                yield from read_bank_csv(text, opened, form=form, sign=sign)


def _read(file: InputFile, content: IO[bytes], *, form: int, signs: Mapping[str, str]) -> Iterator[FileItem]:
    reader = _reader(file, form, _sign(file, signs))
    if reader is None:
        yield Reject(file.name, "This is not a statement.")
        return
    name = PurePosixPath(file.name).name
    for item in reader(file, content):
        if isinstance(item, Row) and item.stream == "transactions":
            yield replace(item, data={**item.data, "file": name})
        else:
            yield item


MONEY = MoneySource()
