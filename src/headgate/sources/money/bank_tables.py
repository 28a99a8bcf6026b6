"""The tables that banks give as CSV: the head is found, and its columns, marks, orders and signs are understood."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from typing import IO

from headgate.sources.formats.texts import clean, decode, lines
from headgate.sources.formats.written import (
    DayOrder,
    amount_of,
    day_of,
    day_order,
    decimal_mark,
    likely_order,
)
from headgate.sources.inputs.tree import InputFile, file_label
from headgate.sources.money.columns import IBAN, Columns, Role, columns_of, with_other_accounts, with_values
from headgate.sources.money.headless import headless_columns
from headgate.sources.money.ledger import AccountFacts, Booking, LedgerKeys
from headgate.sources.money.signs import OUTGOING, Signs, signs_of
from headgate.sources.protocol import Reject, Row

_DELIMITERS = ";,\t|"
#: Lines before the head of the table: the bank, the account, the period.
_MAX_PREAMBLE = 40
_SAMPLE_ROWS = 300
_MAX_NAME = 200
_MAX_TEXT = 10_000
_IBAN = re.compile(rf"\b({IBAN.pattern})\b")
_ACCOUNT_LINE = re.compile(
    r"(?:konto(?:nummer)?|account(?: number)?|compte|cuenta|rekening)\W*:?[^0-9A-Z]{0,20}([0-9][0-9 ]{3,30}[0-9])",
    re.IGNORECASE,
)
_CURRENCY = re.compile(r"^[A-Z]{3}$")
_DAY_IN_NAME = re.compile(r"(?<!\d)(20\d\d)[-_.]?(0[1-9]|1[0-2])[-_.]?([0-2]\d|3[01])(?!\d)")
#: Since this form an account without a number is named by its file; before, all of them were one.
LABEL_FORM = 2
#: Since this form the currency is part of an account, and more columns, signs and orders of days are understood.
FORM = 4
_ENGLISH = frozenset({"date", "amount", "posting date", "transaction date", "description"})
#: Columns and currencies of countries that write English, and the day first.
_DAY_FIRST_NAMES = frozenset({"money out", "money in", "paid out", "paid in", "sort code", "narrative"})
_MONTH_FIRST_CURRENCIES = frozenset({"", "USD"})
#: Banks that write no number and call every file alike, by columns that only they have.
_BANKS = (("Revolut", {"Product", "Started Date", "Completed Date"}),)
#: The product of which an owner has one in each currency.
_USUAL_PRODUCTS = frozenset({"current"})
_PENDING = frozenset({"pending", "vorgemerkt", "en attente", "pendiente", "in behandeling", "in attesa"})


@dataclass(frozen=True, slots=True)
class BankTable:
    delimiter: str
    #: Lines before the first row.
    skip_lines: int
    columns: Columns
    mark: str
    order: DayOrder
    account: AccountFacts
    signs: Signs

    @property
    def amount_name(self) -> str:
        roles = zip(self.columns.names, self.columns.roles, strict=True)
        return next((name for name, role in roles if role is Role.AMOUNT), "")


def bank_table(file: InputFile, *, form: int = FORM) -> BankTable | None:
    """Understand a file by its beginning; None if it is not a bank's table.

    In a connection of an older form a table is understood as it was then, if it was: its lines keep their keys.
    """
    older = _found(file, is_older=True) if form < FORM else None
    return older or _found(file, is_older=False)


def _found(file: InputFile, *, is_older: bool) -> BankTable | None:
    head = [f"{line}\n" for line in decode(file.head).split("\n")]
    for delimiter in _DELIMITERS:
        for number, line in enumerate(head[:_MAX_PREAMBLE]):
            if delimiter not in line:
                continue
            columns = columns_of(_cells(line, delimiter), is_older=is_older)
            if columns is not None:
                rows = _sample(head[number + 1 :], delimiter)
                account = _account(head[:number], file.stem, columns)
                columns = columns if is_older else with_values(columns, rows)
                columns = with_other_accounts(columns, rows, account.number or "")
                return _table(file, delimiter, number + 1, columns, rows, account, is_older=is_older)
    return None if is_older else _headless(file, head)


def _headless(file: InputFile, head: Sequence[str]) -> BankTable | None:
    is_cut = file.size_bytes > len(file.head)
    for delimiter in _DELIMITERS:
        rows = _sample(head[:-1] if is_cut else head, delimiter)
        mark = decimal_mark((cell for row in rows for cell in row), "." if delimiter == "," else ",")
        columns = headless_columns(rows, mark)
        if columns is not None:
            account = _account((), file.stem, columns)
            return _table(file, delimiter, 0, columns, rows, account, is_older=False)
    return None


def _sample(head: Sequence[str], delimiter: str) -> list[list[str]]:
    return [row for row in islice(_rows(iter(head), delimiter), _SAMPLE_ROWS) if row is not None]


def read_bank_csv(
    file: InputFile, content: IO[bytes], *, form: int = FORM, sign: str | None = None
) -> Iterator[Row | Reject]:
    """Read the lines of a table, and the account at its end. `sign`: what positive amounts were declared to be."""
    table = bank_table(file, form=form)
    if table is None:
        yield Reject(file.name, "This is not a table of payments.")
        return
    reader = _BankCsvReader(file, table, form, sign)
    text = islice(lines(content, file.head), table.skip_lines, None)
    for number, row in enumerate(_rows(text, table.delimiter), table.skip_lines + 1):
        yield from reader.take(f"{file.name}, row {number}", row)
    yield from reader.finish()


class _BankCsvReader:
    def __init__(self, file: InputFile, table: BankTable, form: int, sign: str | None) -> None:
        self._table = table
        self._place = file.name
        self._form = form
        self._label = file_label(file.stem)
        #: Whether its lines are named as before the fourth form.
        self._is_older = form < FORM
        self._sign = sign
        self._outgoing = self._incoming = 0
        self._keys = LedgerKeys()
        self._accounts: dict[str, AccountFacts] = {}
        #: The last line, which the next rows may continue.
        self._last: Booking | None = None

    def take(self, place: str, row: Sequence[str] | None) -> Iterator[Row | Reject]:
        if row is None:
            yield Reject(place, "The row cannot be read: a text in it is too long or has no end.")
            return
        if not any(cell.strip() for cell in row):
            return
        columns, table = self._table.columns, self._table
        if self._last is not None and columns.has_only(row, Role.DESCRIPTION):
            more = " ".join(columns.every(row, Role.DESCRIPTION))
            self._last = replace(self._last, description=f"{self._last.description or ''} {more}"[:_MAX_TEXT])
            return
        yield from self._given()
        day = columns.first(row, Role.BOOKED) or columns.first(row, Role.VALUE)
        booked_on, amount = day_of(day, table.order), self._amount(row)
        if booked_on is not None and amount is not None:
            self._last = self._booking(row, booked_on, amount)
            if self._is_older:
                yield from self._given()
        elif self._is_older or _PENDING.isdisjoint(cell.strip().casefold() for cell in row):
            yield Reject(place, f"It has no {'day' if booked_on is None else 'amount'} that can be read.")

    def finish(self) -> Iterator[Row | Reject]:
        """Yield the last line, the accounts, and what the owner should know of them."""
        yield from self._given()
        every = list(self._accounts.values()) or [self._facts("", "", "")]
        yield from (facts.row() for facts in {facts.id: facts for facts in every}.values())
        signs = self._table.signs
        is_unsigned = not self._outgoing or (signs.is_card and self._outgoing < self._incoming)
        if signs.is_open and self._sign is None and self._incoming and is_unsigned:
            what = "Few amounts" if self._outgoing else "No amount"
            yield Reject(
                self._place,
                f"{what} of the column '{self._table.amount_name[:80]}' {'are' if self._outgoing else 'is'} negative, and nothing else in the file "
                "says which way the money went. Positive ones are stored as money that came in; import the file "
                "again with --declare to turn them.",
            )
        if self._form < LABEL_FORM and any(not facts.number for facts in self._accounts.values()):
            yield Reject(
                self._place,
                "This connection was made when all accounts without a number were one, 'main'. To have them "
                "apart, erase the connection and import its files again.",
            )

    def _given(self) -> Iterator[Row]:
        if self._last is not None:
            yield self._last.row(self._keys.key(self._last))
            self._last = None

    def _amount(self, row: Sequence[str]) -> Decimal | None:
        """Return the amount as the row writes it."""
        columns, mark = self._table.columns, self._table.mark
        if Role.AMOUNT in columns.roles:
            amount = amount_of(columns.first(row, Role.AMOUNT), mark)
            if amount is not None:
                is_outgoing = columns.first(row, Role.SIGN).casefold() in OUTGOING
                return -abs(amount) if is_outgoing else amount
        debit = amount_of(columns.first(row, Role.DEBIT), mark)
        credit = amount_of(columns.first(row, Role.CREDIT), mark)
        if debit is None and credit is None:
            return None
        return abs(credit or Decimal()) - abs(debit or Decimal())

    def _signed(self, row: Sequence[str], written: Decimal) -> tuple[Decimal, Decimal]:
        """Return the amount with the sign that it means, and the one that names its line.

        What a person declares does not change the name of a line, so that importing again mends what is stored; nor
        does what older connections did not read.
        """
        signed = self._table.signs.signed(row, written)
        self._outgoing += signed < 0
        self._incoming += signed > 0
        return (-signed if self._sign == "out" else signed), (written if self._is_older else signed)

    def _booking(self, row: Sequence[str], booked_on: str, written: Decimal) -> Booking:
        columns, table = self._table.columns, self._table
        amount, key_amount = self._signed(row, written)
        party = columns.first(row, Role.PAYEE if amount < 0 else Role.PAYER)
        currency = columns.first(row, Role.CURRENCY).upper()
        facts = self._facts(columns.first(row, Role.ACCOUNT), columns.first(row, Role.PRODUCT), currency)
        return Booking(
            account=facts.id,
            booked_on=booked_on,
            amount=amount,
            key_amount=key_amount,
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
        currency = currency if _CURRENCY.match(currency) else ""
        name = f"{number} {product} {currency}"
        facts = self._accounts.get(name)
        if facts is None:
            known = currency or self._table.account.currency or ""
            number, product = clean(number, _MAX_NAME) or "", clean(product, _MAX_NAME) or ""
            facts = (self._older_account if self._is_older else self._account)(number, product, known)
            if len(self._accounts) < _MAX_NAME:
                self._accounts[name] = facts
        return facts

    def _account(self, number: str, product: str, currency: str) -> AccountFacts:
        """Make an account: a column of accounts may hold names, and one number may have several currencies."""
        whole = self._table.account
        has_number = any(letter.isdigit() for letter in number)
        if has_number or whole.number:
            by_currency = currency if Role.CURRENCY in self._table.columns.roles else None
            return replace(
                whole,
                number=number if has_number else whole.number,
                number_currency=by_currency or None,
                currency=currency or None,
            )
        usual = product.casefold() in _USUAL_PRODUCTS
        parts = (whole.bank or self._label, number, "" if usual else product, currency)
        return replace(whole, label=" ".join(filter(None, parts)) or None, currency=currency or None)

    def _older_account(self, number: str, product: str, currency: str) -> AccountFacts:
        """Make an account with the id that it had in the form of the connection."""
        whole, label = self._table.account, None
        if self._form < LABEL_FORM:
            number = number or product
        elif not (number or whole.number):
            label = " ".join(filter(None, (self._label, product, currency))) or None
        return AccountFacts(number=number or whole.number, label=label, currency=currency or None)


def _clean(text: str) -> str:
    return clean(text, 2000) or ""


def _table(
    file: InputFile,
    delimiter: str,
    skip: int,
    columns: Columns,
    rows: Sequence[Sequence[str]],
    account: AccountFacts,
    *,
    is_older: bool,
) -> BankTable:
    money = (Role.AMOUNT, Role.DEBIT, Role.CREDIT, Role.BALANCE)
    amounts = [columns.first(row, role) for row in rows for role in money]
    mark = decimal_mark(amounts, "." if delimiter == "," else ",")
    days = {
        role: [day for row in rows if (day := columns.first(row, role))] for role in (Role.BOOKED, Role.VALUE)
    }
    order = day_order(day for row in rows for role in days if (day := columns.first(row, role)))
    if order is None and not is_older:
        order = likely_order(days[Role.BOOKED] or days[Role.VALUE], _latest(file.stem))
    order = order or _usual_order(columns, delimiter, rows, is_older=is_older)
    read = [day for text in days[Role.BOOKED] or days[Role.VALUE] if (day := day_of(text, order))]
    is_newest_first = read[0] > read[-1] if read and read[0] != read[-1] else None
    signs = signs_of(columns, rows, mark, is_newest_first=is_newest_first)
    return BankTable(delimiter, skip, columns, mark, order, account, signs)


def _usual_order(
    columns: Columns, delimiter: str, rows: Sequence[Sequence[str]], *, is_older: bool
) -> DayOrder:
    """Choose the order of a day that could be read both ways by the language of the table, and by its currency."""
    names = {name.casefold() for name, role in zip(columns.names, columns.roles, strict=True) if role}
    english = {"date", "amount", "posting date"} if is_older else _ENGLISH
    is_american = delimiter == "," and not names.isdisjoint(english)
    if is_american and not is_older:
        currencies = {columns.first(row, Role.CURRENCY).upper() for row in rows}
        is_american = names.isdisjoint(_DAY_FIRST_NAMES) and currencies <= _MONTH_FIRST_CURRENCIES
    return DayOrder.MONTH_FIRST if is_american else DayOrder.DAY_FIRST


def _latest(name: str) -> str | None:
    """Return the latest day in the name of a file: when it was written, or the end of its period."""
    return max(("-".join(match.groups()) for match in _DAY_IN_NAME.finditer(name)), default=None)


def _account(preamble: Sequence[str], name: str, columns: Columns) -> AccountFacts:
    text = "".join(preamble)[:10_000]
    match = _IBAN.search(text) or _ACCOUNT_LINE.search(text) or _IBAN.search(name)
    bank = next((bank for bank, names in _BANKS if names <= set(columns.names)), None)
    number = clean(match[1], _MAX_NAME) if match else None
    return AccountFacts(number=number, bank=bank, currency=columns.currency)


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
