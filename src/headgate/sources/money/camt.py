"""CAMT.053 statements, 052 reports and 054 notices: the XML that European banks give for an account and its days."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import IO

from headgate.sources.formats.texts import clean
from headgate.sources.formats.written import amount_of, day_of
from headgate.sources.formats.xml_events import XmlRefused, XmlStart, XmlText, xml_events
from headgate.sources.inputs.tree import InputFile
from headgate.sources.money.ledger import AccountFacts, Booking, LedgerKeys
from headgate.sources.protocol import FileItem, Reject, Row

_MAX_VALUE = 10_000
#: Values of one entry that are looked at; a batch may have thousands.
_MAX_VALUES = 400
_CREDIT = "CRDT"
#: What holds the entries of an account: a statement, a report of the day, a notice.
_STATEMENTS = frozenset({"Stmt", "Rpt", "Ntfctn"})
#: Of a report or notice: the statement has it when it is booked.
_PENDING = frozenset({"PDNG", "INFO", "FUTR"})

Path = tuple[str, ...]
#: The text of each path below an entry, in their order.
Values = dict[Path, list[str]]


def is_camt(head: bytes) -> bool:
    text = head.replace(b"\0", b"")
    return re.search(rb"camt\.05[234]\.|<BkToCstmr(?:Stmt|AcctRpt|DbtCdtNtfctn)\b", text) is not None


def read_camt(file: InputFile, content: IO[bytes]) -> Iterator[FileItem]:
    reader = _CamtReader(file.name)
    try:
        for event in xml_events(content):
            if isinstance(event, XmlStart):
                reader.start(event)
            elif not isinstance(event, XmlText):
                yield from reader.end(event.text)
    except XmlRefused as error:
        yield Reject(file.name, str(error))


class _CamtReader:
    def __init__(self, place: str) -> None:
        self._place = place
        self._keys = LedgerKeys()
        self._path: list[str] = []
        self._entry_at: int | None = None
        self._entry: Values = {}
        self._entries = 0
        self._account: Values = {}
        self._balance: dict[str, str] = {}
        self._balances: list[dict[str, str]] = []
        self._period: dict[str, str] = {}
        #: When a report was made: its entries may have no day.
        self._made = ""

    def start(self, event: XmlStart) -> None:
        self._path.append(event.name)
        if event.name in _STATEMENTS:
            self._account, self._balances, self._period = {}, [], {}
        elif event.name == "Ntry" and self._entry_at is None:
            self._entry_at, self._entry = len(self._path), {}
        elif event.name == "Bal":
            self._balance = {}
        if event.name == "Amt" and "Ccy" in event.attributes:
            self._put("Ccy", event.attributes["Ccy"])

    def end(self, text: str) -> Iterator[FileItem]:
        if text.strip():
            self._put(None, text)
        name = self._path.pop()
        if self._entry_at is not None and len(self._path) < self._entry_at:
            self._entry_at = None
            if "Stmt" in self._path or _first(self._entry, ("Sts",), ("Sts", "Cd")) not in _PENDING:
                yield self._booking()
        elif name == "Bal":
            self._balances.append(self._balance)
        elif name in _STATEMENTS:
            facts = self._facts()
            yield facts.row()
            # Reports and notices have what happened so far, and some of it.
            if name == "Stmt":
                yield from facts.covered(self._period.get("FrDtTm", ""), self._period.get("ToDtTm", ""))

    def _put(self, attribute: str | None, text: str) -> None:
        value = text.strip()[:_MAX_VALUE]
        more = () if attribute is None else (attribute,)
        if self._entry_at is not None:
            _add(self._entry, (*self._path[self._entry_at :], *more), value)
        elif "Bal" in self._path:
            self._balance.setdefault((*self._path, *more)[-1], value)
        elif "FrToDt" in self._path:
            self._period[self._path[-1]] = value
        elif "Acct" in self._path:
            _add(self._account, (*self._path[self._path.index("Acct") + 1 :], *more), value)
        elif self._path[-1] == "CreDtTm" and "Stmt" not in self._path:
            self._made = value

    def _facts(self) -> AccountFacts:
        closing = next(
            (balance for balance in self._balances if balance.get("Cd") == "CLBD"), dict[str, str]()
        )
        account = self._account
        return AccountFacts(
            number=_number(account),
            name=_first(account, ("Nm",)),
            bank=_ending(account, ("FinInstnId", "Nm"), ("FinInstnId", "BICFI"), ("FinInstnId", "BIC")),
            owner=_ending(account, ("Ownr", "Nm")),
            currency=_first(account, ("Ccy",)),
            balance=_signed(closing.get("Amt", ""), closing.get("CdtDbtInd", _CREDIT)),
            balance_on=day_of(closing.get("Dt", "") or closing.get("DtTm", "")),
        )

    def _booking(self) -> Row | Reject:
        self._entries += 1
        entry = self._entry
        booked_on = day_of(
            _first(entry, ("BookgDt", "Dt"), ("BookgDt", "DtTm"), ("ValDt", "Dt")) or self._made
        )
        amount = _signed(_first(entry, ("Amt",)) or "", _first(entry, ("CdtDbtInd",)) or "")
        if booked_on is None or amount is None:
            what = "day" if booked_on is None else "amount"
            return Reject(f"{self._place}, entry {self._entries}", f"It has no {what} that can be read.")
        other = "Dbtr" if amount > 0 else "Cdtr"
        booking = Booking(
            account=AccountFacts(number=_number(self._account)).id,
            booked_on=booked_on,
            amount=amount,
            value_on=day_of(_first(entry, ("ValDt", "Dt"), ("ValDt", "DtTm")) or ""),
            currency=_first(entry, ("Amt", "Ccy")),
            description=_remittance(entry),
            counterparty=_single(entry, ("RltdPties", other, "Nm"), ("RltdPties", other, "Pty", "Nm")),
            counterparty_account=_single(
                entry, (f"{other}Acct", "Id", "IBAN"), (f"{other}Acct", "Othr", "Id")
            ),
            kind=_ending(entry, ("BkTxCd", "Prtry", "Cd")) or _ending(entry, ("Fmly", "SubFmlyCd")),
            status=_first(entry, ("Sts",), ("Sts", "Cd")),
            reference=_single(entry, ("Refs", "EndToEndId")),
            bank_id=_first(entry, ("AcctSvcrRef",), ("NtryRef",)),
        )
        return booking.row(self._keys.key(booking))


def _add(values: Values, path: Path, value: str) -> None:
    if len(values) < _MAX_VALUES:
        texts = values.setdefault(path, [])
        if len(texts) < _MAX_VALUES:
            texts.append(value)


def _number(account: Values) -> str | None:
    return _first(account, ("Id", "IBAN"), ("Id", "Othr", "Id"))


def _first(values: Values, *paths: Path) -> str | None:
    return next((clean(values[path][0]) for path in paths if path in values), None)


def _ending(values: Values, *endings: Path) -> str | None:
    return next((end[0] for ending in endings for end in _ends(values, ending)), None)


def _single(values: Values, *endings: Path) -> str | None:
    """Return the value, unless there are several different ones, as in a batch of payments."""
    every = {text for ending in endings for end in _ends(values, ending) for text in end}
    return every.pop() if len(every) == 1 else None


def _ends(values: Values, ending: Path) -> Iterator[list[str]]:
    return (texts for path, texts in values.items() if path[-len(ending) :] == ending)


def _remittance(entry: Values) -> str | None:
    texts = [
        text
        for ending in (("RmtInf", "Ustrd"), ("CdtrRefInf", "Ref"))
        for end in _ends(entry, ending)
        for text in end
    ]
    more = _first(entry, ("AddtlNtryInf",)) or _ending(entry, ("AddtlTxInf",))
    return clean(" ".join(texts), _MAX_VALUE) or more


def _signed(text: str, indicator: str) -> Decimal | None:
    amount = amount_of(text, ".")
    if amount is None or indicator not in {_CREDIT, "DBIT"}:
        return None
    return amount if indicator == _CREDIT else -amount
