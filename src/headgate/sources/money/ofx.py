"""OFX and QFX statements, SGML (1.x) and XML (2.x) alike, by their tags.

Both are the same flat tokens: a tag, and a value up to the next tag. No document type or entity is interpreted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import IO

from headgate.sources.formats.texts import clean, decoded_pieces
from headgate.sources.formats.written import amount_of, day_of
from headgate.sources.inputs.tree import InputFile
from headgate.sources.money.ledger import AccountFacts, Booking, LedgerKeys
from headgate.sources.protocol import FileItem, Reject

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9._]*)>([^<]*)")
_MAX_BUFFER = 1024 * 1024
_MAX_VALUE = 10_000
_MAX_MEMBERS = 100
#: What brackets one line: payments, and what happens to securities.
_LINES = frozenset(
    ["STMTTRN"]
    + [f"{deed}{kind}" for deed in ("BUY", "SELL") for kind in ("DEBT", "MF", "OPT", "OTHER", "STOCK")]
    + ["INCOME", "REINVEST", "INVEXPENSE", "MARGININTEREST", "RETOFCAP"]
    + ["TRANSFER", "JRNLSEC", "JRNLFUND", "SPLIT", "CLOSUREOPT"]
)
#: What may happen to securities without any money.
_STILL = frozenset({"TRANSFER", "JRNLSEC", "SPLIT", "CLOSUREOPT"})
_ACCOUNTS = frozenset({"BANKACCTFROM", "CCACCTFROM", "INVACCTFROM"})
#: What is about one account: a statement, or an entry of a list of accounts.
_STATEMENTS = frozenset({"STMTRS", "CCSTMTRS", "INVSTMTRS", "BANKACCTINFO", "CCACCTINFO", "INVACCTINFO"})
_BALANCES = frozenset({"LEDGERBAL"})
_NO_NUMBER = frozenset({"", "0"})


def is_ofx(head: bytes) -> bool:
    text = head[:4096].replace(b"\0", b"").upper()
    return b"OFXHEADER" in text or b"<OFX>" in text


def read_ofx(file: InputFile, content: IO[bytes]) -> Iterator[FileItem]:
    reader = _OfxReader(file.name)
    for is_end, name, value in _tokens(decoded_pieces(content, file.head)):
        yield from reader.take(is_end=is_end, name=name, value=value)
    yield from reader.finish()


def _tokens(pieces: Iterator[str]) -> Iterator[tuple[bool, str, str]]:
    rest = ""
    for piece in pieces:
        rest += piece
        last = rest.rfind("<")
        if last > 0:
            yield from _tags(rest[:last])
            rest = rest[last:]
        # A value without an end: nothing of it is worth more than its beginning.
        rest = rest[:_MAX_BUFFER]
    yield from _tags(rest)


def _tags(text: str) -> Iterator[tuple[bool, str, str]]:
    for tag in _TAG.finditer(text):
        yield bool(tag[1]), tag[2].upper(), tag[3].strip()[:_MAX_VALUE]


class _OfxReader:
    """Follows the tags: which account and line the next value belongs to."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._keys = LedgerKeys()
        self._bank: str | None = None
        self._currency: str | None = None
        self._account: dict[str, str] = {}
        self._balance: dict[str, str] = {}
        self._line: dict[str, str] = {}
        self._period = ("", "")
        self._lines = 0
        self._accounts = 0
        self._open: str | None = None

    def take(self, *, is_end: bool, name: str, value: str) -> Iterator[FileItem]:
        if is_end:
            yield from self._close(name)
        elif name in _LINES:
            if self._open in _LINES:
                yield from self._booking(self._open or "")
            self._open, self._line = name, {}
        elif name in _STATEMENTS:
            self._account, self._balance, self._currency, self._period = {}, {}, None, ("", "")
        elif name in _ACCOUNTS | _BALANCES:
            self._open = name
        elif value:
            self._set(name, html.unescape(value))

    def finish(self) -> Iterator[FileItem]:
        """Yield what an end of the file in the middle leaves."""
        if self._open in _LINES:
            yield Reject(self._place, "The file ends inside a transaction.")
        if self._account:
            yield self._facts().row()
        elif not self._lines and not self._accounts:
            yield Reject(self._place, "The file has no account and no transaction.")

    def _close(self, name: str) -> Iterator[FileItem]:
        if name == self._open:
            if name in _LINES:
                yield from self._booking(name)
            self._open = None
        elif name in _STATEMENTS and self._account:
            facts = self._facts()
            yield facts.row()
            yield from facts.covered(*self._period)
            self._accounts += 1
            self._account, self._balance = {}, {}

    def _set(self, name: str, value: str) -> None:
        if name == "CURDEF":
            self._currency = clean(value, 10)
        elif name == "DTSTART":
            self._period = value, ""
        elif name == "DTEND":
            self._period = self._period[0], value
        elif name == "ORG":
            self._bank = clean(value, _MAX_VALUE)
        else:
            members = self._members()
            if members is not None and len(members) < _MAX_MEMBERS:
                members.setdefault(name, value)

    def _members(self) -> dict[str, str] | None:
        if self._open in _ACCOUNTS:
            return self._account
        if self._open in _BALANCES:
            return self._balance
        return self._line if self._open else None

    def _facts(self) -> AccountFacts:
        account, balance = self._account, self._balance
        return AccountFacts(
            number=clean(account.get("ACCTID"), 100),
            bank=self._bank or clean(account.get("BANKID"), 100),
            kind=(clean(account.get("ACCTTYPE"), 100) or "account").lower(),
            currency=self._currency,
            balance=amount_of(balance.get("BALAMT", ""), "."),
            balance_on=day_of(balance.get("DTASOF", "")),
        )

    def _booking(self, kind: str) -> Iterator[FileItem]:
        self._lines += 1
        line = self._line
        booked_on = day_of(line.get("DTPOSTED") or line.get("DTTRADE") or "")
        written = line.get("TRNAMT") or line.get("TOTAL") or ("0" if kind in _STILL else "")
        amount = amount_of(written, ".")
        if booked_on is None or amount is None:
            what = "day" if booked_on is None else "amount"
            yield Reject(f"{self._place}, transaction {self._lines}", f"It has no {what} that can be read.")
            return
        number = line.get("FITID", "").strip()
        booking = Booking(
            account=AccountFacts(number=clean(self._account.get("ACCTID"), 100)).id,
            booked_on=booked_on,
            amount=amount,
            value_on=day_of(line.get("DTAVAIL", "")),
            currency=clean(line.get("CURSYM"), 10) or self._currency,
            description=line.get("MEMO") or line.get("NAME") or line.get("PAYEE"),
            counterparty=line.get("NAME") or line.get("PAYEE"),
            counterparty_account=line.get("ACCTID"),
            kind=(line.get("TRNTYPE") or kind).lower(),
            reference=line.get("CHECKNUM") or line.get("REFNUM"),
            bank_id=number or None,
            more={name.lower(): line[name] for name in ("UNIQUEID", "UNITS") if name in line},
        )
        has_number = number not in _NO_NUMBER
        yield booking.row(self._keys.numbered(booking) if has_number else self._keys.key(booking))
