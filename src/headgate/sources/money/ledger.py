"""The rows that every statement format becomes, their keys, and their declaration."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from headgate.sources.declaring import DATE, NUMBER, OBJECT, TEXT, StreamSpec, declaration
from headgate.sources.identity import OrderedKeys, digest_of
from headgate.sources.money.values import amount_text
from headgate.sources.protocol import Row
from headgate.sources.texts import one_line

#: The account of a file that names none.
UNNAMED = "main"
_MAX_WORDS = 10_000
#: Bank numbers that are remembered.
_MAX_REMEMBERED = 200_000

_ACCOUNTS = StreamSpec(
    name="accounts",
    label="Accounts",
    detail="A bank account or card: its number, currency and last known balance.",
    fields={
        "id": TEXT,
        "name": TEXT,
        "number": TEXT,
        "bank": TEXT,
        "owner": TEXT,
        "kind": TEXT,
        "currency": TEXT,
        "balance": NUMBER,
        "balance_text": TEXT,
        "balance_on": DATE,
    },
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
    fields={
        "id": TEXT,
        "account_id": TEXT,
        "booked_on": DATE,
        "value_on": DATE,
        "description": TEXT,
        "counterparty": TEXT,
        "counterparty_account": TEXT,
        "amount": NUMBER,
        "amount_text": TEXT,
        "currency": TEXT,
        "kind": TEXT,
        "category": TEXT,
        "status": TEXT,
        "reference": TEXT,
        "bank_id": TEXT,
        "balance_after": NUMBER,
        "more": OBJECT,
    },
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


def money_declaration() -> dict[str, Any]:
    """Make the declaration, the same for every bank."""
    return declaration("money", "Bank statements", (_ACCOUNTS, _TRANSACTIONS))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountFacts:
    """What a statement says of its account."""

    number: str | None = None
    #: What distinguishes an account without a number: the name of its file, a product, the currency.
    label: str | None = None
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
        return "".join((self.number or "").split()).upper() or (self.label or UNNAMED).casefold()

    def row(self) -> Row:
        """Make the account's record."""
        balance = self.balance
        data = {
            "id": self.id,
            "name": self.name or self.number or self.label or "Account",
            "number": self.number,
            "bank": self.bank,
            "owner": self.owner,
            "kind": self.kind,
            "currency": self.currency,
            "balance": None if balance is None else float(balance),
            "balance_text": None if balance is None else amount_text(balance),
            "balance_on": self.balance_on,
        }
        return Row("accounts", {name: value for name, value in data.items() if value is not None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Booking:
    """One line of a statement."""

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
    more: Mapping[str, str] = field(default_factory=dict[str, str])

    def row(self, key: str) -> Row:
        """Make the transaction's record."""
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
        return Row("transactions", {name: value for name, value in data.items() if value is not None})

    def parts(self) -> tuple[str | None, ...]:
        """Return what distinguishes this line from the rest of its day."""
        texts = (self.counterparty, self.description, self.reference, self.bank_id)
        return (self.account, amount_text(self.amount), *(one_line(text) for text in texts))


_WORDS = (
    "description",
    "counterparty",
    "counterparty_account",
    "currency",
    "kind",
    "category",
    "status",
    "reference",
    "bank_id",
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
