"""The rows that every statement format becomes: their amounts and days, their keys, and their declaration."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from enum import Enum
from typing import Any

from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, digest_of
from headgate.sources.protocol import Covered, Row

_SIGNS = "+\\-\u2212\u2013"
_SPACES = " '\u2019\u00a0\u202f\u2009"
_AMOUNT = re.compile(
    rf"""^(?P<open>\()?\s*(?P<before>[{_SIGNS}])?\s*(?:[A-Za-z]{{3}}|[€$£¥])?\s*(?P<inner>[{_SIGNS}])?\s*
    (?P<number>[0-9][0-9.,{_SPACES}]*|[.,][0-9]+)
    \s*(?P<tail>[A-Za-z]{{1,3}}|[€$£¥])?\s*(?P<after>[{_SIGNS}])?\s*(?:\))?$""",
    re.VERBOSE,
)
_DEBIT_TAILS = frozenset({"s", "d", "dr", "db"})
_MAX_AMOUNT_CHARS = 40
_THOUSAND_DIGITS = 3
#: An amount beyond this is not money, and would lose its small digits as a number.
_MOST = Decimal(10) ** 15


class DayOrder(Enum):
    """Which of the first two numbers of a day is the day."""

    DAY_FIRST = "dmy"
    MONTH_FIRST = "mdy"


def amount_of(text: str, mark: str) -> Decimal | None:
    """Read an amount; `mark` is the decimal mark of the file, for what could be read both ways."""
    match = _AMOUNT.match(text.strip()) if len(text) <= _MAX_AMOUNT_CHARS else None
    if match is None:
        return None
    try:
        value = Decimal(_plain(match["number"], mark))
    except InvalidOperation:
        return None
    signs = {match["before"], match["inner"], match["after"]} - {None, "+"}
    is_negative = bool(signs or match["open"] or (match["tail"] or "").lower() in _DEBIT_TAILS)
    return (-value if is_negative else value) if value < _MOST else None


def amount_text(value: Decimal) -> str:
    """Write an amount the same way whatever digits the bank wrote: at least two after the point."""
    exact = value.normalize()
    if exact == 0:
        return "0.00"
    exponent = exact.as_tuple().exponent
    assert isinstance(exponent, int)
    return format(exact if exponent <= -2 else exact.quantize(Decimal("0.01")), "f")  # noqa: PLR2004 - cents


def decimal_mark(samples: Iterable[str], default: str) -> str:
    """Find the decimal mark by amounts that can only be read one way."""
    votes = {",": 0, ".": 0}
    for sample in samples:
        match = _AMOUNT.match(sample.strip()) if len(sample) <= _MAX_AMOUNT_CHARS else None
        marks = re.findall(r"[.,]", match["number"]) if match else []
        if not marks:
            continue
        digits = len(re.split(r"[.,]", match["number"].strip(_SPACES))[-1]) if match else 0
        if len(set(marks)) > 1 or (len(marks) == 1 and digits != _THOUSAND_DIGITS):
            votes[marks[-1]] += 1
    return default if votes[","] == votes["."] else max(votes, key=lambda mark: votes[mark])


def _plain(number: str, mark: str) -> str:
    digits = re.sub(f"[{_SPACES}]", "", number).rstrip(".,")
    marks = re.findall(r"[.,]", digits)
    if not marks:
        return digits
    last = marks[-1]
    tail = len(digits) - digits.rindex(last) - 1
    is_decimal = len(set(marks)) > 1 or (len(marks) == 1 and (last == mark or tail != _THOUSAND_DIGITS))
    if not is_decimal:
        return re.sub(r"[.,]", "", digits)
    whole, _, fraction = digits.rpartition(last)
    return f"{re.sub(r'[.,]', '', whole) or '0'}.{fraction}"


_YEAR_FIRST = re.compile(r"^([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?:[ T,].*|Z|[+-][0-9]{2}:[0-9]{2})?$")
_COMPACT = re.compile(r"^([0-9]{4})([0-9]{2})([0-9]{2})(?:[0-9]{4,6})?(?:[.\[].*)?$")
_YEAR_LAST = re.compile(r"^([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4}|[0-9]{2})(?:[ T,].*)?$")
_NAMED = re.compile(r"^([0-9]{1,2})[ .\-/]+([^\W\d_]{3,})[ .\-/]+([0-9]{4}|[0-9]{2})$")
_NAMED_FIRST = re.compile(r"^([^\W\d_]{3,})[ .]+([0-9]{1,2}),? +([0-9]{4})$")
_MONTHS = (
    ("jan", "ene", "gen"),
    ("feb", "fev", "fév"),
    ("mar", "mär", "mrz", "mae"),
    ("apr", "avr", "abr"),
    ("may", "mai", "mei", "mag"),
    ("jun", "juin", "giu"),
    ("jul", "juil", "lug"),
    ("aug", "aou", "aoû", "ago"),
    ("sep", "set"),
    ("oct", "okt", "ott", "out"),
    ("nov",),
    ("dec", "dez", "déc", "dic"),
)
_CENTURY_PIVOT = 70
_MAX_DAY_CHARS = 40
_MONTHS_OF_YEAR = 12


def day_of(text: str, order: DayOrder = DayOrder.DAY_FIRST) -> str | None:
    """Read a day, with or without a time after it, as an ISO date."""
    text = text.strip()
    if not text or len(text) > _MAX_DAY_CHARS:
        return None
    if match := _YEAR_FIRST.match(text):
        return _iso(match[1], match[3], match[4])
    if match := _COMPACT.match(text):
        return _iso(match[1], match[2], match[3])
    if match := _YEAR_LAST.match(text):
        day, month = (match[1], match[3]) if order is DayOrder.DAY_FIRST else (match[3], match[1])
        return _iso(match[4], month, day)
    if match := _NAMED.match(text):
        return _iso(match[3], _month(match[2]), match[1])
    match = _NAMED_FIRST.match(text)
    return _iso(match[3], _month(match[1]), match[2]) if match else None


def day_order(samples: Iterable[str]) -> DayOrder | None:
    """Find which number is the day by one that no month has; a point between them always means the day first."""
    for sample in samples:
        match = _YEAR_LAST.match(sample.strip()[:_MAX_DAY_CHARS])
        if match and (match[2] == "." or int(match[1]) > _MONTHS_OF_YEAR):
            return DayOrder.DAY_FIRST
        if match and int(match[3]) > _MONTHS_OF_YEAR:
            return DayOrder.MONTH_FIRST
    return None


def likely_order(samples: Sequence[str], latest: str | None) -> DayOrder | None:
    """Find which number is the day where each could be: none is after the latest day, and lines come in their order."""
    read = {order: [day for sample in samples if (day := day_of(sample, order))] for order in DayOrder}
    early = [order for order, days in read.items() if latest is None or max(days, default="") <= latest]
    if len(early) == 1:
        return early[0]
    sorted_ones = [order for order, days in read.items() if sorted(days) in (days, days[::-1])]
    return sorted_ones[0] if len(sorted_ones) == 1 else None


def _month(name: str) -> str:
    lower = name.lower()
    for number, names in enumerate(_MONTHS, 1):
        if lower.startswith(names):
            return str(number)
    return "0"


def _iso(year: str, month: str, day: str) -> str | None:
    number = int(year)
    if len(year) == 2:  # noqa: PLR2004 - 26 for 2026
        number += 2000 if number < _CENTURY_PIVOT else 1900
    try:
        return date(number, int(month), int(day)).isoformat()
    except ValueError:
        return None


#: The account of a file that names none.
UNNAMED = "main"
_MAX_WORDS = 10_000
#: Bank numbers that are remembered.
_MAX_REMEMBERED = 200_000

_ACCOUNTS = StreamSpec(
    name="accounts",
    label="Accounts",
    detail="A bank account or card: its number, currency and last known balance.",
    fields=fields("id name number bank owner kind currency balance:number balance_text balance_on:date"),
    title="name",
    words=("name", "number", "bank", "owner"),
    groups=("bank", "kind", "currency"),
    views=(("names", "Names without numbers and balances", ("id", "name", "bank", "kind", "currency")),),
    children=(("transactions", "account_id"),),
)
_TRANSACTIONS = StreamSpec(
    name="transactions",
    label="Transactions",
    detail="One line of a statement: money that came in (positive) or went out (negative).",
    fields=fields(
        "id account_id booked_on:date value_on:date description counterparty counterparty_account amount:number "
        "amount_text currency kind category status reference bank_id balance_after:number file more:object"
    ),
    time="booked_on",
    title="description",
    words=("description", "counterparty", "reference", "category"),
    groups=("account_id", "counterparty", "currency", "kind", "category", "status"),
    views=(
        (
            "amounts",
            "Days and amounts",
            ("id", "account_id", "booked_on", "amount", "amount_text", "currency"),
        ),
        (
            "payments",
            "Who was paid, what for and how much",
            (
                "id",
                "booked_on",
                "description",
                "counterparty",
                "amount",
                "amount_text",
                "currency",
                "category",
            ),
        ),
    ),
)


MONEY_STREAMS = (_ACCOUNTS, _TRANSACTIONS)


def _known(data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFacts:
    """What a statement says of its account."""

    number: str | None = None
    #: What distinguishes an account without a number: the name of its file, a product, the currency.
    label: str | None = None
    #: Of a number that stands for several accounts, one for each currency.
    number_currency: str | None = None
    name: str | None = None
    bank: str | None = None
    owner: str | None = None
    kind: str | None = None
    currency: str | None = None
    balance: Decimal | None = None
    balance_on: str | None = None

    @property
    def id(self) -> str:
        """The number without spaces, so that every statement of the account means the same one; else the label."""
        number = "".join((self.number or "").split()).upper()
        return (
            " ".join(filter(None, (number, self.number_currency)))
            if number
            else (self.label or UNNAMED).casefold()
        )

    def _written(self) -> str | None:
        """Write the number as people say it: with the name of its bank, if the file has that and not a code alone."""
        has_name = self.bank is not None and any(letter.isalpha() for letter in self.bank)
        return (
            " ".join(filter(None, (self.bank if has_name else None, self.number, self.number_currency)))
            if self.number
            else None
        )

    def row(self) -> Row:
        balance = self.balance
        data = {
            "id": self.id,
            "name": self.name or self._written() or self.label or "Account",
            "number": self.number,
            "bank": self.bank,
            "owner": self.owner,
            "kind": self.kind,
            "currency": self.currency,
            "balance": None if balance is None else float(balance),
            "balance_text": None if balance is None else amount_text(balance),
            "balance_on": self.balance_on,
        }
        return Row("accounts", _known(data))

    def covered(self, first: str, last: str) -> Iterator[Covered]:
        """Yield the period of a statement, if it says one."""
        start, end = day_of(first), day_of(last)
        if start is not None and end is not None and start <= end:
            yield Covered("transactions", self.id, start, end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    account: str
    booked_on: str
    amount: Decimal
    value_on: str | None = None
    currency: str | None = None
    description: str | None = None
    counterparty: str | None = None
    counterparty_account: str | None = None
    kind: str | None = None
    category: str | None = None
    status: str | None = None
    reference: str | None = None
    bank_id: str | None = None
    balance_after: Decimal | None = None
    #: The amount that names the line, if it was stored with another sign before, or may be declared to have one.
    key_amount: Decimal | None = None
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def row(self, key: str) -> Row:
        words = {name: one_line(getattr(self, name), _MAX_WORDS) for name in _WORDS}
        description = words["description"] or words["counterparty"] or words["kind"]
        data = {
            "id": key,
            "account_id": self.account,
            "booked_on": self.booked_on,
            "value_on": self.value_on,
            **words,
            "description": description,
            "amount": float(self.amount),
            "amount_text": amount_text(self.amount),
            "balance_after": None if self.balance_after is None else float(self.balance_after),
            "more": dict(self.more) or None,
        }
        return Row("transactions", _known(data))

    def parts(self) -> tuple[str | None, ...]:
        """Return what distinguishes this line from the rest of its day."""
        texts = (self.counterparty, self.description, self.reference, self.bank_id)
        amount = self.amount if self.key_amount is None else self.key_amount
        return (self.account, amount_text(amount), *(one_line(text) for text in texts))


#: The texts of a line, each written in one line of a record.
_WORDS = (
    *("description", "counterparty", "counterparty_account", "currency", "kind"),
    *("category", "status", "reference", "bank_id"),
)


class LedgerKeys:
    """Keys for the lines of one statement.

    A line is named by the bank's number if that is unique in its account; else by what it says, and the n-th of
    identical lines of a day by its n. Statements hold whole days, so a statement that overlaps another one gives its
    lines the same keys. Days are forgotten when there are too many, the first ones first.
    """

    def __init__(self) -> None:
        self._days = OrderedKeys()
        self._numbers: OrderedDict[str, tuple[str, Decimal]] = OrderedDict()

    def key(self, booking: Booking) -> str:
        """Name a line by what it says."""
        return self._days.key(booking.booked_on, *booking.parts())

    def numbered(self, booking: Booking) -> str:
        """Name a line by its bank's number, unless this statement has another line with that number."""
        number = digest_of(booking.account, booking.bank_id)
        line = (booking.booked_on, booking.amount)
        if self._numbers.setdefault(number, line) != line:
            return self.key(booking)
        if len(self._numbers) > _MAX_REMEMBERED:
            self._numbers.popitem(last=False)
        return number
