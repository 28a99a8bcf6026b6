"""Bank statements as a source: every statement of a tree is one connection. OFX, CAMT, and the tables that banks give as CSV.

Of a table the head is found, and its columns, marks and orders are understood.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import islice
from typing import IO, Any

from headgate.sources.file_source import ReadFile, read_each
from headgate.sources.formats.texts import clean, decode, lines
from headgate.sources.inputs.tree import InputFile, InputTree, file_label
from headgate.sources.money.camt import is_camt, read_camt
from headgate.sources.money.columns import Columns, Role, columns_of, with_other_accounts
from headgate.sources.money.ledger import (
    MONEY_STREAMS,
    AccountFacts,
    Booking,
    DayOrder,
    LedgerKeys,
    amount_of,
    day_of,
    day_order,
    decimal_mark,
)
from headgate.sources.money.ofx import is_ofx, read_ofx
from headgate.sources.protocol import Certainty, Item, Recognised, Reject, Row, Source

_DELIMITERS = ";,\t|"
#: Lines before the head of the table: the bank, the account, the period.
_MAX_PREAMBLE = 40
_SAMPLE_ROWS = 300
_MAX_NAME = 200
_IBAN = re.compile(r"\b([A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?)\b")
_ACCOUNT_LINE = re.compile(
    r"(?:konto(?:nummer)?|account(?: number)?|compte|cuenta|rekening)\W*:?[^0-9A-Z]{0,20}([0-9][0-9 ]{3,30}[0-9])",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"^[A-Z]{3}$")
#: Since this form an account without a number is named by its file; before, all of them were one.
FORM = 2
_OUTGOING = frozenset(
    {"s", "soll", "d", "dr", "debit", "dbit", "db", "debe", "cargo", "-", "af", "debe(-)", "débit"}
)


@dataclass(frozen=True, slots=True)
class BankTable:
    delimiter: str
    #: Lines before the first row.
    skip_lines: int
    columns: Columns
    mark: str
    order: DayOrder
    account: AccountFacts


def bank_table(file: InputFile) -> BankTable | None:
    """Understand a file by its beginning; None if it is not a bank's table."""
    head = [f"{line}\n" for line in decode(file.head).split("\n")]
    for delimiter in _DELIMITERS:
        for number, line in enumerate(head[:_MAX_PREAMBLE]):
            columns = columns_of(_cells(line, delimiter)) if delimiter in line else None
            if columns is not None:
                sample = _rows(iter(head[number + 1 :]), delimiter)
                rows = [row for row in islice(sample, _SAMPLE_ROWS) if row is not None]
                account = _account(head[:number], file.stem, columns)
                columns = with_other_accounts(columns, rows, account.number or "")
                return _table(delimiter, number + 1, columns, rows, account)
    return None


def read_bank_csv(file: InputFile, content: IO[bytes], *, form: int = FORM) -> Iterator[Row | Reject]:
    """Read the lines of a table, and the account at its end."""
    table = bank_table(file)
    if table is None:
        yield Reject(file.name, "This is not a table of payments.")
        return
    reader = _BankCsvReader(table, file_label(file.stem) if form >= FORM else None)
    text = islice(lines(content, file.head), table.skip_lines, None)
    for number, row in enumerate(_rows(text, table.delimiter), table.skip_lines + 1):
        item = reader.take(f"{file.name}, row {number}", row)
        if item is not None:
            yield item
    yield from reader.accounts()


