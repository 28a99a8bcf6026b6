"""Bank statements as a source: every statement of a tree is one connection."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import IO, Any

from headgate.sources.file_source import ReadFile, read_each
from headgate.sources.inputs.tree import InputFile, InputTree
from headgate.sources.money.bank_csv import FORM, bank_table, read_bank_csv
from headgate.sources.money.camt import is_camt, read_camt
from headgate.sources.money.ledger import MONEY_STREAMS
from headgate.sources.money.ofx import is_ofx, read_ofx
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row, Source

_OFX = frozenset({".ofx", ".qfx", ".qbo"})
_TABLES = frozenset({".csv", ".tsv", ".txt"})


class MoneySource(Source):
    """OFX, QFX, CAMT.053 and the CSV files of banks."""

    name = "money"
    title = "Bank statements"
    streams = MONEY_STREAMS

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        """Take every file that is a statement."""
        files = [file for file in tree.files if _reader(file) is not None]
        # One title for all, so that a statement that overlaps an earlier one goes to the same connection.
        return [Recognised(self.name, self.title, files, Certainty.FORMAT, form=FORM)] if files else []

    def read(self, found: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(found, resume, partial(_read, form=found.form))


def _reader(file: InputFile, form: int = FORM) -> ReadFile | None:
    if file.suffix in _OFX and is_ofx(file.head):
        return read_ofx
    if file.suffix == ".xml" and is_camt(file.head):
        return read_camt
    if file.suffix in _TABLES and bank_table(file) is not None:
        return partial(read_bank_csv, form=form)
    return None


def _read(file: InputFile, content: IO[bytes], *, form: int) -> Iterator[Row | Reject]:
    reader = _reader(file, form)
    if reader is None:
        return iter((Reject(file.name, "This is not a statement."),))
    return reader(file, content)


MONEY = MoneySource()
