"""QIF, which Quicken and GnuCash write: lines of a letter and a value, and `^` at the end of each entry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
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
from headgate.sources.money.ledger import AccountFacts, Booking, LedgerKeys
from headgate.sources.protocol import Reject, Row

_HEADER = re.compile(r"^!(?:type:|account|option:|clear:)", re.IGNORECASE | re.MULTILINE)
#: The sections with entries of an account; others hold categories and prices.
_KINDS = {
    "ccard": "card",
    "oth a": "asset",
    "oth l": "liability",
    "invst": "investment",
    "port": "investment",
}
_SECTIONS = frozenset({"bank", "cash", *_KINDS})
_MAX_VALUE = 10_000
_MAX_VALUES = 3000
#: What of an investment takes money from the account, and what moves none.
_OUT = ("buy", "cvrshrt", "miscexp", "margint", "xout", "withdrwx")
_STILL = ("reinv", "shrs", "stksplit", "reminder")
#: What no field holds: the parts of a divided amount, an address, and the facts of a security.
_MORE = dict.fromkeys("SE$", "split") | {"A": "address", "Y": "security", "Q": "quantity", "I": "price"}


def is_qif(head: bytes) -> bool:
    return _HEADER.search(decode(head[:4096])) is not None


def read_qif(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    reader = _QifReader(file)
    for line in lines(content, file.head):
        yield from reader.take(line[:1], line[1:].strip()[:_MAX_VALUE])
    yield from reader.finish()


def _day_text(text: str) -> str:
    """Write a day as others do: Quicken has spaces for digits, and `6/21'26` or `6/ 3' 5` for years from 2000 on."""
    day, mark, year = text.replace(" ", "").replace("'", "/").rpartition("/")
    return f"{day}{mark}{year.zfill(2)}"


class _QifReader:
    """Follows the lines: which account they are of, and the entry that is being read."""

    def __init__(self, file: InputFile) -> None:
        self._place = file.name
        self._label = file_label(file.stem)
        head = decode(file.head).split("\n")
        self._mark = decimal_mark((line[1:] for line in head if line[:1] in {"T", "U", "$"}), ".")
        days = [_day_text(line[1:].strip()) for line in head if line.startswith("D")]
        usual = DayOrder.MONTH_FIRST if self._mark == "." else DayOrder.DAY_FIRST
        self._order = day_order(days) or likely_order(days, None) or usual
        self._keys = LedgerKeys()
        self._section = ""
        self._account: AccountFacts | None = None
        self._accounts: dict[str, AccountFacts] = {}
        self._entry: list[tuple[str, str]] = []
        self._entries = 0

    def take(self, letter: str, value: str) -> Iterator[Row | Reject]:
        if letter == "!":
            self._section, self._entry = value.lower().removeprefix("type:").strip(), []
            if self._section in _SECTIONS and self._account is None:
                yield self._begun(self._label, self._section, "")
        elif letter != "^":
            if value and len(self._entry) < _MAX_VALUES:
                self._entry.append((letter, value))
        elif self._entry:
            values = dict(reversed(self._entry))
            if self._section == "account":
                yield self._begun(values.get("N", ""), values.get("T", "").lower(), values.get("$", ""))
            elif self._section in _SECTIONS and self._account is not None:
                self._entries += 1
                yield self._booking(values, self._account)
            self._entry = []

    def finish(self) -> Iterator[Reject]:
        if self._entry and self._section in _SECTIONS:
            yield Reject(self._place, "The file ends inside an entry.")
        if self._account is None:
            yield Reject(self._place, "The file has no account and no transaction.")

    def _begun(self, label: str, kind: str, balance: str) -> Row:
        kind, known = _KINDS.get(kind, kind), clean(label, 200)
        facts = AccountFacts(label=known, kind=kind or None, balance=amount_of(balance, self._mark))
        # The list of accounts at the beginning may say more than the headers of their entries.
        self._account = self._accounts.setdefault(facts.id, facts)
        return self._account.row()

    def _booking(self, values: dict[str, str], account: AccountFacts) -> Row | Reject:
        is_investment = account.kind == "investment" or "Y" in values
        booked_on = day_of(_day_text(values.get("D", "")), self._order)
        amount = amount_of(values.get("U") or values.get("T") or ("0" if is_investment else ""), self._mark)
        if booked_on is None or amount is None:
            what = "day" if booked_on is None else "amount"
            return Reject(f"{self._place}, entry {self._entries}", f"It has no {what} that can be read.")
        written, action, category = amount, values.get("N"), values.get("L", "")
        amount = _signed(written, action or "") if is_investment else written
        is_transfer = category.startswith("[")
        booking = Booking(
            account=account.id,
            booked_on=booked_on,
            amount=amount,
            description=values.get("M") or values.get("P") or values.get("Y"),
            counterparty=values.get("P"),
            counterparty_account=category.strip("[]") if is_transfer else None,
            kind=action if is_investment else None,
            category=None if is_transfer else category,
            reference=None if is_investment else action,
            more=self._more() | ({} if amount or not written else {"value": str(written)}),
        )
        return booking.row(self._keys.key(booking))

    def _more(self) -> dict[str, str]:
        more: dict[str, str] = {}
        for letter, value in self._entry:
            if name := _MORE.get(letter):
                before = f"{more[name]}{'; ' if letter in 'SA' else ' '}" if name in more else ""
                more[name] = before + value
        return more


def _signed(written: Decimal, action: str) -> Decimal:
    if action.lower().startswith(_STILL):
        return Decimal()
    return -abs(written) if action.lower().startswith(_OUT) else written