class _BankCsvReader:
    def __init__(self, table: BankTable, label: str | None) -> None:
        self._table = table
        #: Of accounts without a number; None: all of them are one, as in connections of the first form.
        self._label = label
        self._keys = LedgerKeys()
        self._accounts: dict[str, AccountFacts] = {}

    def take(self, place: str, row: Sequence[str] | None) -> Row | Reject | None:
        if row is None:
            return Reject(place, "The row cannot be read: a text in it is too long or has no end.")
        if not any(cell.strip() for cell in row):
            return None
        columns, table = self._table.columns, self._table
        day = columns.first(row, Role.BOOKED) or columns.first(row, Role.VALUE)
        booked_on, amount = day_of(day, table.order), self._amount(row)
        if booked_on is None or amount is None:
            return Reject(place, f"It has no {'day' if booked_on is None else 'amount'} that can be read.")
        booking = self._booking(row, booked_on, amount)
        return booking.row(self._keys.key(booking))

    def accounts(self) -> Iterator[Row]:
        for facts in self._accounts.values() or (self._facts("", "", ""),):
            yield facts.row()

    def _amount(self, row: Sequence[str]) -> Decimal | None:
        columns, mark = self._table.columns, self._table.mark
        if Role.AMOUNT in columns.roles:
            amount = amount_of(columns.first(row, Role.AMOUNT), mark)
            if amount is not None:
                is_outgoing = columns.first(row, Role.SIGN).casefold() in _OUTGOING
                return -abs(amount) if is_outgoing else amount
        debit = amount_of(columns.first(row, Role.DEBIT), mark)
        credit = amount_of(columns.first(row, Role.CREDIT), mark)
        if debit is None and credit is None:
            return None
        return abs(credit or Decimal()) - abs(debit or Decimal())

    def _booking(self, row: Sequence[str], booked_on: str, amount: Decimal) -> Booking:
        columns, table = self._table.columns, self._table
        party = columns.first(row, Role.PAYEE if amount < 0 else Role.PAYER)
        currency = columns.first(row, Role.CURRENCY).upper()
        facts = self._facts(columns.first(row, Role.ACCOUNT), columns.first(row, Role.PRODUCT), currency)
        return Booking(
            account=facts.id,
            booked_on=booked_on,
            amount=amount,
            value_on=day_of(columns.first(row, Role.VALUE), table.order),
            currency=currency if _CURRENCY.match(currency) else table.account.currency,
            description=" ".join(columns.every(row, Role.DESCRIPTION)),
            counterparty=columns.first(row, Role.COUNTERPARTY) or party,
            counterparty_account=columns.first(row, Role.OTHER_ACCOUNT),
            kind=columns.first(row, Role.KIND),
            category=columns.first(row, Role.CATEGORY),
            status=columns.first(row, Role.STATUS),
            reference=columns.first(row, Role.REFERENCE),
            bank_id=columns.first(row, Role.BANK_ID),
            balance_after=amount_of(columns.first(row, Role.BALANCE), table.mark),
            more={_clean(name): _clean(text) for name, text in columns.others(row).items()},
        )

    def _facts(self, number: str, product: str, currency: str) -> AccountFacts:
        whole = self._table.account
        number = clean(number, _MAX_NAME) or ""
        currency = currency if _CURRENCY.match(currency) else whole.currency or ""
        label: str | None = None
        if self._label is None:
            number = number or clean(product, _MAX_NAME) or ""
        elif not (number or whole.number):
            label = " ".join(filter(None, (self._label, clean(product, _MAX_NAME), currency))) or None
        name = label or number
        facts = self._accounts.get(name)
        if facts is None:
            facts = AccountFacts(number=number or whole.number, label=label, currency=currency or None)
            if len(self._accounts) < _MAX_NAME:
                self._accounts[name] = facts
        return facts


def _clean(text: str) -> str:
    return clean(text, 2000) or ""


def _table(
    delimiter: str, skip: int, columns: Columns, rows: Sequence[Sequence[str]], account: AccountFacts
) -> BankTable:
    money = (Role.AMOUNT, Role.DEBIT, Role.CREDIT, Role.BALANCE)
    amounts = [columns.first(row, role) for row in rows for role in money]
    days = [columns.first(row, role) for row in rows for role in (Role.BOOKED, Role.VALUE)]
    is_english = any(
        role in columns.roles and name.casefold() in {"date", "amount", "posting date"}
        for role, name in zip(columns.roles, columns.names, strict=True)
    )
    order = DayOrder.MONTH_FIRST if is_english and delimiter == "," else DayOrder.DAY_FIRST
    mark = decimal_mark(amounts, "." if delimiter == "," else ",")
    return BankTable(delimiter, skip, columns, mark, day_order(days, order), account)


def _account(preamble: Sequence[str], name: str, columns: Columns) -> AccountFacts:
    text = "".join(preamble)[:10_000]
    match = _IBAN.search(text) or _ACCOUNT_LINE.search(text) or _IBAN.search(name)
    return AccountFacts(number=clean(match[1], _MAX_NAME) if match else None, currency=columns.currency)


def _cells(line: str, delimiter: str) -> list[str]:
    return next((row for row in _rows(iter([line]), delimiter) if row is not None), list[str]())


def _rows(text: Iterator[str], delimiter: str) -> Iterator[list[str] | None]:
    """Read rows; None in place of one that is no row, after which the next line begins a new one."""
    reader = csv.reader(text, delimiter=delimiter)
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:
            yield None


_OFX = frozenset({".ofx", ".qfx", ".qbo"})
_TABLES = frozenset({".csv", ".tsv", ".txt"})


class MoneySource(Source):
    """OFX, QFX, CAMT.053 and the CSV files of banks."""

    name = "money"
    title = "Bank statements"
    streams = MONEY_STREAMS
    plain_form = FORM + 1

    def detect(self, tree: InputTree) -> Sequence[Recognised]:
        files = [file for file in tree.files if _reader(file) is not None]
        # One title for all, so that a statement that overlaps an earlier one goes to the same connection.
        form = self.plain_form
        return [Recognised(self.name, self.title, files, Certainty.FORMAT, form=form)] if files else []

    def read(self, recognised: Recognised, resume: Mapping[str, Any]) -> Iterator[Item]:
        return read_each(recognised, resume, partial(_read, form=recognised.form))


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
