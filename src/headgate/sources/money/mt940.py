"""MT940 statements and MT942 reports: the tags that banks send over SWIFT."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from typing import IO

from headgate.sources.formats.texts import clean, lines
from headgate.sources.formats.written import amount_of, day_of
from headgate.sources.inputs.tree import InputFile
from headgate.sources.money.ledger import AccountFacts, Booking, LedgerKeys
from headgate.sources.protocol import Reject, Row

#: A few lines of an envelope may stand before the first tag.
_BEGINNING = re.compile(rb"(?:[^\n]{0,300}\n){0,8}?(?:\{[^\n]{0,300})?:20:")
_TAG = re.compile(r"(?:\{.{0,300}\{4:)?:([0-9]{2}[A-Z]?|NS):(.*)", re.DOTALL)
_LINE = re.compile(
    r"(?P<value>\d{6})(?P<entry>\d{4})?(?P<mark>[RE]?[CD])[A-Z]?(?P<amount>\d{1,15}(?:[,.]\d{0,5})?)"
    r"(?P<kind>[A-Z][A-Z0-9]{3})?(?P<reference>[^\n]*?)(?://(?P<bank>[^\n]*))?(?:\n(?P<more>.*))?",
    re.DOTALL,
)
_BALANCE = re.compile(r"(C|D)(\d{6})([A-Z]{3})(\d{1,15}(?:[,.]\d{0,5})?)")
_ACCOUNT = re.compile(r"(?:(?P<bank>.*)/)?(?P<number>[^/]*?\d)\s*/?\s*(?P<currency>[A-Z]{3})?")
#: Texts in numbered parts, as in German: three digits, and the sign that begins each part; and in named ones, as in Dutch.
_NUMBERED = re.compile(r"\s*\d{3}([^\w\s])(?=\d\d)")
_NAMED = re.compile(r"/([A-Z]{3,4})/")
_PARTS = {"00": "/KIND/", "20": "/REMI/", "31": "/IBAN/", "32": "/NAME/"}
#: Parts that go on with the text of the one before them, in lines of so many characters.
_CONTINUED = dict.fromkeys(map(str, (*range(21, 30), 33, *range(60, 64))), "")
_FULL_LINE = 27
#: Named parts inside the purpose of a SEPA payment.
_SEPA = re.compile(r"\b(EREF|KREF|MREF|CRED|DEBT|COAM|OAMT|SVWZ|ABWA|ABWE)\+")
_NO_REFERENCE = frozenset({"NONREF", "NOTPROVIDED", ""})
_MAX_TEXT = 10_000
_HALF_YEAR = 6


def is_mt940(head: bytes) -> bool:
    text = head[:4096].replace(b"\r", b"\n").lstrip(b"\xef\xbb\xbf \n")
    return _BEGINNING.match(text) is not None and b"\n:25" in text and b"\n:28" in text


def read_mt940(file: InputFile, content: IO[bytes]) -> Iterator[Row | Reject]:
    reader = _SwiftReader(file.name)
    tag, text = "", ""
    for line in lines(content, file.head):
        match = _TAG.match(line.rstrip("\n"))
        if match or line.startswith(("-", "{")):
            yield from reader.take(tag, text)
            tag, text = (match[1], match[2][:_MAX_TEXT]) if match else ("", "")
        else:
            text = f"{text}\n{line.rstrip()}"[:_MAX_TEXT]
    yield from reader.take(tag, text)
    yield from reader.finish()


class _SwiftReader:
    """Follows the tags: which account they are of, and the line that the next text belongs to."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._keys = LedgerKeys()
        self._account = AccountFacts()
        self._line: re.Match[str] | None = None
        self._text = ""
        self._lines = 0

    def take(self, tag: str, text: str) -> Iterator[Row | Reject]:
        if tag in {"86", "NS"}:
            self._text = f"{self._text}\n{text}"[:_MAX_TEXT]
            return
        yield from self._end_line()
        if tag == "25":
            self._account = _account(text.partition("\n")[0].strip()[:100])
            yield self._account.row()
        elif tag[:2] in {"60", "62"} and (match := _BALANCE.match(text)):
            amount, day = _amount(match[4], is_out=match[1] == "D"), day_of(f"20{match[2]}")
            self._account = replace(self._account, currency=match[3], balance=amount, balance_on=day)
            yield self._account.row()
        elif tag == "61":
            self._lines += 1
            self._line = _LINE.fullmatch(text.strip())
            if self._line is None:
                yield self._unread()

    def finish(self) -> Iterator[Row | Reject]:
        yield from self._end_line()
        if not self._account.number:
            yield Reject(self._place, "The file has no account.")

    def _end_line(self) -> Iterator[Row | Reject]:
        line, text, self._line, self._text = self._line, self._text, None, ""
        # What is expected (E) is not booked yet.
        if line is None or line["mark"].startswith("E"):
            return
        amount = _amount(line["amount"], is_out=line["mark"] in {"D", "RC"})
        # The year of some banks has a 30th of February.
        value_on = day_of(f"20{line['value']}") or day_of(f"20{line['value'][:2]}{line['entry']}")
        if amount is None or value_on is None:
            yield self._unread()
            return
        parts = _parts(text)
        booking = Booking(
            account=self._account.id,
            booked_on=_booked(value_on, line["entry"]),
            amount=amount,
            value_on=value_on,
            currency=self._account.currency,
            description=parts.get("text") or line["more"],
            counterparty=parts.get("name"),
            counterparty_account=parts.get("account"),
            kind=parts.get("kind") or line["kind"],
            reference=_reference(parts.get("reference")) or _reference(line["reference"]),
            bank_id=_reference(line["bank"]),
        )
        yield booking.row(self._keys.key(booking))

    def _unread(self) -> Reject:
        return Reject(
            f"{self._place}, transaction {self._lines}", "It has no day or amount that can be read."
        )


