"""The rows that every statement format becomes: their keys, and their declaration."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from headgate.sources.declaring import StreamSpec, fields
from headgate.sources.formats.texts import one_line
from headgate.sources.formats.values import OrderedKeys, digest_of
from headgate.sources.formats.written import amount_text, day_of
from headgate.sources.protocol import Covered, Row

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
_AMOUNTS = ("amount", "amount_text", "currency")
_PARTIES = ("description", "counterparty")
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
        ("amounts", "Days and amounts", ("id", "account_id", "booked_on", *_AMOUNTS)),
        (
            "payments",
            "Who was paid, what for and how much",
            ("id", "booked_on", *_PARTIES, *_AMOUNTS, "category"),
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
        facts = {name: getattr(self, name) for name in ("number", "bank", "owner", "kind", "currency")}
        amounts = {} if balance is None else {"balance": float(balance), "balance_text": amount_text(balance)}
        name = self.name or self._written() or self.label or "Account"
        data = {"id": self.id, "name": name, **facts, **amounts, "balance_on": self.balance_on}
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