def _account(text: str) -> AccountFacts:
    match = _ACCOUNT.fullmatch(text)
    number, bank, currency = match.group("number", "bank", "currency") if match else (text, None, None)
    return AccountFacts(number=clean(number, 100), bank=clean(bank, 100), currency=currency)


def _amount(text: str, *, is_out: bool) -> Decimal | None:
    amount = amount_of(text.rstrip(",."), ",")
    return -amount if is_out and amount is not None else amount


def _booked(value_on: str, entry: str | None) -> str:
    """Return the day of the entry, which has no year: it is the one nearest to the day of its value."""
    if entry is None:
        return value_on
    year, months = int(value_on[:4]), int(entry[:2]) - int(value_on[5:7])
    year += (months < -_HALF_YEAR) - (months > _HALF_YEAR)
    return day_of(f"{year}{entry}") or value_on


def _reference(text: str | None) -> str | None:
    return None if text is None or text.strip() in _NO_REFERENCE else text.strip()


def _parts(text: str) -> dict[str, str]:
    """Cut the text of a line into what it says, where it is written in parts."""
    joined = text.replace("\n", "")
    if match := _NUMBERED.match(joined):
        pieces = joined[match.end() :].split(match[1])
        names = _PARTS | _CONTINUED
        joined = "".join(names.get(piece[:2], "/NONE/") + _spaced(piece[2:]) for piece in pieces)
        joined = _SEPA.sub(r"/\1/", joined)
    before, *named = _NAMED.split(joined)
    if not named or before.strip():
        return {"text": text}
    parts = {name: value.strip("/ ") for name, value in zip(named[::2], named[1::2], strict=True)}
    number, _, party = parts.get("CNTP", "").partition("/")
    texts = (parts.get(name) for name in ("SVWZ", "REMI", "USTD", "STRD"))
    return {
        "kind": parts.get("KIND", ""),
        "text": next(filter(None, texts), "") or " ".join(filter(None, parts.values())),
        "name": parts.get("NAME") or party.partition("/")[2].partition("/")[0],
        "account": parts.get("IBAN") or number,
        "reference": parts.get("EREF", ""),
    }


def _spaced(line: str) -> str:
    """End a line that is not full with a space: its last word is whole."""
    return line if len(line) >= _FULL_LINE else f"{line} "
